"""Ball arithmetic through python-flint (Arb): proved, and about ten times faster than mpmath.

F. Johansson, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic", IEEE Trans. Comput. 66(8),
2017. A ball is a midpoint and a radius; every operation returns a ball that holds the exact result for all points
of its arguments. Its infinities and NaN stand for sets, so IEEE classes are decided outside of it.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx

from oracles.arithmetics.protocol import FAR_BELOW, Definition, Vector, convert, is_max, objects
from oracles.enclosure import Enclosure, Ground

# Between these a midpoint's float, and the float of what that leaves, are normal numbers with all their bits.
_PLAIN = (2.0**-900, 2.0**1000)
# What a pair of floats leaves out of a midpoint in [0.5, 1): at most 2**-108, doubled twice for the roundings here.
_PAIR = 2.0**-106
_FAR_BELOW = arb(2) ** FAR_BELOW


class Balls:
    """A vector of balls and the precision they were computed with."""

    def __init__(self, values: Vector, precision: int) -> None:
        self.values = values
        self.precision = precision

    def enclosure(self) -> Enclosure:
        with ctx.workprec(self.precision + 64):  # so that the subtraction is exact
            hi = np.array([float(v) for v in self.values], dtype=np.float64)
            lo = np.array([float(v - h) for v, h in zip(self.values, hi.tolist(), strict=True)], dtype=np.float64)
        bits = np.array([v.rel_accuracy_bits() for v in self.values], dtype=np.float64)
        mantissa, exponent = np.frexp(hi)
        radius = np.exp2(np.clip(1.0 - bits, -200.0, 1000.0)) + _PAIR  # a ball's radius <= 2**-bits |midpoint|
        with np.errstate(invalid="ignore"):
            enclosure = Enclosure(mantissa, np.ldexp(lo, -exponent), exponent.astype(np.int64), radius)
        plain = (np.abs(hi) > _PLAIN[0]) & (np.abs(hi) < _PLAIN[1]) & (bits > 60)
        far_below = [i for i in np.flatnonzero(hi == 0).tolist() if self.values[i].abs_upper() < _FAR_BELOW]
        plain[far_below] = True  # most of a row with one dominant element: in one stroke
        enclosure.put(far_below, Enclosure.around(Fraction(0), Fraction(2) ** FAR_BELOW))
        for i in np.flatnonzero(~plain).tolist():
            enclosure.put(i, self._careful(i))
        return enclosure

    def _careful(self, index: int) -> Enclosure:
        """One ball of any size; where it is not finite (inf * 0), nothing is known of it."""
        value = self.values[index]
        return Enclosure.around(*_ball(value)) if value.is_finite() else Enclosure.unknown()

    def interval(self, index: int) -> tuple[Fraction, Fraction]:
        middle, radius = _ball(self.values[index])
        return middle - radius, middle + radius


def _ball(value: Any) -> tuple[Fraction, Fraction]:
    """Midpoint and radius, exactly; what lies far below every format is 0 and a radius that covers it."""
    middle, above = _fraction(value.mid(), FAR_BELOW)
    radius, beyond = _fraction(value.rad(), 10 * FAR_BELOW)  # 802 + exp(-802) is no tie for bfloat16
    return middle, radius + above + beyond


def _fraction(point: Any, far_below: int) -> tuple[Fraction, Fraction]:
    """An exact ball's value, and a bound on what was left out of it because it is below ``2**far_below``."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    if mantissa and exponent + mantissa.bit_length() < far_below:
        return Fraction(0), Fraction(2) ** far_below
    return mantissa * Fraction(2) ** exponent, Fraction(0)


class Flint:
    """python-flint's real balls."""

    name = "flint"
    ground = Ground.PROVED

    def evaluate(self, definition: Definition, row: Mapping[str, Any], precision: int) -> Sequence[Balls]:
        with ctx.workprec(precision):
            return [Balls(v, precision) for v in definition(self, **convert(row, arb))]

    def exp(self, v: Vector) -> Vector:
        # exp(-b) < 2**-1.4b. What is far below every format and below this precision is 0 give or take that: a long
        # row with one dominant element would otherwise spend minutes on digits that nobody reads.
        below = max(-FAR_BELOW, ctx.prec)
        limit, nothing = arb(-below), arb(0, arb(2) ** -(7 * below // 5))
        return objects([nothing if b < limit else b.exp() for b in v])

    def log(self, v: Vector) -> Vector:
        return objects([b.log() for b in v])

    def log1p(self, v: Vector) -> Vector:
        return objects([b.log1p() for b in v])

    def sqrt(self, v: Vector) -> Vector:
        return objects([b.sqrt() for b in v])

    def sum(self, v: Vector) -> Vector:
        return objects([sum(v, arb(0))])

    def max(self, v: Vector) -> Vector:
        return objects([max(v)])

    def is_max(self, v: Vector) -> Vector:
        return is_max(v)


FLINT: Flint = Flint()
