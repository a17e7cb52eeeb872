"""Faults that public trackers report again and again, one small function each, and the right forms beside them.

Reductions and norms are built from a ``total``, the softmax family from ``exp`` and ``total``, so that one part can be
wrong at a time.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from gpu_impls.numpy.affine import scale_and_shift
from gpu_impls.numpy.precision import load, store, visible_count
from gpu_impls.numpy.shifting import nonzero, row_maximum, subtractable
from gpu_impls.numpy.summation import pairwise_sum

Array = np.ndarray
Total = Callable[[Array], Array]
Kernel = Callable[..., Any]


def rounding_to(dtype: type) -> Total:
    """Partial sums, left to right, are kept in a narrow format."""

    def narrow(values: Array) -> Array:
        partial = np.zeros(values.shape[:-1], dtype)
        for column in np.moveaxis(values, -1, 0):
            partial = (partial.astype(values.dtype) + column).astype(dtype)
        return partial.astype(values.dtype)

    return narrow


def without_the_ragged_tail(values: Array, tile: int = 32) -> Array:
    """Whole tiles only, where there is a whole one."""
    n = values.shape[-1]
    return pairwise_sum(values[..., : n // tile * tile] if n > tile else values)


# Sums and moments


def sum_by(total: Total = pairwise_sum) -> Kernel:
    return lambda x, mask=None: store(total(load(x, mask)), like=x)


def mean_by(total: Total = pairwise_sum) -> Kernel:
    def kernel(x, mask=None):
        values = load(x, mask)
        return store(total(values) / visible_count(values, mask), like=x)

    return kernel


def var_by(total: Total = pairwise_sum) -> Kernel:
    def kernel(x, mask=None):
        values = load(x, mask)
        count = visible_count(values, mask)
        apart = values - (total(values) / count)[:, None]
        apart = apart if mask is None else np.where(mask, apart, 0)
        return store(total(apart * apart) / count, like=x)

    return kernel


def sum_times_mask(x, mask=None):
    """What is hidden is multiplied by 0: 0 * NaN is NaN."""
    values = load(x)
    return store(pairwise_sum(values if mask is None else values * mask), like=x)


# Norms


def rms_norm_by(total: Total = pairwise_sum, square: Kernel = np.square) -> Kernel:
    def kernel(x, weight=None, bias=None, eps=1e-6):
        values = load(x)
        mean_square = total(square(values)) / values.dtype.type(x.shape[-1])
        root = np.sqrt(mean_square + values.dtype.type(eps))
        return store(scale_and_shift(values / root[:, None], weight, bias), like=x)

    return kernel


def layer_norm_by(total: Total = pairwise_sum, eps_in: type | None = None, outside: bool = False) -> Kernel:
    """``eps_in``: the format that eps is stored in; ``outside``: eps is added to the root, not under it."""

    def kernel(x, weight=None, bias=None, eps=1e-5):
        values = load(x)
        count, eps = values.dtype.type(x.shape[-1]), values.dtype.type(eps if eps_in is None else eps_in(eps))
        apart = values - (total(values) / count)[:, None]
        variance = total(apart * apart) / count
        root = np.sqrt(variance) + eps if outside else np.sqrt(variance + eps)
        return store(scale_and_shift(apart / root[:, None], weight, bias), like=x)

    return kernel


def float16_square(values: Array) -> Array:
    """Beyond 255 it is infinite."""
    return np.square(values.astype(np.float16)).astype(values.dtype)


def cast_before_weight(x, weight=None, bias=None, eps=1e-6):
    """The normalised row is rounded to storage before it is scaled."""
    return store(scale_and_shift(load(rms_norm_by()(x, eps=eps)), weight, bias), like=x)


# Maximum


def max_by_ordered_bits(x, mask=None):
    """float32 compared as integers: a NaN with its sign bit set lies below everything."""
    bits = load(x, mask, hidden=-np.inf).view(np.int32)
    ordered = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)
    lowest = np.float32(-np.inf).view(np.int32) ^ np.int32(0x7FFFFFFF)
    top = ordered.max(axis=-1, initial=lowest)
    return np.where(top < 0, top ^ np.int32(0x7FFFFFFF), top).astype(np.int32).view(np.float32)


def max_of_numbers(x, mask=None):
    """fmax passes over NaN."""
    return store(np.fmax.reduce(load(x, mask, hidden=-np.inf), axis=-1, initial=-np.inf), like=x)


# The softmax family


def softmax_by(exp: Kernel = np.exp, total: Total = pairwise_sum, hidden: float = -np.inf) -> Kernel:
    """``hidden``: what stands for a hidden element."""

    def kernel(x, mask=None):
        values = load(x, mask, hidden=hidden)
        weights = exp(values - subtractable(row_maximum(values))[:, None])
        return store(weights / nonzero(total(weights))[:, None], like=x)

    return kernel


def logsumexp_by(exp: Kernel = np.exp, total: Total = pairwise_sum, hidden: float = -np.inf, base: float = 1) -> Kernel:
    """``base``: the logarithm of the base that the result is told in."""

    def kernel(x, mask=None):
        values = load(x, mask, hidden=hidden)
        m = row_maximum(values)
        shift = np.where(np.isfinite(m), m, 0).astype(values.dtype)
        result = shift + np.log(total(exp(values - shift[:, None])))
        return store(result / values.dtype.type(base), like=x)

    return kernel


def unguarded_softmax(x, mask=None):
    """Subtracts a maximum of -inf: a row of nothing is NaN."""
    values = load(x, mask, hidden=-np.inf)
    weights = np.exp(values - row_maximum(values)[:, None])
    return store(weights / pairwise_sum(weights)[:, None], like=x)


def log_of(softmax: Kernel) -> Kernel:
    """log(softmax(x)): the weight underflows before its logarithm is taken."""
    return lambda x, mask=None: store(np.log(load(softmax(x, mask))), like=x)


def unshifted_logsumexp(x, mask=None):
    """log(sum exp(x)): merging 0 and 100 overflows."""
    return store(np.log(pairwise_sum(np.exp(load(x, mask, hidden=-np.inf)))), like=x)


def flushing(kernel: Kernel) -> Kernel:
    """Results below the smallest normal come out as 0."""

    def flushed(x, mask=None):
        result = kernel(x, mask)
        return np.where(np.abs(result) < ml_dtypes.finfo(x.dtype).smallest_normal, np.zeros(1, x.dtype), result)

    return flushed


def exp_by_log2_e(log2_e: float) -> Kernel:
    """exp2(x log2 e) with a constant of too few digits."""
    return lambda values: np.exp2(values * values.dtype.type(log2_e))


def bfloat16_exp(values: Array) -> Array:
    """exp2(x log2 e) with the constant and the product in bfloat16."""
    product = values.astype(ml_dtypes.bfloat16) * ml_dtypes.bfloat16(np.log2(np.e))
    return np.exp2(product.astype(values.dtype))


def half_precision_exp(values: Array) -> Array:
    return np.exp(values.astype(np.float16)).astype(values.dtype)


def contracted_shift(x, mask=None):
    """exp2(fma(x, c, -round(m c))): the product is exact where it is subtracted, and rounded where it was stored."""
    values = load(x, mask, hidden=-np.inf)
    c = np.float32(np.log2(np.e))
    stored = (subtractable(row_maximum(values)) * c)[:, None]
    exact = values.astype(np.longdouble) * np.longdouble(c) - stored.astype(np.longdouble)
    weights = np.exp2(exact.astype(np.float32))
    return store(weights / nonzero(pairwise_sum(weights))[:, None], like=x)


BF16_MIN = float(ml_dtypes.finfo(ml_dtypes.bfloat16).min)


def mask_added(value: float, softmax: Kernel | None = None) -> Kernel:
    """``value`` is added to hidden elements in the storage format."""

    def kernel(x, mask=None):
        return (softmax or softmax_by())(x if mask is None else x + np.where(mask, 0, value).astype(x.dtype))

    return kernel
