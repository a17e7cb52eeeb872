"""layer_norm of each row in Triton."""

from gpu_impls.triton.launch import DOMAIN, LANES, Tensor, kernels, norm, triton_kernel

SOURCE = "Ba, Kiros and Hinton, Layer Normalization, 2016"


@triton_kernel("layer_norm", name="triton", domain=DOMAIN, summation=LANES, source=SOURCE)
def layer_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    out: Tensor | None = None,
) -> Tensor:
    """Mean, then the variance about it, in registers; then the output."""
    return norm(kernels.layer_norm, x, weight, bias, eps, out)
