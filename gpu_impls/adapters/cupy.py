"""CuPy's own reductions and its softmax family, compiled by CuPy: float32 subnormals are flushed.

Measured on CuPy 14.2 (CUDA 13, H200):

- sum of float16 rounds to float16 on the way; in bfloat16 and in mean it does not.
- var sums a row in another order alone than in a batch; of float16 it rounds on the way, of bfloat16 it returns
  float64, so that bfloat16 is not offered here.
- logsumexp, softmax and log_softmax of 16 bits round every step.
- log_softmax gives -inf beside +inf: [-0.85, inf] becomes [-inf, NaN].
- max, logsumexp and the softmax family raise on an empty row. No function takes a mask.
"""

from typing import Any

from gpu_impls import implementation
from gpu_impls.backends import CUPY as cupy
from gpu_impls.libraries import Library

special: Any = Library("cupyx.scipy.special")

ALL = ("float16", "bfloat16", "float32", "float64")
NARROW, WIDE = ALL[:2], ALL[2:]
Array = Any  # cupy.ndarray, without the import
# The squares of var; see gpu_impls/numpy/var.py.
DOMAIN = (1e-15, 1e15)
CLAIMS: dict[str, Any] = {"backend": "cupy", "subnormals": "flush", "source": "cupy"}

ROUNDS_TWICE = "intermediate results are rounded to the storage format"
OTHER_ORDER = "a row alone is summed in another order than a row of a batch"
INFINITE_MAXIMUM = "finite elements beside +inf become -inf, not NaN"
BESIDE_INFINITY = {"special_values": INFINITE_MAXIMUM}
SOFTMAX: dict[str, Any] = {"masked_row": "nan", "min_length": 1, **CLAIMS}
NARROW_STEPS = dict.fromkeys(("accuracy", "special_values"), ROUNDS_TWICE)


@implementation("sum", name="cupy_float16", dtypes=("float16",), deviates={"accuracy": ROUNDS_TWICE}, **CLAIMS)
@implementation("sum", name="cupy", dtypes=ALL[1:], **CLAIMS)
def cupy_sum(x: Array) -> Array:
    """cupy.sum(x, axis=-1)."""
    return cupy.sum(x, axis=-1)


@implementation("mean", name="cupy", dtypes=ALL, **CLAIMS)
def cupy_mean(x: Array) -> Array:
    """cupy.mean(x, axis=-1)."""
    return cupy.mean(x, axis=-1)


@implementation(
    "var",
    name="cupy_float16",
    dtypes=("float16",),
    domain=DOMAIN,
    deviates={"batch_invariance": OTHER_ORDER, **dict.fromkeys(("accuracy", "strides"), ROUNDS_TWICE)},
    **CLAIMS,
)
@implementation("var", name="cupy", dtypes=WIDE, domain=DOMAIN, deviates={"batch_invariance": OTHER_ORDER}, **CLAIMS)
def cupy_var(x: Array) -> Array:
    """cupy.var(x, axis=-1)."""
    return cupy.var(x, axis=-1)


@implementation("max", name="cupy", dtypes=ALL, min_length=1, **CLAIMS)
def cupy_max(x: Array) -> Array:
    """cupy.max(x, axis=-1)."""
    return cupy.max(x, axis=-1)


@implementation("logsumexp", name="cupy_narrow", dtypes=NARROW, min_length=1, deviates=NARROW_STEPS, **CLAIMS)
@implementation("logsumexp", name="cupy", dtypes=WIDE, min_length=1, **CLAIMS)
def cupy_logsumexp(x: Array) -> Array:
    """cupyx.scipy.special.logsumexp(x, axis=-1)."""
    return special.logsumexp(x, axis=-1)


@implementation("softmax", name="cupy_narrow", dtypes=NARROW, deviates=NARROW_STEPS, **SOFTMAX)
@implementation("softmax", name="cupy", dtypes=WIDE, **SOFTMAX)
def cupy_softmax(x: Array) -> Array:
    """cupyx.scipy.special.softmax(x, axis=-1)."""
    return special.softmax(x, axis=-1)


@implementation(
    "log_softmax",
    name="cupy_narrow",
    dtypes=NARROW,
    deviates={"accuracy": ROUNDS_TWICE, "special_values": f"{INFINITE_MAXIMUM}; {ROUNDS_TWICE}"},
    **SOFTMAX,
)
@implementation("log_softmax", name="cupy", dtypes=("float32",), deviates=BESIDE_INFINITY, **SOFTMAX)
@implementation(
    "log_softmax",
    name="cupy_float64",
    dtypes=("float64",),
    deviates=BESIDE_INFINITY | {"batch_invariance": OTHER_ORDER},
    **SOFTMAX,
)
def cupy_log_softmax(x: Array) -> Array:
    """cupyx.scipy.special.log_softmax(x, axis=-1)."""
    return special.log_softmax(x, axis=-1)
