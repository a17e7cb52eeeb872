"""A user's file whose names and messages try to be markup, code, mathematics, templates and globs."""

import numpy as np

from gpu_impls import implementation

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    '"><img src=x onerror="window.hacked = 3">',
    "it's `quoted` \"twice\" & <b>bold</b>",
    "$$\\frac{1}{2}$$ \\(x\\)",
    "{{ 7 * 7 }} {% for %} [a-z]*?",
)


def right(x, mask=None):
    """Partial sums in float64: all but correctly rounded."""
    shown = x if mask is None else np.where(mask, x, 0)
    return shown.sum(axis=-1, dtype=np.float64).astype(x.dtype)


for name in HOSTILE:
    implementation("sum", dtypes=("float32", "float64"), name=name)(right)


@implementation("sum", dtypes=("float32",))
def doubled(x, mask=None):
    return 2 * right(x, mask)


@implementation("sum", dtypes=("float32",))
def raises(x, mask=None):
    raise RuntimeError(HOSTILE[2])


@implementation("max", dtypes=("float32",), known_faulty={"accuracy": "always 0"})
def zeros(x, mask=None):
    return np.zeros(len(x), x.dtype)
