"""Exact rational arithmetic: definitions of sums and products have one exact answer, ties included.

Exact midpoints are common (21 % of the means of two bfloat16 numbers are), so "more precision until the rounding is
decided" would not end on them. Numbers are python-flint's ``fmpq`` where it is installed, else ten times slower
``Fraction``; results are fractions either way.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from oracles.arithmetics.protocol import Definition, Vector, convert, is_max, objects
from oracles.enclosure import Enclosure, Ground

ratio: Callable[[int, int], Any] = Fraction
with contextlib.suppress(ImportError):
    from flint import fmpq

    ratio = fmpq


def number(value: float) -> Any:
    """The float's exact value."""
    return ratio(*value.as_integer_ratio())


class Exact:
    """A vector of exact rationals."""

    def __init__(self, values: Vector) -> None:
        self.values = values

    def enclosure(self) -> Enclosure:
        enclosure = Enclosure.empty(self.values.shape)
        for i in range(len(self.values)):
            enclosure.put(i, Enclosure.around(self.interval(i)[0], Fraction(0)))
        return enclosure

    def interval(self, index: int) -> tuple[Fraction, Fraction]:
        value = self.values[index]
        exact = value if isinstance(value, Fraction) else Fraction(int(value.numerator), int(value.denominator))
        return exact, exact


class Rational:
    """Refuses exp, log and sqrt, whose values are not rational."""

    name = "rational"
    ground = Ground.PROVED

    def evaluate(self, definition: Definition, row: Mapping[str, Any], precision: int) -> Sequence[Exact]:
        return [Exact(v) for v in definition(self, **convert(row, number))]

    def sum(self, v: Vector) -> Vector:
        return objects([sum(v.tolist(), number(0.0))])

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
