"""Enclosures: arrays of bounds that hold exact real results, and why we believe that they do."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.formats import Array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


# Makes a correctly rounded, non-negative float an upper bound; at the subnormals, where a factor would be lost in
# rounding, _LEAST does.
_OUTWARD = 1.0 + 2.0**-50
_LEAST = 2.0**-1000


def floor_log2(value: Fraction) -> int:
    """``floor(log2 |value|)``, exactly. Raises ``ValueError`` at 0."""
    if value == 0:
        raise ValueError("the binary exponent of 0 is not defined")
    numerator, denominator = abs(value.numerator), value.denominator
    exponent = numerator.bit_length() - denominator.bit_length()
    scaled_up, scaled_down = max(-exponent, 0), max(exponent, 0)
    return exponent if numerator << scaled_up >= denominator << scaled_down else exponent - 1


def _at_least(value: Fraction) -> float:
    """A float that is not below a non-negative ``value``, little above it, and 0 for 0 only."""
    if value >= 2**1023:
        return float("inf")
    return max(float(value) * _OUTWARD, _LEAST) if value else 0.0


class Ground(StrEnum):
    """Why an enclosure is believed, strongest first."""

    PROVED = "proved"
    DOCUMENTED = "documented"
    MPMATH = "mpmath"

    @staticmethod
    def weakest(grounds: "set[Ground]") -> "Ground":
        """The ground of a table in which all of ``grounds`` occur; an empty table rests on nothing weaker
        than a proof."""
        return max(grounds, key=list(Ground).index, default=Ground.PROVED)


@dataclass(frozen=True)
class Enclosure:
    """``|y - (hi + lo) * 2**exponent| <= radius * 2**exponent``, elementwise.

    ``|hi|`` lies in [0.5, 1), or is 0, and is ``hi + lo`` rounded to float64. Mantissa and exponent are apart, so
    that values beyond the range of float64 and results in its subnormal range keep all their digits.
    """

    hi: Floats
    lo: Floats
    exponent: Ints
    radius: Floats

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> "Enclosure":
        """Exact zeros of ``shape``, to be filled in by :meth:`put`."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape))

    @classmethod
    def exact(cls, values: Array) -> "Enclosure":
        """Values of any of our formats, which hold themselves exactly. Non-finite ones become 0."""
        wide = np.asarray(values).astype(np.float64)
        hi, exponent = np.frexp(np.where(np.isfinite(wide), wide, 0.0))
        return cls(hi, np.zeros(hi.shape), exponent.astype(np.int64), np.zeros(hi.shape))

    @classmethod
    def around(cls, middle: Fraction, radius: Fraction) -> "Enclosure":
        """One ball of exact middle and radius, of shape (); radius 0 stays 0 where a pair of floats holds it all."""
        if middle == 0:
            exponent = 0 if radius == 0 else floor_log2(radius) + 1
            return cls._scalar(0.0, 0.0, exponent, _at_least(radius / Fraction(2) ** exponent))
        exponent = floor_log2(middle) + 1
        scaled = middle / Fraction(2) ** exponent
        hi = float(scaled)  # Python rounds the quotient of two integers correctly
        lo = float(scaled - Fraction(hi))
        left_out = abs(scaled - Fraction(hi) - Fraction(lo)) + radius / Fraction(2) ** exponent
        return cls._scalar(hi, lo, exponent, _at_least(left_out))

    @classmethod
    def unknown(cls) -> "Enclosure":
        """All real numbers, of shape ()."""
        return cls._scalar(0.0, 0.0, 0, float("inf"))

    @classmethod
    def _scalar(cls, hi: float, lo: float, exponent: int, radius: float) -> "Enclosure":
        return cls(np.array(hi), np.array(lo), np.array(exponent, np.int64), np.array(radius))

    @staticmethod
    def concatenate(parts: Sequence["Enclosure"]) -> "Enclosure":
        """Parts that follow each other along the first axis, as one."""
        arrays = zip(*(part._arrays() for part in parts), strict=True)
        return Enclosure(*(np.concatenate(same) for same in arrays))

    def where(self, known: NDArray[np.bool_]) -> "Enclosure":
        """All real numbers in the place of elements that are not ``known``."""
        if known.all():
            return self
        hi, lo, exponent = (np.where(known, part, part.dtype.type(0)) for part in (self.hi, self.lo, self.exponent))
        return Enclosure(hi, lo, exponent, np.where(known, self.radius, np.inf))

    def put(self, where: Any, part: "Enclosure") -> None:
        """Write ``part`` into the elements ``where`` (an index or a boolean mask) selects, in place."""
        for whole, piece in zip(self._arrays(), part._arrays(), strict=True):
            whole[where] = piece

    def __getitem__(self, where: Any) -> "Enclosure":
        return Enclosure(*(a[where] for a in self._arrays()))

    def _arrays(self) -> tuple[Array, ...]:
        return self.hi, self.lo, self.exponent, self.radius

    @property
    def magnitude_exponent(self) -> Ints:
        """``floor(log2 |y|)`` of the centre, elementwise; very small where y is 0."""
        _, shift = np.frexp(self.hi)
        # hi is a power of two and lo pulls the value under it: y lies one binade lower than hi says.
        below = (np.abs(self.hi) == np.ldexp(0.5, shift)) & (self.lo != 0)
        below &= np.signbit(self.hi) != np.signbit(self.lo)
        exponent = self.exponent + shift - 1 - below
        return np.where(self.hi == 0, np.int64(-(2**40)), exponent)

    def value(self, dtype: type[np.floating] = np.float64) -> Array:
        """The centre as ``dtype``, rounded; overflows to inf, underflows to 0."""
        exponent = np.clip(self.exponent, -40_000, 40_000).astype(np.int32)
        with np.errstate(over="ignore", under="ignore"):
            values: Array = np.ldexp(self.hi.astype(dtype) + self.lo.astype(dtype), exponent)
        return values

    def fraction(self, index: tuple[int, ...]) -> Fraction:
        """One element's centre, exactly."""
        mantissa = Fraction(float(self.hi[index])) + Fraction(float(self.lo[index]))
        return mantissa * Fraction(2) ** int(self.exponent[index])
