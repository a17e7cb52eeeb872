"""log_softmax of each row."""

from gpu_impls.cuda.kernels import BLOCK, LANES, cuda_kernel
from gpu_impls.cuda.launch import Array, Kernel, map_rows
from gpu_impls.numpy.logsumexp import SHIFTED


@cuda_kernel("log_softmax", summation=LANES, source=SHIFTED)
def three_pass(
    x: Array, mask: Array | None = None, out: Array | None = None, *, flush: bool = False, block: int = BLOCK
) -> Array:
    """(x - m) - log(sum exp(x - m)): maximum, sum, output. Can write into ``out``, x itself too."""
    return map_rows(Kernel("log_softmax", "log_softmax", block, flush), x, mask, out)
