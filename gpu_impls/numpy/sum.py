"""Sum in five orders: what the order of additions alone does to the error."""

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import ALL_FORMATS, load, store
from gpu_impls.numpy.summation import kahan_sum, pairwise_sum, sequential_sum, warp_sum


@implementation("sum", dtypes=ALL_FORMATS, source="Higham, Accuracy and Stability, section 4.1")
def sequential(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Left to right, error up to (n - 1) u sum|x|: reached when one large element stands first."""
    return store(sequential_sum(load(x, mask)), like=x)


@implementation("sum", dtypes=ALL_FORMATS, summation="tree", source="Higham, Accuracy and Stability, section 4.1")
def pairwise(x: np.ndarray, mask: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
    """A balanced tree, error up to ceil(log2 n) u sum|x|. Can write into ``out``."""
    return store(pairwise_sum(load(x, mask)), like=x, out=out)


@implementation("sum", dtypes=ALL_FORMATS, summation="lanes:32", source="the order of one CUDA warp")
def warp_tree(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """32 lanes, then a shuffle tree, error up to (ceil(n / 32) + 4) u sum|x|. 64 ones: 2 a lane, then 64."""
    return store(warp_sum(load(x, mask)), like=x)


@implementation("sum", dtypes=ALL_FORMATS, summation="compensated", source="Kahan, CACM 8(1), 1965")
def kahan(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Compensated, error up to about 2 u sum|x| at any n; an infinite sum drops the carry."""
    return store(kahan_sum(load(x, mask)), like=x)


@implementation(
    "sum",
    dtypes=("bfloat16",),
    known_faulty={"accuracy": "each partial sum is rounded to bfloat16: 300 ones add up to 256"},
)
def bfloat16_accumulator(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: left to right with an accumulator in the storage format, stuck as soon as x < ulp(sum) / 2."""
    total = np.zeros(x.shape[0], x.dtype)
    for column in np.ascontiguousarray(load(x, mask).T):
        total = (total.astype(column.dtype) + column).astype(x.dtype)
    return total
