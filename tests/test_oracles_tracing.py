"""Bounds traced from NumPy's code: what is written out, and what is refused rather than traced wrongly."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracles.arithmetics.tracing import Plain, Trace


def traced() -> tuple[Plain, Plain]:
    """An element, and one value of its row."""
    x = Trace(5).row("x[i]")
    return x, x.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda x, s: x + s, "(x[i] + sum(x[i]))"),
        (lambda x, s: np.float64(2) * x, "(number_0 * x[i])"),
        (lambda x, s: np.where(x > 0, s, np.zeros((1, 5))), "((x[i] > number_0) != 0 ? sum(x[i]) : number_0)"),
        (lambda x, s: x / s, "(x[i] * (1.0 / sum(x[i])))"),
        (lambda x, s: x**3, "(x[i] * (x[i] * x[i]))"),
        (lambda x, s: x.max(axis=-1, initial=0.0), "(larger(max(x[i]), number_0))"),
        (lambda x, s: s[:, 0], "sum(x[i])"),
        (lambda x, s: x[:, :1], "x[0]"),
        (lambda x, s: np.frexp(s)[1], "(exponent_of(sum(x[i])))"),
        (lambda x, s: x.shape[-1] * s, "(number_0 * sum(x[i]))"),
        (lambda x, s: (x == s).any(axis=-1), "((larger(max((x[i] == sum(x[i]))), number_0)) > number_1)"),
    ],
)
def test_numpys_code_becomes_device_code(made: Callable[[Plain, Plain], Plain], text: str):
    assert made(*traced()).text == text


def test_what_is_made_of_a_row_alone_is_one_value_for_it():
    x, s = traced()
    assert [v.varies for v in (x, s, x + s, s * 2, x[:, :1], x.max(axis=-1))] == [
        True,
        False,
        True,
        False,
        False,
        False,
    ]


def test_a_sum_in_place_is_a_new_value():
    x, s = traced()
    before = s
    s |= x
    assert before.text == "sum(x[i])"
    assert s.text == "(sum(x[i]) != 0 || x[i] != 0)"


def test_equal_numbers_are_one_argument():
    trace = Trace(5)
    x = trace.row("x[i]")
    assert (x * 2 + 3 * x + 2).text == "(((x[i] * number_0) + (number_1 * x[i])) + number_0)"
    assert trace.numbers == [2.0, 3.0]


@pytest.mark.parametrize(
    "asked",
    [
        lambda x, s: x.sum(axis=0),
        lambda x, s: x.max(axis=None),
        lambda x, s: s.sum(axis=-1),
        lambda x, s: x.astype(np.int32),
        lambda x, s: x.astype(np.float32),
        lambda x, s: x**0.5,
        lambda x, s: x**0,
        lambda x, s: x // 2,
        lambda x, s: np.arange(5) * x,
        lambda x, s: np.sqrt(x, dtype=np.float32),
        lambda x, s: np.add(x, 1, out=np.zeros(1)),
        lambda x, s: np.where(x),
        lambda x, s: np.cumsum(x, axis=-1),
        lambda x, s: np.maximum.accumulate(x, axis=-1),
        lambda x, s: np.logical_or.reduce(x, axis=-1),
        lambda x, s: x[:, 0],
        lambda x, s: (x * 2)[:, :1],
        lambda x, s: x[::-1],
        lambda x, s: max(x, 0),
        lambda x, s: 1.0 if x > 0 else 0.0,
        lambda x, s: float(x),
    ],
)
def test_what_would_be_traced_wrongly_is_refused(asked: Callable[[Plain, Plain], Any]):
    with pytest.raises(TypeError):
        asked(*traced())
