"""The device code. Rows are ``BLOCK`` wide, a power of two; what lies beyond n is masked. Strides count elements."""

import triton
import triton.language as tl


@triton.jit
def softmax(x, mask, y, x_row, x_column, mask_row, mask_column, y_row, y_column, n, BLOCK: tl.constexpr):
    """``mask`` may be None. A row of nothing gives zeros; NaN or +inf gives NaN throughout."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    shown = columns < n
    if mask is not None:
        shown = shown & (tl.load(mask + row * mask_row + columns * mask_column, mask=columns < n, other=0) != 0)
    values = tl.load(x + row * x_row + columns * x_column, mask=shown, other=float("-inf")).to(tl.float32)
    m = tl.max(values, axis=0)
    e = tl.exp(values - tl.where(m == float("-inf"), 0.0, m))
    total = tl.sum(e, axis=0)
    result = e / tl.where(total == 0.0, 1.0, total)
    tl.store(y + row * y_row + columns * y_column, result.to(y.dtype.element_ty), mask=columns < n)


@triton.jit
def affine(z, weight, bias, weight_stride, bias_stride, columns, n):
    if weight is not None:
        z = z * tl.load(weight + columns * weight_stride, mask=columns < n, other=0.0).to(tl.float32)
    if bias is not None:
        z = z + tl.load(bias + columns * bias_stride, mask=columns < n, other=0.0).to(tl.float32)
    return z


@triton.jit
def rms_norm(
    x, weight, bias, y, x_row, x_column, weight_stride, bias_stride, y_row, y_column, eps, n, BLOCK: tl.constexpr
):
    """``weight`` and ``bias`` may be None."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * x_row + columns * x_column, mask=columns < n, other=0.0).to(tl.float32)
    z = values * tl.rsqrt(tl.sum(values * values, axis=0) / n + eps)
    z = affine(z, weight, bias, weight_stride, bias_stride, columns, n)
    tl.store(y + row * y_row + columns * y_column, z.to(y.dtype.element_ty), mask=columns < n)


@triton.jit
def layer_norm(
    x, weight, bias, y, x_row, x_column, weight_stride, bias_stride, y_row, y_column, eps, n, BLOCK: tl.constexpr
):
    """Mean, then the variance about it. ``weight`` and ``bias`` may be None."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * x_row + columns * x_column, mask=columns < n, other=0.0).to(tl.float32)
    apart = tl.where(columns < n, values - tl.sum(values, axis=0) / n, 0.0)
    z = apart * tl.rsqrt(tl.sum(apart * apart, axis=0) / n + eps)
    z = affine(z, weight, bias, weight_stride, bias_stride, columns, n)
    tl.store(y + row * y_row + columns * y_column, z.to(y.dtype.element_ty), mask=columns < n)


@triton.jit
def fused_add_rms_norm(
    x, residual, weight, y, updated, x_row, x_column, residual_row, residual_column, weight_stride, y_row, y_column,
    updated_row, updated_column, eps, n, BLOCK: tl.constexpr,
):  # fmt: skip
    """``updated`` is x + residual rounded to storage, ``y`` the rms_norm of that."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    values = tl.load(x + row * x_row + columns * x_column, mask=inside, other=0.0).to(tl.float32)
    residuals = tl.load(residual + row * residual_row + columns * residual_column, mask=inside, other=0.0)
    total = (values + residuals.to(tl.float32)).to(updated.dtype.element_ty)
    tl.store(updated + row * updated_row + columns * updated_column, total, mask=inside)
    values = total.to(tl.float32)
    z = values * tl.rsqrt(tl.sum(values * values, axis=0) / n + eps)
    z = affine(z, weight, None, weight_stride, 0, columns, n)
    tl.store(y + row * y_row + columns * y_column, z.to(y.dtype.element_ty), mask=inside)
