"""Calls: what an implementation is handed, and what it is not asked for."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from faulty import made, row_case, total
from gpu_impls.call import call, unsupported
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation
from oracles.catalogue import OPERATORS
from oracles.formats import FORMATS
from properties.case import Case

NORM = row_case("rms_norm", [1.0, 2.0, 3.0], weight=[1, 2, 3], bias=[0, 0, 1], eps=1e-6)
MASKED = row_case("softmax", [1.0, 2.0, 3.0], mask=[True, False, True])


class Spy:
    """Keeps what it was called with."""

    def __init__(self, answer: Callable[[np.ndarray], Any]) -> None:
        self.answer = answer

    def __call__(self, x: np.ndarray, **keywords: Any) -> Any:
        self.x, self.keywords = x, keywords
        return self.answer(x)


def spied(case: Case) -> Spy:
    """A call of a function that takes anything."""
    spy = Spy(np.array)
    assert call(made(case.op, spy), case.inputs).reason is None
    return spy


def test_x_goes_by_position_and_all_else_by_keyword():
    spy = spied(NORM)
    assert spy.x.tolist() == [[1, 2, 3]]
    assert {k: np.asarray(v).tolist() for k, v in spy.keywords.items()} == {
        "weight": [1, 2, 3],
        "bias": [0, 0, 1],
        "eps": float(np.float32(1e-6)),
    }
    assert spied(MASKED).keywords["mask"].tolist() == [[True, False, True]]


@pytest.mark.parametrize("eps", [1e-5, 1e-12, 0.1, 0.0, 1.0])
@pytest.mark.parametrize("op", ["rms_norm", "layer_norm"])
def test_eps_is_always_passed_and_exactly_a_float32(op: str, eps: float):
    passed = spied(row_case(op, [1.0, 2.0], "float32", eps=eps)).keywords["eps"]
    assert isinstance(passed, float)
    assert passed == float(np.float32(eps))
    assert spied(row_case(op, [1.0, 2.0])).keywords["eps"] in (float(np.float32(1e-5)), float(np.float32(1e-6)))


def positional(x, weight=None, bias=None, eps=1e-6):
    return np.array(x)


def without_eps(x, *, weight=None, bias=None):
    return np.array(x)


@pytest.mark.parametrize("function", [positional, without_eps], ids=lambda f: f.__name__)
def test_only_parameters_that_the_function_has_are_passed(function: Callable[..., Any]):
    assert call(made("rms_norm", function), NORM.inputs).reason is None


@pytest.mark.parametrize("dtype", FORMATS)
def test_arrays_are_fresh_writable_and_in_the_storage_format(dtype: str):
    case = row_case("rms_norm", [1.0, 2.0], dtype, weight=[1, 2])
    spy = Spy(np.array)
    for _ in range(2):
        assert call(made("rms_norm", spy, (dtype,)), case.inputs).reason is None
        for array, given in ((spy.x, case.inputs.x), (spy.keywords["weight"], case.inputs.arrays["weight"])):
            assert array.flags.writeable
            assert array.flags.c_contiguous
            assert array.dtype == FORMATS[dtype].dtype
            assert not np.shares_memory(array, given)
    assert not case.inputs.x.flags.writeable


def test_the_result_is_a_copy():
    """An implementation that answers from a buffer of its own does not overwrite an earlier run."""
    buffer = np.zeros((1, 2), np.float32)

    def reused(x):
        buffer[...] = x
        return buffer

    first, _ = (call(made("softmax", reused), row_case("softmax", row).inputs) for row in ([1.0, 2.0], [3.0, 4.0]))
    assert first.outputs[0].tolist() == [[1, 2]]


def noisy(x, mask=None):
    np.log(np.zeros(2, np.float32)) / np.zeros(2, np.float32)
    warnings.warn("of its own", RuntimeWarning, stacklevel=1)
    return np.array(x)


def test_floating_point_errors_are_ignored_and_warnings_off():
    with np.errstate(all="raise"):
        assert call(made("softmax", noisy), row_case("softmax", [1.0, np.inf]).inputs).reason is None
        with pytest.raises(FloatingPointError):
            noisy(np.zeros(1))


@pytest.mark.parametrize(("rows", "n"), [(0, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("op", OPERATORS)
def test_no_rows_and_empty_rows_are_called_too(op: str, rows: int, n: int):
    outputs = OPERATORS[op].outputs

    def zeros(x, **residual):
        made = tuple(np.zeros(x.shape[:1] if output.per_row else x.shape, x.dtype) for output in outputs)
        return made if len(made) > 1 else made[0]

    spy = Spy(zeros)
    run = call(made(op, spy), Case(op, "float32", "standard_normal", rows, n).inputs)
    assert (run.reason, spy.x.shape) == (None, (rows, n))


UNSUPPORTED = {
    "dtype": (made("sum", total, ("bfloat16",)), "float32 is not among its dtypes (bfloat16)"),
    "short": (made("sum", total, min_length=3), "n = 2 is outside of min_length, max_length"),
    "long": (made("sum", total, max_length=1), "n = 2 is outside of min_length, max_length"),
    "mask": (made("sum", lambda x: x, name="f"), "it has no mask parameter"),
}


@pytest.mark.parametrize(("implementation", "why"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_what_is_not_offered_is_not_called(implementation: Implementation, why: str):
    inputs = row_case("sum", [1.0, 2.0], mask=[True, True]).inputs
    assert unsupported(implementation, inputs) == why
    run = call(implementation, inputs)
    assert (run.reason, run.detail) == (Reason.NOT_SUPPORTED, why)
