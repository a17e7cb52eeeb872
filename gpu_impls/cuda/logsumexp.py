"""log(sum exp(x)) of each row."""

from gpu_impls.cuda.kernels import BLOCK, LANES, cuda_kernel
from gpu_impls.cuda.launch import Array, Kernel, reduce_rows
from gpu_impls.numpy.logsumexp import SHIFTED


@cuda_kernel("logsumexp", summation=LANES, source=SHIFTED)
def shifted(
    x: Array, mask: Array | None = None, out: Array | None = None, *, flush: bool = False, block: int = BLOCK
) -> Array:
    """m + log(sum exp(x - m)): the row is read twice."""
    return reduce_rows(Kernel("logsumexp", "logsumexp", block, flush), x, mask, out)
