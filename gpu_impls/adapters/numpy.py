"""NumPy's sum, mean, var and max.

Measured on NumPy 2.4 with ml_dtypes 0.6:

- float32 and float64 rows are summed in blocks of 128 and pairwise above that; bits do not depend on the
  batch. A transposed array is summed in another order, right within the default bound.
- float16: mean accumulates in float32. sum does so only along contiguous runs: it rounds to float16 after
  each element of a transposed row, and after each run of visible elements under ``where``. var rounds its
  mean, differences and squares to float16, and its sums as sum does.
- bfloat16 accumulates in bfloat16: 300 ones have the sum 256 and the mean 0.85.
- max is exact in every format, propagates NaN, and raises on an empty row.
"""

import numpy as np

from gpu_impls import implementation

SOURCE = "numpy"
# The squares of var; see gpu_impls/numpy/var.py.
VAR_DOMAIN = (1e-15, 1e15)


def everything(mask: np.ndarray | None) -> np.ndarray | bool:
    """``where=`` for a mask; True, NumPy's own default, without one."""
    return True if mask is None else mask


@implementation("sum", name="numpy", dtypes=("float32", "float64"), source=SOURCE)
def numpy_sum(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """np.sum(x, axis=-1, where=mask)."""
    return np.sum(x, axis=-1, where=everything(mask))


FLOAT16_SUM = "rounds to float16 after each {}"


@implementation(
    "sum",
    name="numpy_float16",
    dtypes=("float16",),
    source=SOURCE,
    deviates={
        "strides": FLOAT16_SUM.format("element of a transposed row"),
        "masks": FLOAT16_SUM.format("run of visible elements"),
    },
)
def numpy_sum_float16(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """np.sum of float16: in float32 along a contiguous row, else in float16."""
    return numpy_sum(x, mask)


BFLOAT16 = "accumulates in bfloat16: 300 ones have the sum 256"


@implementation(
    "sum",
    name="numpy_bfloat16",
    dtypes=("bfloat16",),
    source=SOURCE,
    deviates={"accuracy": BFLOAT16},
)
def numpy_sum_bfloat16(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """np.sum of bfloat16, in bfloat16."""
    return numpy_sum(x, mask)


@implementation("mean", name="numpy", dtypes=("float32", "float64", "float16"), source=SOURCE)
def numpy_mean(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """np.mean(x, axis=-1, where=mask); float16 is widened to float32 on the way."""
    return np.mean(x, axis=-1, where=everything(mask))


@implementation(
    "mean",
    name="numpy_bfloat16",
    dtypes=("bfloat16",),
    source=SOURCE,
    deviates={"accuracy": BFLOAT16},
)
def numpy_mean_bfloat16(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """np.mean of bfloat16, in bfloat16."""
    return numpy_mean(x, mask)


@implementation("var", name="numpy", dtypes=("float32", "float64"), domain=VAR_DOMAIN, source=SOURCE)
def numpy_var(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """np.var(x, axis=-1, where=mask): two passes."""
    return np.var(x, axis=-1, where=everything(mask))


NARROW_VAR = "mean, differences and squares are rounded to the storage format"


@implementation(
    "var",
    name="numpy_float16",
    dtypes=("float16",),
    domain=VAR_DOMAIN,
    source=SOURCE,
    deviates={
        "accuracy": NARROW_VAR,
        "strides": FLOAT16_SUM.format("element of a transposed row"),
        "masks": FLOAT16_SUM.format("run of visible elements"),
    },
)
def numpy_var_float16(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """np.var of float16, in float16; squares overflow above 255."""
    return numpy_var(x, mask)


@implementation(
    "var",
    name="numpy_bfloat16",
    dtypes=("bfloat16",),
    domain=VAR_DOMAIN,
    source=SOURCE,
    deviates={"accuracy": NARROW_VAR},
)
def numpy_var_bfloat16(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """np.var of bfloat16, in bfloat16."""
    return numpy_var(x, mask)


@implementation("max", name="numpy", dtypes=("float32", "float64", "float16", "bfloat16"), min_length=1, source=SOURCE)
def numpy_max(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """np.max(x, axis=-1); with a mask, np.max(x, axis=-1, where=mask, initial=-inf), which NumPy asks for."""
    if mask is None:
        return np.max(x, axis=-1)
    return np.max(x, axis=-1, where=mask, initial=-np.inf)
