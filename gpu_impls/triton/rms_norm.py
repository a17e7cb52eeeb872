"""rms_norm of each row in Triton."""

from gpu_impls.numpy.rms_norm import SOURCE
from gpu_impls.triton.launch import DOMAIN, LANES, Tensor, kernels, norm, triton_kernel


@triton_kernel("rms_norm", name="triton", domain=DOMAIN, summation=LANES, source=SOURCE)
def rms_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-6,
    out: Tensor | None = None,
) -> Tensor:
    """The mean square, then x rsqrt(mean square + eps), weight and bias."""
    return norm(kernels.rms_norm, x, weight, bias, eps, out)
