"""fused_add_rms_norm in Triton: what stands between two layers of a transformer, in one kernel."""

from gpu_impls.numpy.rms_norm import SOURCE
from gpu_impls.triton.launch import DOMAIN, LANES, Tensor, checked, empty_like, kernels, launch, strides, triton_kernel

Pair = tuple[Tensor, Tensor]


@triton_kernel("fused_add_rms_norm", name="triton", domain=DOMAIN, summation=LANES, statistics="rounded", source=SOURCE)
def fused_add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor | None = None, eps: float = 1e-6, out: Pair | None = None
) -> Pair:
    """``(y, updated)``: the sum, rounded to storage once, and its rms_norm. ``out`` may be ``(x, residual)``.

    Raises:
        ValueError: ``residual`` has another shape or dtype than ``x``.
    """
    if residual.shape != checked(x).shape or residual.dtype != x.dtype:
        told = f"residual is {residual.dtype} {tuple(residual.shape)}"
        raise ValueError(f"{told}: expected {x.dtype} {tuple(x.shape)}, as x")
    y, updated = (empty_like(x), empty_like(x)) if out is None else out
    laid_out = (*x.stride(), *residual.stride(), *strides(weight, 1), *y.stride(), *updated.stride())
    launch(kernels.fused_add_rms_norm, x, x, residual, weight, y, updated, *laid_out, eps)
    return y, updated
