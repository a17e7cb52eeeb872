"""Softmax of each row in Triton."""

from gpu_impls.numpy.softmax import THREE_PASS
from gpu_impls.triton.launch import LANES, Tensor, checked, empty_like, kernels, launch, strides, triton_kernel


@triton_kernel("softmax", name="triton", summation=LANES, source=THREE_PASS)
def softmax(x: Tensor, mask: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """Maximum, exponentials, sum and output of a row in registers; exponentials as 2^(x log2 e), by ex2.approx."""
    out = empty_like(checked(x)) if out is None else out
    launch(kernels.softmax, x, x, mask, out, *x.stride(), *strides(mask, 2), *out.stride())
    return out
