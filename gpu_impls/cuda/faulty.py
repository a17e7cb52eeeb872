"""Faulty CUDA kernels, kept to test the harness; faulty.cu tells what is wrong in each.

Those that hang or take the device down are in tests/misbehaving_cuda.py.
"""

from gpu_impls.backends import CUPY as cupy
from gpu_impls.cuda.kernels import BLOCK, faulty_kernel
from gpu_impls.cuda.launch import Array, Kernel, map_rows, norm_rows, reduce_rows


def kernel(name: str) -> Kernel:
    return Kernel("faulty", name, BLOCK, flush=False)


WARP_0 = "the sum reaches warp 0 alone: from the 33rd element on, rows are divided by a part of it"


@faulty_kernel("softmax", dict.fromkeys(("accuracy", "special_values", "masks"), WARP_0))
def shuffle_broadcast(x: Array, mask: Array | None = None, out: Array | None = None) -> Array:
    """Faulty: a scalar broadcast by a shuffle."""
    return map_rows(kernel("shuffle_broadcast"), x, mask, out)


ONE_SLOT = "all lanes write s_sum[0]: the last to come wins"


@faulty_kernel("sum", dict.fromkeys(("accuracy", "special_values", "masks"), ONE_SLOT), deterministic=False)
def one_slot(x: Array, mask: Array | None = None, out: Array | None = None) -> Array:
    """Faulty: no lane == 0 around the store, and one slot for all warps."""
    return reduce_rows(kernel("one_slot"), x, mask, out)


IDENTITY_ZERO = "0 is not the identity of max: [-3, -5] gives 0"


@faulty_kernel("max", dict.fromkeys(("accuracy", "special_values"), IDENTITY_ZERO))
def identity_zero(x: Array, mask: Array | None = None, out: Array | None = None) -> Array:
    """Faulty: starts from 0."""
    return reduce_rows(kernel("identity_zero"), x, mask, out)


NO_BARRIER = "a late warp reads a part of the sum in the place of the maximum"


@faulty_kernel("softmax", dict.fromkeys(("accuracy", "masks"), NO_BARRIER), deterministic=False)
def missing_barrier(x: Array, mask: Array | None = None, out: Array | None = None) -> Array:
    """Faulty: no barrier before scratch is used again."""
    return map_rows(kernel("missing_barrier"), x, mask, out)


NOT_REDUCED = "each thread divides by its own part of the sum"


@faulty_kernel("softmax", dict.fromkeys(("accuracy", "special_values"), NOT_REDUCED))
def sum_not_reduced(x: Array, mask: Array | None = None, out: Array | None = None) -> Array:
    """Faulty: the sum's reduction left out."""
    return map_rows(kernel("sum_not_reduced"), x, mask, out)


TAIL = "the elements after the last multiple of four are never written"


@faulty_kernel("softmax", dict.fromkeys(("accuracy", "special_values", "masks"), TAIL))
def tail_not_written(x: Array, mask: Array | None = None, out: Array | None = None) -> Array:
    """Faulty: stores four at a time and forgets the rest. Its own buffer starts from NaN, lest old results fill in."""
    if out is None:
        out = cupy.full(x.shape, float("nan"), x.dtype)
    return map_rows(kernel("tail_not_written"), x, mask, out)


RESCALE = "sums below an outdone maximum are not rescaled"


@faulty_kernel("softmax", dict.fromkeys(("accuracy", "special_values"), RESCALE))
def rescale_lost(x: Array, mask: Array | None = None, out: Array | None = None) -> Array:
    """Faulty: the merge of two (m, l) adds l as they are."""
    return map_rows(kernel("rescale_lost"), x, mask, out)


TAIL_LANES = "lanes beyond the end add the last element again: 33 ones have the sum 64"


@faulty_kernel("sum", dict.fromkeys(("accuracy",), TAIL_LANES))
def tail_lanes_add(x: Array, mask: Array | None = None, out: Array | None = None) -> Array:
    """Faulty: the tail is clamped, not masked."""
    return reduce_rows(kernel("tail_lanes_add"), x, mask, out)


WARP_0_MOMENTS = "mean and variance of warp 0's elements stand for the row's, and know no NaN beyond them"


@faulty_kernel("layer_norm", dict.fromkeys(("accuracy", "special_values"), WARP_0_MOMENTS))
def moments_not_combined(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    out: Array | None = None,
) -> Array:
    """Faulty: partial moments are never merged across warps."""
    return norm_rows(kernel("moments_not_combined"), x, weight, bias, eps, out)


@faulty_kernel("layer_norm", {"accuracy": "E[x^2] - E[x]^2 cancels when the mean is large beside the spread"})
def squares_of_mean(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    out: Array | None = None,
) -> Array:
    """Faulty: one pass, two sums."""
    return norm_rows(kernel("squares_of_mean"), x, weight, bias, eps, out)
