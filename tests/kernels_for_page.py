"""A user's file of hostile names. Only ever loaded by path and inside of ``isolated()``."""

import numpy as np
from hostile_names import HOSTILE

from gpu_impls import implementation


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


@implementation("rms_norm", dtypes=("float32",), known_faulty={"accuracy": "always 0"})
def zeros(x, weight=None, bias=None, eps=0.0):
    return np.zeros_like(x)
