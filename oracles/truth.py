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
from oracles.classes import ElementClass
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
    shapes = [output.shape(inputs) for output in op.outputs]
    truths = [Truth(Enclosure.empty(s), np.zeros(s, inputs.fmt.dtype), arithmetic.ground) for s in shapes]
    classes = op.classify(inputs, "zero")
    visible = op.visible(inputs)
    for r in np.flatnonzero(visible.any(axis=-1)).tolist():
        # A per-row output stands at its row; the others stand where the row is visible.
        places = [slice(r, r + 1) if output.per_row else (r, np.flatnonzero(visible[r])) for output in op.outputs]
        wanted = [c[p] == ElementClass.VALUE for c, p in zip(classes, places, strict=True)]
        if any(w.any() for w in wanted):
            solved = solve_row(op, _arguments(op, inputs, r, visible[r]), inputs.fmt, arithmetic, wanted)
            for truth, place, (enclosure, rounded) in zip(truths, places, solved, strict=True):
                truth.enclosure.put(place, enclosure)
                truth.rounded[place] = rounded
    return tuple(truths)


def _arguments(op: Operator, inputs: Inputs, r: int, visible: Mask) -> dict[str, Any]:
    """The definition's arguments: row ``r``'s visible elements, the other inputs and the parameters, exactly."""
    others = {k: inputs.arrays[k].astype(np.float64) for k in op.optional if k != "mask" and k in inputs.arrays}
    parameters = {name: float(inputs.parameters[name]) for name in op.parameters}
    return {"x": inputs.x[r].astype(np.float64)[visible], **others, **parameters}


def solve_row(
    op: Operator, arguments: dict[str, Any], fmt: Format, arithmetic: Arithmetic, wanted: list[Mask]
) -> list[tuple[Enclosure, Array]]:
    """Each output's enclosures and correctly rounded values for one row; ``wanted`` elements get decided."""
    results = arithmetic.evaluate(op.define, arguments, FIRST_PRECISION)
    solved, still_open = [], []
    for result, wants in zip(results, wanted, strict=True):
        enclosure = result.enclosure()
        rounded, decided = round_enclosure(enclosure, fmt)
        solved.append((enclosure, rounded))
        still_open.append(np.flatnonzero(wants & ~(decided & _is_sharp(enclosure, fmt))).tolist())
    precision = FIRST_PRECISION
    while any(still_open):
        precision *= 2
        results = arithmetic.evaluate(op.define, arguments, precision)
        for k, (enclosure, rounded) in enumerate(solved):
            intervals = {i: results[k].interval(i) for i in still_open[k]}
            still_open[k] = [i for i, v in intervals.items() if not _settled(*v, fmt, precision)]
            for i in intervals.keys() - still_open[k]:
                low, high = intervals[i]
                enclosure.put(i, Enclosure.around((low + high) / 2, (high - low) / 2))
                rounded[i] = _round_interval(low, high, fmt)
    return solved


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
