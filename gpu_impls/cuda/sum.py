"""Sum of each row."""

from gpu_impls.cuda.kernels import BLOCK, LANES, cuda_kernel
from gpu_impls.cuda.launch import Array, Kernel, reduce_rows


@cuda_kernel("sum", summation=LANES, source="Higham, Accuracy and Stability, section 4.1")
def block_tree(
    x: Array, mask: Array | None = None, out: Array | None = None, *, flush: bool = False, block: int = BLOCK
) -> Array:
    """Every thread adds strided elements, shuffles add a warp, the first warp adds the warps."""
    return reduce_rows(Kernel("sum", "sum", block, flush), x, mask, out)
