"""Row semantics of rms_norm and layer_norm: DESIGN.md, section 5, cell by cell, in every format."""

import math
from typing import NamedTuple

import numpy as np
import pytest

from oracles.formats import Format
from oracles.operator import Inputs
from test_oracles_inputs import INF, NAN, each_format, given
from test_oracles_semantics import ANY, MINUS_NAN, Answer, answers, same

EPS = 0.25


class Cell(NamedTuple):
    """A row and what its norm is."""

    row: list[float]
    right: list[Answer]
    eps: float = EPS
    weight: list[float] | None = None
    bias: list[float] | None = None


ROOT_HALF = math.sqrt(0.5)

RMS_NORM = {
    "nothing": Cell([], []),
    "one": Cell([-3], [-1], eps=0),
    "pythagoras": Cell([3, 4], [3 / math.sqrt(12.5), 4 / math.sqrt(12.5)], eps=0),
    "eps-inside-the-root": Cell([0.5, -0.5], [ROOT_HALF, -ROOT_HALF]),
    "weight-then-bias": Cell([1, -1], [6, -1], eps=0, weight=[2, 5], bias=[4, 4]),
    "mean-stays": Cell([2, 2, 2], [1, 1, 1], eps=0),
    "zeros": Cell([0, -0.0, 0], [0, 0, 0]),
    "zeros-with-bias": Cell([0, 0], [4, -1], weight=[2, 3], bias=[4, -1]),
    "zeros-eps-0": Cell([0, -0.0, 0], [NAN] * 3, eps=0),
    "zeros-eps-0-with-bias": Cell([0, 0], [NAN] * 2, eps=0, weight=[2, 3], bias=[4, -1]),
    "one-zero-eps-0": Cell([0], [NAN], eps=0),
    "inf": Cell([1, INF, -2], [0, NAN, 0]),
    "inf-eps-0": Cell([1, INF, -2], [0, NAN, 0], eps=0),
    "inf-with-weight-and-bias": Cell([1, INF, -2], [0.5, NAN, -1], weight=[2, 3, 4], bias=[0.5, 0.5, -1]),
    "minus-inf": Cell([-INF, 1, -2], [NAN, 0, 0]),
    "both-infinities": Cell([INF, 1, -INF], [NAN, 0, NAN]),
    "nothing-but-inf": Cell([INF], [NAN]),
    "inf-beside-zero": Cell([0, INF], [0, NAN]),
    "infinite-weight": Cell([2, 2], [ANY, 1], eps=0, weight=[INF, 1]),
    "nan-weight": Cell([2, 2], [1, ANY], eps=0, weight=[1, NAN]),
    "infinite-bias": Cell([2, 2], [ANY, 1], eps=0, bias=[-INF, 0]),
    "nan-bias": Cell([2, 2], [1, ANY], eps=0, bias=[0, NAN]),
}

LAYER_NORM = {
    "nothing": Cell([], []),
    "two": Cell([1, 3], [-1, 1], eps=0),
    "five": Cell([6, 5, 5, 5, 5], [2, -0.5, -0.5, -0.5, -0.5], eps=0),
    "eps-inside-the-root": Cell([0.5, -0.5], [ROOT_HALF, -ROOT_HALF]),
    "weight-then-bias": Cell([1, -1], [6, -1], eps=0, weight=[2, 5], bias=[4, 4]),
    "constant": Cell([5, 5, 5], [0, 0, 0]),
    "constant-with-bias": Cell([5, 5, 5], [1, 2, -3], weight=[7, 7, 7], bias=[1, 2, -3]),
    "constant-eps-0": Cell([5, 5, 5], [ANY] * 3, eps=0),
    "constant-eps-0-with-bias": Cell([5, 5], [ANY] * 2, eps=0, bias=[1, 2]),
    "one": Cell([5], [-3], bias=[-3]),
    "one-eps-0": Cell([5], [NAN], eps=0),
    "one-eps-0-with-bias": Cell([5], [NAN], eps=0, bias=[1]),
    "zeros": Cell([0, 0], [0, 0]),
    "zeros-with-bias": Cell([0, 0], [4, -1], weight=[2, 3], bias=[4, -1]),
    "zeros-eps-0": Cell([0, -0.0, 0], [NAN] * 3, eps=0),
    "inf": Cell([1, INF, -2], [NAN] * 3),
    "inf-with-bias": Cell([1, INF, -2], [NAN] * 3, bias=[1, 1, 1]),
    "minus-inf": Cell([-INF, 1, -2], [NAN] * 3),
    "both-infinities": Cell([INF, 1, -INF], [NAN] * 3),
    "nothing-but-inf": Cell([INF, INF], [NAN] * 2, eps=0),
    "infinite-weight": Cell([1, 3], [ANY, 1], eps=0, weight=[INF, 1]),
    "nan-weight": Cell([1, 3], [-1, ANY], eps=0, weight=[1, NAN]),
    "infinite-bias": Cell([1, 3], [ANY, 1], eps=0, bias=[-INF, 0]),
    "nan-bias": Cell([1, 3], [-1, ANY], eps=0, bias=[0, NAN]),
}

# A NaN anywhere spoils the row, whatever stands beside it.
SPOILT = {
    "nan-first": [NAN, 1, 2],
    "nan-in-the-middle": [1, NAN, 2],
    "nan-last": [1, 2, NAN],
    "nan-with-its-sign-set": [1, MINUS_NAN, 2],
    "nan-beside-inf": [INF, NAN, 1],
    "nan-beside-minus-inf": [-INF, 1, NAN],
    "nan-among-zeros": [0, NAN, 0],
    "nothing-but-nan": [NAN],
}

CELLS = [("rms_norm", *c) for c in RMS_NORM.items()] + [("layer_norm", *c) for c in LAYER_NORM.items()]

each_norm = pytest.mark.parametrize("op", ["rms_norm", "layer_norm"])


def inputs_of(cell: Cell, fmt: Format) -> Inputs:
    return given(fmt, cell.row, weight=cell.weight, bias=cell.bias, eps=cell.eps)


@each_format
@pytest.mark.parametrize(("op", "cell"), [pytest.param(op, cell, id=f"{op}-{name}") for op, name, cell in CELLS])
def test_norms(op: str, cell: Cell, fmt: Format):
    assert same(answers(op, inputs_of(cell, fmt)), cell.right, fmt)


@each_format
@pytest.mark.parametrize("eps", [0.0, EPS])
@pytest.mark.parametrize("row", SPOILT.values(), ids=SPOILT)
@each_norm
def test_a_nan_spoils_all_of_its_row_and_no_other(op: str, row: list[float], eps: float, fmt: Format):
    ones = [1.0] * len(row)
    assert same(answers(op, given(fmt, row, eps=eps)), [NAN] * len(row), fmt)
    assert same(answers(op, given(fmt, row, weight=ones, bias=ones, eps=eps)), [NAN] * len(row), fmt)
    healthy = [float(i) for i in range(len(row))]
    batch = answers(op, given(fmt, [row, healthy], eps=EPS))
    assert same(batch[len(row) :], answers(op, given(fmt, healthy, eps=EPS)), fmt)


@each_format
@each_norm
def test_squares_that_overflow_or_underflow_the_format_are_right(op: str, fmt: Format):
    signs = [1, -1, -1, 1]
    for size in (fmt.largest, fmt.smallest_normal, fmt.smallest_subnormal):
        row = [s * size for s in signs]
        assert same(answers(op, given(fmt, row, eps=0.0)), signs, fmt)
    huge = [s * fmt.largest for s in signs]
    assert same(answers(op, given(fmt, huge, eps=EPS)), signs, fmt)


@each_format
@each_norm
def test_batches_without_rows_or_columns(op: str, fmt: Format):
    for shape in ((0, 0), (0, 5), (3, 0)):
        affine = {name: np.ones(shape[1], fmt.dtype) for name in ("weight", "bias")}
        for eps in (0.0, EPS):
            assert answers(op, Inputs(fmt, {"x": np.zeros(shape, fmt.dtype), **affine}, {"eps": eps})) == []
