"""One small fault against each law, and the right twins: what the tests of the laws run."""

import numpy as np

from faulty import softmax, total
from gpu_impls.call import GUARD_WORDS
from gpu_impls.numpy.precision import load, store
from gpu_impls.numpy.summation import sequential_sum


def rms_norm(x, weight=None, bias=None, eps=1e-6):
    """A right one."""
    values = load(x)
    root = np.sqrt(sequential_sum(values * values) / values.dtype.type(x.shape[-1]) + values.dtype.type(eps))
    z = values / root[:, None]
    z = z if weight is None else z * load(weight)
    return store(z if bias is None else z + load(bias), like=x)


def softmax_into(x, mask=None, out=None):
    """A right one with an out buffer."""
    return softmax(x, mask) if out is None else np.copyto(out, softmax(x, mask))


class EveryOtherRun:
    """Sums forwards and backwards in turn."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, x, mask=None):
        self.runs += 1
        values = load(x, mask)
        return store(sequential_sum(values if self.runs % 2 else values[:, ::-1]), like=x)


class OnceInThirty:
    """A race that is lost once in thirty runs, in one row."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, x, mask=None):
        self.runs += 1
        result = total(x, mask)
        if self.runs % 30 == 0 and len(result):
            result[len(result) // 2] = np.nextafter(result[len(result) // 2], np.inf)
        return result


def order_by_rows(x, mask=None):
    """Another order of additions from 256 rows on, as kernels choose another launch shape."""
    values = load(x, mask)
    return store(sequential_sum(values if len(x) < 256 else values[:, ::-1]), like=x)


def order_by_place(x, mask=None):
    """The last row is summed backwards: a ragged last block."""
    values = load(x, mask)
    if len(values) > 1:
        values[-1] = values[-1, ::-1].copy()
    return store(sequential_sum(values), like=x)


def writes_nan_to_zero(x, mask=None):
    result = total(x, mask)
    if np.isnan(x).any():
        x[np.isnan(x)] = 0
    return result


def writes_into_the_mask(x, mask=None):
    result = total(x, mask)
    if mask is not None:
        mask[:] = True
    return result


def ignores_strides(x, mask=None):
    """Reads the memory from its start, row after row."""
    memory = np.array(x).tobytes() if x.base is None else x.base.tobytes()
    return total(np.frombuffer(memory[: x.nbytes], x.dtype).reshape(x.shape), mask)


def assumes_a_row_stride_of_n(x, mask=None):
    """Heeds the stride between columns, and takes that between rows for granted."""
    return total(np.broadcast_to(x[:1], x.shape) if x.strides[0] != x.shape[-1] * x.itemsize else x, mask)


def leaves_out_the_tail(x, mask=None, out=None):
    """Writes whole vectors of four."""
    if out is None:
        return softmax(x, mask)
    whole = x.shape[-1] // 4 * 4
    out[:, :whole] = softmax(x, mask)[:, :whole]
    return out


def writes_whole_vectors(x, mask=None, out=None):
    """Writes whole vectors of four, beyond the end as well."""
    softmax_into(x, mask, out)
    if out is not None:
        out.base[GUARD_WORDS + out.size : GUARD_WORDS + -(-out.size // 4) * 4] = 0
    return softmax(x, mask) if out is None else out


def adds_to_out(x, mask=None, out=None):
    """Takes for granted that the buffer holds zeros."""
    result = softmax(x, mask)
    if out is None:
        return result
    out += result
    return out


def towards_zero(x, weight=None, bias=None, eps=1e-6):
    """One ulp off on one side only."""
    result = rms_norm(x, weight, bias, eps)
    return np.where(x > 0, np.nextafter(result, np.float32(0)), result)


def above_three(x, weight=None, bias=None, eps=1e-6):
    """One ulp off from a threshold on: no power of two leaves it where it is."""
    result = rms_norm(x, weight, bias, eps)
    return np.where(np.abs(x) > 3, np.nextafter(result, np.float32(0)), result)


def after_a_sum(norm, x, residual, weight, eps):
    updated = store(load(x) + load(residual), like=x)
    return norm(updated, weight, None, eps), updated


def fused_towards_zero(x, residual, weight=None, eps=1e-6):
    """``towards_zero`` after a right sum."""
    return after_a_sum(towards_zero, x, residual, weight, eps)


def fused_above_three(x, residual, weight=None, eps=1e-6):
    """``above_three`` after a right sum."""
    return after_a_sum(above_three, x, residual, weight, eps)


def negative_zeros(x, mask=None):
    """Weights that should vanish come out as the negative smallest subnormal."""
    result = softmax(x, mask)
    tiny = np.finfo(x.dtype).smallest_subnormal
    return np.where(result == 0, -tiny, result) if mask is None else result
