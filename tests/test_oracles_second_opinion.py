"""The oracle against the second opinion, which shares nothing with it.

On drawn rows of every regime, with masks and hostile contents behind them, weights, biases and several eps: the
classes must agree, the oracle's ball must meet the other's, and what it rounds to must be the correct rounding.
test_oracles_mutants.py breaks every definition on purpose and asks this same comparison to find it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

import needs_flint  # noqa: F401
from oracles.arithmetics import Arithmetic
from oracles.classes import ElementClass
from oracles.enclosure import Enclosure
from oracles.formats import Format
from oracles.operator import Operator
from oracles.rounding import round_fraction
from oracles.truth import compute_truth
from properties.case import Case
from properties.masks import MASKS
from second_opinion import second_opinion
from test_oracles_inputs import cases_for, each_format, each_operator

Interval = tuple[Fraction, Fraction]

FAR_BELOW = Fraction(1, 2**1100)
NAMES = {
    ElementClass.NAN: "nan",
    ElementClass.POS_INF: "+inf",
    ElementClass.NEG_INF: "-inf",
    ElementClass.ANY: "any",
}


@dataclass(frozen=True)
class Disagreement:
    """What was found, and enough to find it again."""

    what: str
    case: str
    place: tuple[int, int]


@cache
def opinions(case: Case, masked_row: str = "zero") -> list[list[Any]]:
    """The second opinion on every row of a case."""
    inputs = case.inputs
    shared: dict[str, Any] = {
        name: inputs.arrays[name].astype(float).tolist() for name in ("weight", "bias") if name in inputs.arrays
    }
    if inputs.parameters:
        shared["eps"] = inputs.parameters["eps"]
    masks = [None] * case.rows if inputs.mask is None else inputs.mask.tolist()
    rows = inputs.x.astype(float).tolist()
    return [
        second_opinion(case.op, row, mask=mask, masked_row=masked_row, **shared)
        for row, mask in zip(rows, masks, strict=True)
    ]


def class_disagreements(op: Operator, case: Case, masked_row: str = "zero") -> list[Disagreement]:
    """Where one says NaN, an infinity or nothing, and the other does not."""
    (classes,) = op.classify(case.inputs, masked_row)
    found = []
    for (r, i), answer in _answers(case, masked_row):
        mine = NAMES.get(classes.reshape(case.rows, -1)[r, i])
        if mine != (answer if isinstance(answer, str) else None):
            found.append(Disagreement(f"class {mine} is {answer}", case.id, (r, i)))
    return found


def value_disagreements(op: Operator, case: Case, arithmetic: Arithmetic | None = None) -> list[Disagreement]:
    """Where the balls do not meet, or the rounded value is not the correct rounding."""
    inputs = case.inputs
    (classes,), (truth,) = op.classify(inputs, "zero"), compute_truth(op, inputs, arithmetic)
    width = classes.size // max(case.rows, 1)
    found = []
    for (r, i), answer in _answers(case):
        where = (r,) if op.outputs[0].per_row else (r, i)
        if not isinstance(answer, str) and classes.reshape(-1, width)[r, i] == ElementClass.VALUE:
            problem = _problem(_interval(truth.enclosure, where), float(truth.rounded[where]), answer, case.fmt)
            found += [Disagreement(problem, case.id, (r, i))] if problem else []
    return found


def _answers(case: Case, masked_row: str = "zero") -> Iterator[tuple[tuple[int, int], Any]]:
    for r, row in enumerate(opinions(case, masked_row)):
        yield from (((r, i), answer) for i, answer in enumerate(row))


def _problem(mine: Interval, rounded: float, answer: Any, fmt: Format) -> str | None:
    low, high = _ball(answer)
    if mine[0] > high + FAR_BELOW or mine[1] < low - FAR_BELOW:
        return f"balls apart: {float(mine[0])} and {answer}"
    ends = {round_fraction(low, fmt), round_fraction(high, fmt)}
    return None if len(ends) > 1 or rounded in ends else f"rounded to {rounded}, right is {ends}"


def _interval(enclosure: Enclosure, where: Sequence[int]) -> Interval:
    middle = enclosure.fraction(tuple(where))
    reach = Fraction(float(enclosure.radius[where])) * Fraction(2) ** int(enclosure.exponent[where])
    return middle - reach, middle + reach


def _ball(answer: Any) -> Interval:
    """The bounds of a ball of python-flint; what is far below every format is 0, give or take that."""
    middle, radius = _exact(answer.mid()), _exact(answer.rad())
    return (middle or Fraction(0)) - (radius or FAR_BELOW), (middle or Fraction(0)) + (radius or FAR_BELOW)


def _exact(point: Any) -> Fraction | None:
    mantissa, exponent = (int(part) for part in point.man_exp())
    return mantissa * Fraction(2) ** exponent if exponent > -60_000 else None


@each_format
@each_operator
def test_classes_agree(op: Operator, fmt: Format):
    for seed in range(3):
        for case in cases_for(op.name, fmt.name, seed):
            for masked_row in ("zero", "nan"):
                assert class_disagreements(op, case, masked_row) == []


@each_format
@each_operator
def test_values_agree(op: Operator, fmt: Format):
    for seed in range(3):
        for case in cases_for(op.name, fmt.name, seed):
            assert value_disagreements(op, case) == []


@pytest.mark.parametrize("op", ["sum", "mean", "var", "max", "logsumexp", "softmax", "log_softmax"])
def test_the_cases_compare_much_of_everything(op: str):
    """Or an agreement would mean nothing."""
    cases = [case for seed in range(3) for case in cases_for(op, "float32", seed)]
    answers = [a for case in cases for _, a in _answers(case)]
    assert sum(not isinstance(a, str) for a in answers) > 100
    assert "nan" in answers
    assert {case.mask for case in cases} >= set(MASKS)
    assert any(not case.inputs.visible.any(axis=-1).all() for case in cases if case.n)
