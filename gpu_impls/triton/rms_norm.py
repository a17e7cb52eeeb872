"""rms_norm of each row in Triton, alone and after an addition."""

from gpu_impls.backends import TORCH as torch
from gpu_impls.numpy.rms_norm import SOURCE
from gpu_impls.triton.launch import (
    DOMAIN,
    LANES,
    Tensor,
    checked,
    empty_like,
    kernels,
    launch,
    norm,
    strides,
    triton_kernel,
)


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


def fused_add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor | None = None, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """``residual += x``, rounded to storage once, and its rms_norm: what stands between two layers of a transformer.

    Returns:
        The norm (rows, n), and ``residual`` itself, written over.

    Raises:
        ValueError: ``residual`` has another shape or dtype than ``x``.
    """
    if residual.shape != checked(x).shape or residual.dtype != x.dtype:
        told = f"residual is {residual.dtype} {tuple(residual.shape)}"
        raise ValueError(f"{told}: expected {x.dtype} {tuple(x.shape)}, as x")
    out = empty_like(x)
    laid_out = (*x.stride(), *residual.stride(), *strides(weight, 1), *out.stride())
    launch(kernels.fused_add_rms_norm, x, x, residual, weight, out, *laid_out, eps)
    return out, residual


@triton_kernel("rms_norm", name="triton_fused_add", domain=DOMAIN, summation=LANES, source=SOURCE)
def of_two_halves(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """fused_add_rms_norm of two terms whose sum is x, exactly: x - x/2 and x/2 where x is finite, x and 0 elsewhere."""
    half = torch.where(torch.isfinite(x), x / 2, 0)
    return fused_add_rms_norm(x - half, half, weight, eps)[0]
