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

    Elements that are no VALUE, and masked ones, hold an exact 0.
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
        results = arithmetic.evaluate(op.define, _arguments(op, inputs, r, visible[r]), FIRST_PRECISION)
        for enclosure, place, result in zip(enclosures, _places(op, r, visible[r]), results, strict=True):
            enclosure.put(place, result.enclosure())
    truths, still_open = [], []
    for enclosure, c in zip(enclosures, classes, strict=True):
        rounded, decided = round_enclosure(enclosure, inputs.fmt)
        truths.append(Truth(enclosure, rounded, arithmetic.ground))
        still_open.append((c == ElementClass.VALUE) & ~(decided & _is_sharp(enclosure, inputs.fmt)))
    for r in np.flatnonzero(sum(o.reshape(len(o), -1).any(axis=-1) for o in still_open if o.size)).tolist():
        _decide_row(op, inputs, r, visible[r], arithmetic, truths, [o[r] for o in still_open])
    return tuple(truths)


def _rows_with_values(visible: Mask, classes: tuple[Classes, ...]) -> list[int]:
    """The rows on which the definition is evaluated."""
    wanted = visible.any(axis=-1)
    values = [(c == ElementClass.VALUE).reshape(len(c), -1).any(axis=-1) for c in classes if c.size]
    return np.flatnonzero(wanted & np.logical_or.reduce(values)).tolist() if values else []


def _places(op: Operator, r: int, visible: Mask) -> list[Any]:
    """Where row ``r``'s results belong: a per-row output at its row, the others where the row is visible."""
    return [slice(r, r + 1) if o.per_row else (r, np.flatnonzero(visible)) for o in op.outputs]


def _arguments(op: Operator, inputs: Inputs, r: int, visible: Mask) -> dict[str, Any]:
    """The definition's arguments: row ``r``'s visible elements, the other inputs and the parameters, exactly."""
    others = {k: inputs.arrays[k].astype(np.float64) for k in op.optional if k != "mask" and k in inputs.arrays}
    parameters = {name: float(inputs.parameters[name]) for name in op.parameters}
    return {"x": inputs.x64[r, visible], **others, **parameters}


def _decide_row(
    op: Operator,
    inputs: Inputs,
    r: int,
    visible: Mask,
    arithmetic: Arithmetic,
    truths: list[Truth],
    still_open: list[Array],
) -> None:
    """Evaluate row ``r`` with more and more precision and write its open elements into ``truths``."""
    arguments, places = _arguments(op, inputs, r, visible), _places(op, r, visible)
    # Open elements as (output, index into the row's results).
    wanted = [
        (k, i)
        for k, (output, o) in enumerate(zip(op.outputs, still_open, strict=True))
        for i in ([0] if output.per_row else np.flatnonzero(o[places[k][1]]).tolist())
    ]
    precision = FIRST_PRECISION
    while wanted:
        precision *= 2
        results = arithmetic.evaluate(op.define, arguments, precision)
        intervals = {(k, i): results[k].interval(i) for k, i in wanted}
        wanted = [place for place, ends in intervals.items() if not _settled(*ends, inputs.fmt, precision)]
        for k, i in intervals.keys() - wanted:
            low, high = intervals[k, i]
            where = r if op.outputs[k].per_row else (r, places[k][1][i])
            truths[k].enclosure.put(where, Enclosure.around((low + high) / 2, (high - low) / 2))
            truths[k].rounded[where] = _round_interval(low, high, inputs.fmt)


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
