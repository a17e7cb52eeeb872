"""Row semantics of the reductions and the softmax family: DESIGN.md, section 5, cell by cell, in every format.

Each row stands as it is, and once more with a mask and everything that would do harm in the hidden places.
"""

import math

import numpy as np
import pytest

from oracles.bounds import ErrorModel
from oracles.catalogue import OPERATORS
from oracles.classes import ElementClass
from oracles.formats import FORMATS, Format, format_named
from oracles.operator import Inputs
from oracles.truth import compute_truth
from properties.masks import hostile_values
from test_oracles_inputs import INF, NAN, each_format, given

ANY = "any"
MINUS_NAN = float(np.copysign(NAN, -1.0))
Answer = float | str

REDUCTIONS = ("sum", "mean", "var", "max", "logsumexp")
LOG_OF_E_AND_E2 = math.log(math.exp(1) + math.exp(2))

# Row, then what sum, mean, var, max and logsumexp of it are.
REDUCED: dict[str, tuple[list[float], tuple[float, ...]]] = {
    "nothing": ([], (0, NAN, NAN, -INF, -INF)),
    "one": ([3], (3, 3, 0, 3, 3)),
    "numbers": ([1, 2, 3, -2], (4, 1, 3.5, 3, math.log(sum(map(math.exp, [1, 2, 3, -2]))))),
    "zeros-of-both-signs": ([-0.0, 0.0], (0, 0, 0, 0, math.log(2))),
    "nan-first": ([NAN, 1, 2], (NAN,) * 5),
    "nan-in-the-middle": ([1, NAN, 2], (NAN,) * 5),
    "nan-last": ([1, 2, NAN], (NAN,) * 5),
    "nan-with-its-sign-set": ([1, MINUS_NAN, 2], (NAN,) * 5),
    "nothing-but-nan": ([NAN], (NAN,) * 5),
    "inf": ([1, INF, 2], (INF, INF, NAN, INF, INF)),
    "nothing-but-inf": ([INF, INF], (INF, INF, NAN, INF, INF)),
    "minus-inf": ([1, -INF, 2], (-INF, -INF, NAN, 2, LOG_OF_E_AND_E2)),
    "minus-inf-first": ([-INF, 1, 2], (-INF, -INF, NAN, 2, LOG_OF_E_AND_E2)),
    "nothing-but-minus-inf": ([-INF, -INF, -INF], (-INF, -INF, NAN, -INF, -INF)),
    "both-infinities": ([INF, 1, -INF], (NAN, NAN, NAN, INF, INF)),
    "inf-beside-nan": ([INF, NAN, 1], (NAN,) * 5),
    "minus-inf-beside-nan": ([NAN, -INF], (NAN,) * 5),
}

# Row, then its softmax; EMPTY stands for whatever the convention makes of a row without elements.
EMPTY = "empty"
SHARES = [1 / (1 + math.e + math.e**2), math.e / (1 + math.e + math.e**2), math.e**2 / (1 + math.e + math.e**2)]
SOFTMAX: dict[str, tuple[list[float], list[Answer]]] = {
    "nothing": ([], []),
    "one": ([7], [1]),
    "numbers": ([1, 2, 3], SHARES),
    "nan-first": ([NAN, 1, 2], [NAN] * 3),
    "nan-in-the-middle": ([1, NAN, 2], [NAN] * 3),
    "nan-last": ([1, 2, NAN], [NAN] * 3),
    "nan-with-its-sign-set": ([1, MINUS_NAN, 2], [NAN] * 3),
    "inf": ([1, INF, 2], [NAN] * 3),
    "inf-beside-nan": ([INF, NAN], [NAN] * 2),
    "minus-inf": ([5, -INF, 5], [0.5, 0, 0.5]),
    "minus-inf-first": ([-INF, 5], [0, 1]),
    "nothing-but-minus-inf": ([-INF, -INF], [EMPTY] * 2),
    "minus-inf-beside-nan": ([NAN, -INF], [NAN, ANY]),
    "both-infinities": ([INF, -INF, 1], [NAN, ANY, NAN]),
}


def answers(op: str, inputs: Inputs, masked_row: str = "zero") -> list[Answer]:
    """What the oracle demands of every output element, classes by their values."""
    (classes,), (truth,) = OPERATORS[op].classify(inputs, masked_row), compute_truth(OPERATORS[op], inputs)
    named = {ElementClass.NAN: NAN, ElementClass.POS_INF: INF, ElementClass.NEG_INF: -INF, ElementClass.ANY: ANY}
    return [named.get(c, v) for c, v in zip(classes.ravel(), truth.rounded.ravel().tolist(), strict=True)]


def same(got: list[Answer], wanted: list[Answer], fmt: Format) -> bool:
    """Equal, NaN to NaN, "any" to "any"; numbers with digits to half an ulp and the error of math.exp."""
    near = 1.01 * fmt.unit_roundoff + 1e-15
    return len(got) == len(wanted) and all(
        g == w if ANY in (g, w) else np.isclose(float(g), float(w), rtol=near, atol=0, equal_nan=True)
        for g, w in zip(got, wanted, strict=True)
    )


def concealed(row: list[float], fmt: Format) -> tuple[Inputs, list[bool]]:
    """The same visible elements with all the hostile values before, between and behind them."""
    bad = hostile_values(np.array(row).astype(fmt.dtype), np.ones(len(row), bool), fmt).astype(np.float64).tolist()
    parts = [(bad[0], False), *[p for i, x in enumerate(row) for p in ((x, True), (bad[(i + 1) % len(bad)], False))]]
    contents, mask = zip(*parts, *[(b, False) for b in bad], strict=True)
    return given(fmt, contents, mask=mask), list(mask)


@each_format
@pytest.mark.parametrize("cell", REDUCED)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op: str, cell: str, fmt: Format):
    row, columns = REDUCED[cell]
    wanted: list[Answer] = [columns[REDUCTIONS.index(op)]]
    assert same(answers(op, given(fmt, row)), wanted, fmt)
    assert same(answers(op, given(fmt, row, mask=[True] * len(row))), wanted, fmt)
    assert same(answers(op, concealed(row, fmt)[0]), wanted, fmt)


def as_log(answer: Answer) -> Answer:
    if isinstance(answer, str) or math.isnan(answer):
        return answer
    return math.log(answer) if answer else -INF


@each_format
@pytest.mark.parametrize("masked_row", ["zero", "nan"])
@pytest.mark.parametrize("cell", SOFTMAX)
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_softmaxes(op: str, cell: str, masked_row: str, fmt: Format):
    row, shown = SOFTMAX[cell]
    empty: Answer = 0.0 if masked_row == "zero" else NAN
    shown = [empty if s == EMPTY else s for s in shown]
    if op == "log_softmax":
        shown, empty = [as_log(s) for s in shown], as_log(empty)
    assert same(answers(op, given(fmt, row), masked_row), shown, fmt)
    inputs, mask = concealed(row, fmt)
    nothing_shown, spoilt = all(x == -INF for x in row), any(math.isnan(x) or x == INF for x in row)
    hidden = empty if nothing_shown else ANY if spoilt else as_log(0.0) if op == "log_softmax" else 0.0
    values = iter(shown)
    assert same(answers(op, inputs, masked_row), [next(values) if m else hidden for m in mask], fmt)


@each_format
@pytest.mark.parametrize("op", [name for name, op in OPERATORS.items() if "mask" in op.optional])
def test_batches_without_rows_or_columns(op: str, fmt: Format):
    for shape in ((0, 0), (0, 5), (3, 0)):
        inputs = Inputs(fmt, {"x": np.zeros(shape, fmt.dtype), "mask": np.ones(shape, bool)})
        (classes,), (truth,) = OPERATORS[op].classify(inputs, "zero"), compute_truth(OPERATORS[op], inputs)
        assert classes.shape == truth.rounded.shape == (shape if "softmax" in op else shape[:1])


@each_format
def test_masked_elements_are_exactly_zero(fmt: Format):
    """Not merely small: no error is allowed there."""
    inputs = given(fmt, [1, 2, -INF, 3], mask=[True, False, True, True])
    (truth,) = compute_truth(OPERATORS["softmax"], inputs)
    hidden = [1, 2]
    assert truth.enclosure.value()[0, hidden].tolist() == truth.enclosure.radius[0, hidden].tolist() == [0, 0]
    (bound,) = OPERATORS["softmax"].bound(inputs, (truth.enclosure.value(),), ErrorModel(fmt))
    assert bound[0, hidden].tolist() == [0, 0]


@pytest.mark.parametrize("op", ["sum", "mean"])
@each_format
def test_sums_beyond_the_accumulator_are_not_promised(fmt: Format, op: str):
    """Order decides between a number and infinity: the value stays what it is, and its bound is infinite."""
    big = fmt.largest / 2 * 1.5
    x = [[big, big, -big], [big, -big / 4, 1], [big, INF, big]]
    inputs = given(fmt, x)
    (truth,) = compute_truth(OPERATORS[op], inputs)
    assert OPERATORS[op].classify(inputs, "zero")[0].tolist() == [ElementClass.VALUE] * 2 + [ElementClass.POS_INF]
    for accumulate in ("float32", "float64"):
        with np.errstate(invalid="ignore"):
            model = ErrorModel(format_named(accumulate))
            (bound,) = OPERATORS[op].bound(inputs, (truth.enclosure.value(inputs.wide.type),), model)
        overflows = fmt.emax >= FORMATS[accumulate].emax
        assert (bound[0] == INF) == overflows
        assert np.isfinite(bound[1]) or FORMATS[accumulate].emax < fmt.emax
