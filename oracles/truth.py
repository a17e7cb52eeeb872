"""The truth: an operator's exact results for given inputs, enclosed, correctly rounded, and cached on disk.

A definition is evaluated row by row on the visible elements. Elements whose rounding the first precision leaves open,
or whose enclosure is not far sharper than an ulp, are evaluated again with twice the precision; what is open at 4096
bits is a tie.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from oracles.arithmetics import BEST, RATIONAL, Arithmetic
from oracles.classes import Classes, ElementClass
from oracles.enclosure import Enclosure, Ground
from oracles.formats import Array, Format
from oracles.operator import Inputs, Mask, Operator
from oracles.rounding import round_enclosure, round_fraction
from oracles.ulp import ulp, ulp_exponents

FIRST_PRECISION = 128
LAST_PRECISION = 4096
# Enclosures are at most this wide, in ulps of the storage format, so that printed errors are right in every digit.
SHARP = 2.0**-30


@dataclass(frozen=True)
class Truth:
    """The exact results of one output: enclosures, and what each element rounds to in the storage format.

    Masked elements hold an exact 0. What elements hold that are no VALUE says nothing.
    """

    enclosure: Enclosure
    rounded: Array
    ground: Ground


def arithmetic_for(op: Operator) -> Arithmetic:
    """Fractions where the result is rational, else the best arithmetic installed."""
    return RATIONAL if op.rational else BEST


def compute_truth(op: Operator, inputs: Inputs, arithmetic: Arithmetic | None = None) -> tuple[Truth, ...]:
    """The exact results of ``op``, one :class:`Truth` per output."""
    arithmetic = arithmetic or arithmetic_for(op)
    classes = op.classify(inputs, "zero")
    enclosures = [Enclosure.empty(output.shape(inputs)) for output in op.outputs]
    visible = op.visible(inputs)
    for r in _rows_with_values(visible, classes):
        row = Row(op, inputs, r, visible[r])
        results = arithmetic.evaluate(op.define, row.arguments(), FIRST_PRECISION)
        for enclosure, place, result in zip(enclosures, row.places(), results, strict=True):
            enclosure.put(place, result.enclosure())
    truths, still_open = [], []
    for enclosure, c in zip(enclosures, classes, strict=True):
        rounded, decided = round_enclosure(enclosure, inputs.fmt)
        truths.append(Truth(enclosure, rounded, arithmetic.ground))
        still_open.append((c == ElementClass.VALUE) & ~(decided & _is_sharp(enclosure, inputs.fmt)))
    for r in np.flatnonzero(sum(o.reshape(len(o), -1).any(axis=-1) for o in still_open if o.size)).tolist():
        _decide(Row(op, inputs, r, visible[r]), arithmetic, truths, still_open)
    return tuple(truths)


def _rows_with_values(visible: Mask, classes: tuple[Classes, ...]) -> list[int]:
    """The rows on which the definition is evaluated."""
    wanted = visible.any(axis=-1)
    values = [(c == ElementClass.VALUE).reshape(len(c), -1).any(axis=-1) for c in classes if c.size]
    return np.flatnonzero(wanted & np.logical_or.reduce(values)).tolist() if values else []


@dataclass(frozen=True)
class Row:
    """One row of the inputs and its visible elements, (n,)."""

    op: Operator
    inputs: Inputs
    index: int
    visible: Mask

    def arguments(self) -> dict[str, Any]:
        """The definition's: the visible elements, the other inputs and the parameters, exactly."""
        arrays, parameters = self.inputs.arrays, self.inputs.parameters
        others = {k: arrays[k].astype(np.float64) for k in self.op.optional if k != "mask" and k in arrays}
        x = self.inputs.x64[self.index, self.visible]
        return {"x": x, **others, **{name: float(parameters[name]) for name in self.op.parameters}}

    def places(self) -> list[Any]:
        """Where the results belong: a per-row output at its row, the others where the row is visible."""
        r = self.index
        return [slice(r, r + 1) if o.per_row else (r, np.flatnonzero(self.visible)) for o in self.op.outputs]

    def open_elements(self, still_open: list[Array]) -> list[tuple[int, int]]:
        """Elements that are not decided yet, as (output, index into the row's results)."""
        return [
            (k, i)
            for k, (o, place) in enumerate(zip(still_open, self.places(), strict=True))
            for i in np.flatnonzero(o[place]).tolist()
        ]


def _decide(row: Row, arithmetic: Arithmetic, truths: list[Truth], still_open: list[Array]) -> None:
    """Evaluate a row with more and more precision and write its open elements into ``truths``."""
    arguments, places, fmt = row.arguments(), row.places(), row.inputs.fmt
    wanted = row.open_elements(still_open)
    precision = FIRST_PRECISION
    while wanted:
        precision *= 2
        results = arithmetic.evaluate(row.op.define, arguments, precision)
        intervals = {(k, i): results[k].interval(i) for k, i in wanted}
        wanted = [place for place, ends in intervals.items() if not _settled(*ends, fmt, precision)]
        for k, i in intervals.keys() - wanted:
            low, high = intervals[k, i]
            where = row.index if row.op.outputs[k].per_row else (row.index, places[k][1][i])
            truths[k].enclosure.put(where, Enclosure.around((low + high) / 2, (high - low) / 2))
            truths[k].rounded[where] = _round_interval(low, high, fmt)


def _is_sharp(enclosure: Enclosure, fmt: Format) -> Mask:
    unit = np.clip(ulp_exponents(enclosure, fmt) - enclosure.exponent, -1000, 1000)
    sharp: Mask = enclosure.radius <= SHARP * np.exp2(unit)
    return sharp


def _settled(low: Fraction, high: Fraction, fmt: Format, precision: int) -> bool:
    sharp = high - low <= Fraction(SHARP) * ulp((low + high) / 2, fmt)
    return precision >= LAST_PRECISION or (sharp and round_fraction(low, fmt) == round_fraction(high, fmt))


def _round_interval(low: Fraction, high: Fraction, fmt: Format) -> float:
    """What every point rounds to; where the ends differ, the tie between them, which goes to even."""
    below, above = round_fraction(low, fmt), round_fraction(high, fmt)
    if below == above or not np.isfinite([below, above]).all():
        return above if high > -low else below
    return round_fraction((Fraction(below) + Fraction(above)) / 2, fmt)
