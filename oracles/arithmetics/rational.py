"""Exact rational arithmetic: definitions of sums and products have one exact answer, ties included.

Exact midpoints are common (21 % of the means of two bfloat16 numbers are), so "more precision until the rounding is
decided" would not end on them.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

from oracles.arithmetics.protocol import Definition, Vector, convert, is_max, objects
from oracles.enclosure import Enclosure, Ground


class Exact:
    """A vector of fractions."""

    def __init__(self, values: Vector) -> None:
        self.values = values

    def enclosure(self) -> Enclosure:
        enclosure = Enclosure.empty(self.values.shape)
        for i, value in enumerate(self.values):
            enclosure.put(i, Enclosure.around(value, Fraction(0)))
        return enclosure

    def interval(self, index: int) -> tuple[Fraction, Fraction]:
        return self.values[index], self.values[index]


class Rational:
    """Fractions; refuses exp, log and sqrt, whose values are not rational."""

    name = "rational"
    ground = Ground.PROVED

    def evaluate(self, definition: Definition, row: Mapping[str, Any], precision: int) -> Sequence[Exact]:
        return [Exact(v) for v in definition(self, **convert(row, Fraction))]

    def sum(self, v: Vector) -> Vector:
        # Over one common denominator: a chain of Fraction additions would reduce n times.
        denominator = lcm(*(q.denominator for q in v))
        numerator = sum(q.numerator * (denominator // q.denominator) for q in v)
        return objects([Fraction(numerator, denominator)])

    def max(self, v: Vector) -> Vector:
        return objects([max(v)])

    def is_max(self, v: Vector) -> Vector:
        return is_max(v)

    def exp(self, v: Vector) -> Vector:
        raise _irrational("exp")

    def log(self, v: Vector) -> Vector:
        raise _irrational("log")

    def log1p(self, v: Vector) -> Vector:
        raise _irrational("log1p")

    def sqrt(self, v: Vector) -> Vector:
        raise _irrational("sqrt")


def _irrational(function: str) -> TypeError:
    return TypeError(f"{function} is not rational: declare the operator with rational=False")


RATIONAL = Rational()
