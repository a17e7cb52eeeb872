"""Floating-point formats: one table of frozen records; everything else is derived from it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format in the sense of IEEE 754-2019, section 3.3, with infinities and NaN.

    ``precision`` counts the significand's bits, the hidden one included; ``emax`` is the exponent of the
    largest finite number, so that a finite value is ``m * 2**(e - precision + 1)`` with ``|m| < 2**precision``
    and ``emin <= e <= emax``.
    """

    name: str
    precision: int
    emax: int
    dtype: np.dtype[Any]

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal number."""
        return 1 - self.emax

    @property
    def quantum_exponent(self) -> int:
        """Exponent of the smallest subnormal: every finite value is a multiple of ``2**quantum_exponent``."""
        return self.emin - self.precision + 1

    @cached_property
    def largest(self) -> float:
        """The largest finite value."""
        return float(Fraction(2**self.precision - 1) * Fraction(2) ** (self.emax - self.precision + 1))

    @cached_property
    def smallest_normal(self) -> float:
        return float(Fraction(2) ** self.emin)

    @cached_property
    def smallest_subnormal(self) -> float:
        return float(Fraction(2) ** self.quantum_exponent)

    @cached_property
    def unit_roundoff(self) -> float:
        """``u = 2**-precision``: the largest relative error of rounding to nearest in the normal range."""
        return float(Fraction(2) ** -self.precision)

    @cached_property
    def bits_dtype(self) -> np.dtype[Any]:
        """The unsigned integer type that holds one value's bits."""
        return np.dtype(f"uint{8 * self.dtype.itemsize}")

    def bits(self, values: Array) -> Array:
        """The values' bit patterns: what is compared, hashed and printed."""
        return np.ascontiguousarray(values, dtype=self.dtype).view(self.bits_dtype)

    def from_bits(self, bits: Array) -> Array:
        """The inverse of :meth:`bits`."""
        return np.ascontiguousarray(bits, dtype=self.bits_dtype).view(self.dtype)

    def hex(self, values: Array) -> list[str]:
        """Each value's bit pattern as fixed-width hexadecimal digits, most significant first."""
        width = 2 * self.dtype.itemsize
        return [f"{int(b):0{width}x}" for b in self.bits(values).ravel()]


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("float16", 11, 15, np.dtype(np.float16)),
        Format("bfloat16", 8, 127, np.dtype(ml_dtypes.bfloat16)),
        Format("float32", 24, 127, np.dtype(np.float32)),
        Format("float64", 53, 1023, np.dtype(np.float64)),
    )
}

for _f in FORMATS.values():
    _info: Any = ml_dtypes.finfo(_f.dtype)  # type: ignore[no-untyped-call]
    assert (_f.largest, _f.smallest_normal) == (float(_info.max), float(_info.smallest_normal)), _f
    assert _f.smallest_subnormal == float(_info.smallest_subnormal), _f


def format_named(name: str) -> Format:
    """The format called ``name``. Raises ``ValueError`` listing the known ones."""
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(f"unknown dtype {name!r}: expected one of {', '.join(FORMATS)}") from None
