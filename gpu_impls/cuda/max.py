"""Maximum of each row, exact, NaN wherever one stands."""

from gpu_impls.cuda.kernels import BLOCK, cuda_kernel
from gpu_impls.cuda.launch import Array, Kernel, reduce_rows


@cuda_kernel("max", source="IEEE 754-2019, maximum")
def block_maximum(
    x: Array, mask: Array | None = None, out: Array | None = None, *, flush: bool = False, block: int = BLOCK
) -> Array:
    """Identity -inf; the same tree as the sum's."""
    return reduce_rows(Kernel("max", "maximum", block, flush), x, mask, out)
