"""What every arithmetic offers to a definition, and what it hands back."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from oracles.enclosure import Enclosure, Ground

# Something with a shape, + - * / and broadcasting, whose last axis is the row's. Reductions keep that axis, with
# length 1, so that the same definition serves one row of Python numbers in an object array and double words of many.
Vector = Any

Definition = Callable[..., tuple[Vector, ...]]


# 2**FAR_BELOW is 2**-35 of the smallest subnormal of float64: results below it are 0 give or take that, which saves
# the arithmetics from writing out numbers such as exp(-1e30).
FAR_BELOW = -1110


class Result(Protocol):
    """One output vector of one evaluated row, at one precision."""

    def enclosure(self) -> Enclosure:
        """Every element, as a pair of floats and a radius that covers what the pair leaves out."""

    def interval(self, index: int) -> tuple[Fraction, Fraction]:
        """One element's bounds in full, for the few that a pair of floats does not decide."""


class Operations(Protocol):
    """What definitions are made of; sums, differences, products and quotients come as operators of the vectors."""

    def exp(self, v: Vector) -> Vector: ...
    def log(self, v: Vector) -> Vector: ...
    def log1p(self, v: Vector) -> Vector: ...
    def sqrt(self, v: Vector) -> Vector: ...
    def sum(self, v: Vector) -> Vector: ...
    def max(self, v: Vector) -> Vector:
        """The largest element of a vector of inputs (which are exact)."""

    def is_max(self, v: Vector) -> Vector:
        """1 where an input equals the largest of them, 0 elsewhere."""


class Arithmetic(Operations, Protocol):
    """Evaluates definitions row by row, with as many bits as it is asked for."""

    name: str
    ground: Ground

    def evaluate(self, definition: Definition, row: Mapping[str, Any], precision: int) -> Sequence[Result]:
        """``definition`` on one row, with ``precision`` bits.

        ``row`` maps argument names to float64 arrays (exact values), floats (exact) or None.
        """


def objects(values: Sequence[Any]) -> Vector:
    """A one-dimensional object array; ``np.array`` would look into the elements."""
    vector = np.empty(len(values), dtype=object)
    vector[:] = values
    return vector


def convert(row: Mapping[str, Any], number: Callable[[float], Any]) -> dict[str, Any]:
    """The row with every float turned into the arithmetic's number; None stays None."""
    return {
        name: objects([number(v) for v in value.tolist()])
        if isinstance(value, np.ndarray)
        else None
        if value is None
        else number(value)
        for name, value in row.items()
    }


def is_max(v: Vector) -> Vector:
    """1 where a number equals the largest, 0 elsewhere."""
    top = max(v)
    return objects([int(x == top) for x in v])
