"""mpmath: arbitrary precision without proofs. Two precisions must agree; their difference is the radius.

mpmath's precision is global and it is not thread-safe, so it is set around each evaluation only. It has been wrong
at single precisions before, which is why a second one is always computed.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import mpmath

from oracles.arithmetics.protocol import FAR_BELOW, Definition, Vector, convert, is_max, objects
from oracles.enclosure import Enclosure, Ground

_SECOND = 53  # bits that the second evaluation has more than the first


class Pair:
    """One vector at two precisions."""

    def __init__(self, first: Vector, second: Vector, precision: int) -> None:
        self.first = first
        self.second = second
        self.precision = precision

    def enclosure(self) -> Enclosure:
        enclosure = Enclosure.empty(self.second.shape)
        for i, value in enumerate(self.second):
            enclosure.put(i, self._around(i) if mpmath.isfinite(value) else Enclosure.unknown())
        return enclosure

    def _around(self, index: int) -> Enclosure:
        low, high = self.interval(index)
        return Enclosure.around((low + high) / 2, (high - low) / 2)

    def interval(self, index: int) -> tuple[Fraction, Fraction]:
        """Both values and twice their distance on either side: the first one's error, seen from the second."""
        first, second = _fraction(self.first[index]), _fraction(self.second[index])
        slack = 2 * abs(first - second) + abs(second) * Fraction(2) ** -(self.precision + _SECOND - 8)
        if second == 0 and first == 0:
            slack = Fraction(0) if self.second[index] == 0 else Fraction(2) ** FAR_BELOW
        return second - slack, second + slack


def _fraction(value: Any) -> Fraction:
    """An mpf exactly; 0 for what lies far below every format."""
    sign, mantissa, exponent, length = value._mpf_
    if mantissa == 0 or exponent + length < FAR_BELOW:
        return Fraction(0)
    return Fraction(-1 if sign else 1) * int(mantissa) * Fraction(2) ** int(exponent)


class Mpmath:
    """mpmath's real numbers."""

    name = "mpmath"
    ground = Ground.MPMATH

    def evaluate(self, definition: Definition, row: Mapping[str, Any], precision: int) -> Sequence[Pair]:
        first, second = (self.at(bits, definition, row) for bits in (precision, precision + _SECOND))
        return [Pair(a, b, precision) for a, b in zip(first, second, strict=True)]

    def at(self, precision: int, definition: Definition, row: Mapping[str, Any]) -> tuple[Vector, ...]:
        """The definition at one precision, unproved."""
        with mpmath.workprec(precision):
            return definition(self, **convert(row, mpmath.mpf))

    def exp(self, v: Vector) -> Vector:
        return objects([mpmath.exp(x) for x in v])

    def log(self, v: Vector) -> Vector:
        return objects([mpmath.log(x) for x in v])

    def log1p(self, v: Vector) -> Vector:
        return objects([mpmath.log1p(x) for x in v])

    def sqrt(self, v: Vector) -> Vector:
        return objects([mpmath.sqrt(x) for x in v])

    def sum(self, v: Vector) -> Vector:
        return objects([mpmath.fsum(v)])

    def max(self, v: Vector) -> Vector:
        return objects([max(v)])

    def is_max(self, v: Vector) -> Vector:
        return is_max(v)


MPMATH = Mpmath()
