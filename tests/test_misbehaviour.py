"""Misbehaviour: whatever an implementation returns, raises or writes becomes a reason instead of an exception."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from faulty import made, row_case, softmax, total
from gpu_impls.call import GUARD_WORDS, call
from gpu_impls.outcome import Reason
from oracles.formats import FORMATS

MASKED = row_case("softmax", [1.0, 2.0, 3.0], mask=[True, False, True])
NORM = row_case("rms_norm", [1.0, 2.0, 3.0], weight=[1, 2, 3], bias=[0, 0, 1], eps=1e-6)


def raises(x, mask=None):
    raise RuntimeError("out of shared memory")


def exits(x, mask=None):
    raise SystemExit(1)


def as_list(x, mask=None):
    return softmax(x).tolist()


def as_nothing(x, mask=None):
    softmax(x)


def as_scalar(x, mask=None):
    return np.float32(1)


def as_two(x, mask=None):
    return softmax(x), softmax(x)


def wider(x, mask=None):
    return softmax(x).astype(np.float64)


def narrower(x, mask=None):
    return softmax(x).astype(ml_dtypes.bfloat16)


def reduced(x, mask=None):
    return softmax(x).max(axis=-1)


def flattened(x, mask=None):
    return softmax(x).ravel()


def into_x(x, mask=None):
    x[...] = softmax(x)
    return x


def into_x_a_sign(x, mask=None):
    x[..., 0] = -x[..., 0] * 0.0
    return np.zeros_like(x)


def into_mask(x, mask=None):
    mask[...] = True
    return softmax(x)


MISBEHAVIOUR = [
    (raises, Reason.RAISED, "RuntimeError: out of shared memory"),
    (exits, Reason.RAISED, "SystemExit: 1"),
    (as_list, Reason.WRONG_SHAPE, "returned a list, expected float32 (1, 3)"),
    (as_nothing, Reason.WRONG_SHAPE, "returned a NoneType, expected float32 (1, 3)"),
    (as_scalar, Reason.WRONG_SHAPE, "returned a float32, expected float32 (1, 3)"),
    (as_two, Reason.WRONG_SHAPE, "returned 2 outputs, expected 1"),
    (wider, Reason.WRONG_SHAPE, "returned float64 (1, 3), expected float32 (1, 3)"),
    (narrower, Reason.WRONG_SHAPE, "returned bfloat16 (1, 3), expected float32 (1, 3)"),
    (reduced, Reason.WRONG_SHAPE, "returned float32 (1,), expected float32 (1, 3)"),
    (flattened, Reason.WRONG_SHAPE, "returned float32 (3,), expected float32 (1, 3)"),
    (into_x, Reason.WROTE_INPUT, "x changed during the call"),
    (into_mask, Reason.WROTE_INPUT, "mask changed during the call"),
]


@pytest.mark.parametrize(("function", "reason", "detail"), MISBEHAVIOUR, ids=[f.__name__ for f, *_ in MISBEHAVIOUR])
def test_misbehaviour_becomes_a_reason(function: Callable[..., Any], reason: Reason, detail: str):
    run = call(made("softmax", function), MASKED.inputs)
    assert (run.reason, run.detail, run.outputs) == (reason, detail, ())


def test_the_sign_of_a_zero_counts_as_written():
    assert call(made("softmax", into_x_a_sign), row_case("softmax", [0.0, 1.0]).inputs).reason is Reason.WROTE_INPUT


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_writing_into_what_is_no_row_is_seen(name: str):
    def writes(x, weight=None, bias=None, eps=0.0):
        {"weight": weight, "bias": bias}[name][-1] += 1
        return np.array(x)

    run = call(made("rms_norm", writes), NORM.inputs)
    assert (run.reason, run.detail) == (Reason.WROTE_INPUT, f"{name} changed during the call")


def test_an_interrupt_is_no_outcome():
    def interrupted(x, mask=None):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(made("softmax", interrupted), MASKED.inputs)


def fills(x, mask=None, out=None):
    out[...] = softmax(x, mask)
    return out


def fills_and_returns_nothing(x, mask=None, out=None):
    fills(x, mask, out)


def fills_and_returns_a_copy(x, mask=None, out=None):
    return fills(x, mask, out).copy()


def leaves_out_the_tail(x, mask=None, out=None):
    out[..., :-1] = softmax(x, mask)[..., :-1]
    return out


def leaves_out_all(x, mask=None, out=None):
    return out


def returns_something_else(x, mask=None, out=None):
    return fills(x, mask, out) * 0.5


def returns_a_list(x, mask=None, out=None):
    return fills(x, mask, out).tolist()


def beside(place: int) -> Callable[..., Any]:
    """Writes one element of the memory that the buffer lies in, as a kernel that strays does."""

    def strays(x, mask=None, out=None):
        fills(x, mask, out).base[place] = 0
        return out

    strays.__name__ = f"writes_at_{place}"
    return strays


def nan_everywhere(x, mask=None, out=None):
    out[...] = np.nan
    return out


BUFFERS = [
    (fills, None),
    (fills_and_returns_nothing, None),
    (fills_and_returns_a_copy, None),
    (nan_everywhere, None),
    (leaves_out_the_tail, Reason.UNWRITTEN),
    (leaves_out_all, Reason.UNWRITTEN),
    (returns_something_else, Reason.UNWRITTEN),
    (returns_a_list, Reason.UNWRITTEN),
    (beside(0), Reason.GUARD),
    (beside(GUARD_WORDS - 1), Reason.GUARD),
    (beside(-GUARD_WORDS), Reason.GUARD),
    (beside(-1), Reason.GUARD),
    (into_x, Reason.WROTE_INPUT),
    (raises, Reason.RAISED),
]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("function", "reason"), BUFFERS, ids=[f.__name__ for f, _ in BUFFERS])
def test_an_out_buffer_is_filled_and_nothing_beside_it(function: Callable[..., Any], reason: Reason | None, dtype: str):
    def taking_out(x, mask=None, out=None):
        return function(x, mask=mask) if function in (into_x, raises) else function(x, mask, out)

    case = row_case("softmax", [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], dtype)
    run = call(made("softmax", taking_out, (dtype,)), case.inputs, with_out=True)
    assert run.reason is reason
    if function is fills:
        assert run.outputs[0].tolist() == softmax(case.inputs.x).tolist()


@pytest.mark.parametrize(("rows", "n"), [(0, 3), (2, 0), (1, 1)])
def test_an_out_buffer_of_any_size(rows: int, n: int):
    case = row_case("softmax", np.ones((rows, n)))
    assert call(made("softmax", fills), case.inputs, with_out=True).reason is None


def test_one_output_per_row_has_a_buffer_of_rows():
    def into(x, out=None):
        assert out.shape == (2,)
        out[...] = total(x)

    run = call(made("sum", into), row_case("sum", [[1.0, 2.0], [3.0, 4.0]]).inputs, with_out=True)
    assert run.outputs[0].tolist() == [3, 7]
