"""SciPy's softmax, log_softmax and logsumexp (scipy.special). None of them takes a mask.

Measured on SciPy 1.17:

- softmax and log_softmax compute in the format they are given, float16 and bfloat16 too; logsumexp turns
  bfloat16 into float64, so that it is left out there.
- softmax and log_softmax raise on an empty row and give NaN for a row of -inf; logsumexp gives -inf for both.
- log_softmax of [2, inf, -1] is [-inf, NaN, -inf].
- logsumexp counts the maxima apart and uses log1p: [0, -20] gives 2.0611537e-9, but [-ln 2, -ln 2] gives 0.
"""

import numpy as np
from scipy import special

from gpu_impls import implementation

SOURCE = "scipy.special"
WIDE = ("float32", "float64")
NARROW = ("float16", "bfloat16")


@implementation("softmax", name="scipy", dtypes=WIDE, min_length=1, masked_row="nan", source=SOURCE)
def scipy_softmax(x: np.ndarray) -> np.ndarray:
    """scipy.special.softmax(x, axis=-1): exp(x - max) over its sum."""
    return special.softmax(x, axis=-1)


NARROW_STEPS = "difference, exponential and sum are rounded to the storage format"


@implementation(
    "softmax",
    name="scipy_narrow",
    dtypes=NARROW,
    min_length=1,
    masked_row="nan",
    source=SOURCE,
    deviates=dict.fromkeys(("accuracy", "special_values"), NARROW_STEPS),
)
def scipy_softmax_narrow(x: np.ndarray) -> np.ndarray:
    """The same in float16 and bfloat16 arithmetic."""
    return special.softmax(x, axis=-1)


INFINITE_MAXIMUM = "a row with +inf gives -inf and one NaN, not NaN throughout"


@implementation(
    "log_softmax",
    name="scipy",
    dtypes=WIDE,
    min_length=1,
    masked_row="nan",
    source=SOURCE,
    deviates={"special_values": INFINITE_MAXIMUM},
)
def scipy_log_softmax(x: np.ndarray) -> np.ndarray:
    """scipy.special.log_softmax(x, axis=-1): (x - max) - log(sum exp(x - max)), max read as 0 if infinite."""
    return special.log_softmax(x, axis=-1)


@implementation(
    "log_softmax",
    name="scipy_narrow",
    dtypes=NARROW,
    min_length=1,
    masked_row="nan",
    source=SOURCE,
    deviates={"accuracy": NARROW_STEPS, "special_values": INFINITE_MAXIMUM},
)
def scipy_log_softmax_narrow(x: np.ndarray) -> np.ndarray:
    """The same in float16 and bfloat16 arithmetic."""
    return special.log_softmax(x, axis=-1)


@implementation("logsumexp", name="scipy", dtypes=WIDE, source=SOURCE)
def scipy_logsumexp(x: np.ndarray) -> np.ndarray:
    """scipy.special.logsumexp(x, axis=-1)."""
    return special.logsumexp(x, axis=-1)


@implementation(
    "logsumexp",
    name="scipy_float16",
    dtypes=("float16",),
    source=SOURCE,
    deviates=dict.fromkeys(("accuracy", "special_values", "strides"), NARROW_STEPS),
)
def scipy_logsumexp_float16(x: np.ndarray) -> np.ndarray:
    """The same in float16 arithmetic."""
    return special.logsumexp(x, axis=-1)
