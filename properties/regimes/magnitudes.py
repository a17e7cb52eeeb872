"""Rows at the ends of a format's exponent range, or all over it."""

import numpy as np

from oracles.formats import Format
from properties.regimes.regime import EVERY_FAMILY, Regime, accumulation_precision, of_finite_rows
from properties.source import Floats, Source, magnitudes, signs, whole


def _wide_dynamic_range(source: Source, n: int, fmt: Format) -> Floats:
    """Half of the rows keep n squares, the others n values, within an eighth of the accumulation format. One element
    lies in the top binade and one in the bottom one, so that short rows are wide too."""
    accumulation_emax = 1023 if accumulation_precision(fmt) == 53 else 127
    room = accumulation_emax - 3 - n.bit_length()
    squares = whole(source, 0, 1) == 0
    low = max(fmt.emin, -room // 2) if squares else fmt.emin
    high = min(fmt.emax - 1, room // 2 if squares else room)
    row = signs(source, n) * magnitudes(source, low, high, n)
    if n > 1:
        top = whole(source, 0, n - 1)
        row[top], row[(top + 1) % n] = np.ldexp(1.5, high), np.ldexp(1.5, low)
    return row


@of_finite_rows
def _is_wide_dynamic_range(row: Floats, fmt: Format) -> bool:
    _, exponents = np.frexp(row)
    wide = row.size < 2 or int(np.ptp(exponents)) >= 2 * min(fmt.emax, 50) - 2
    return bool((row != 0).all()) and wide


def _subnormal(source: Source, n: int, fmt: Format) -> Floats:
    largest = 2 ** (fmt.precision - 1) - 1
    multiples = source.integers(-largest, largest, n)
    if n > 0 and not multiples.any():
        multiples[0] = 1
    return np.ldexp(multiples.astype(np.float64), fmt.quantum_exponent)


@of_finite_rows
def _is_subnormal(row: Floats, fmt: Format) -> bool:
    return bool((np.abs(row) < fmt.smallest_normal).all() and row.any())


def _first_overflowing(fmt: Format) -> int:
    """The exponent from which on every square is infinite: 2**8 in float16, 2**64 in float32."""
    return (fmt.emax + 1) // 2


def _squares_overflow(source: Source, n: int, fmt: Format) -> Floats:
    exponent = _first_overflowing(fmt)
    return signs(source, n) * magnitudes(source, exponent, exponent + 3, n)


@of_finite_rows
def _is_squares_overflow(row: Floats, fmt: Format) -> bool:
    return bool((np.abs(row) >= np.ldexp(1.0, _first_overflowing(fmt))).all())


def _last_vanishing(fmt: Format) -> int:
    """Up to 2**this, squares are at most half the smallest subnormal and round to zero."""
    return (fmt.quantum_exponent - 1) // 2


def _squares_underflow(source: Source, n: int, fmt: Format) -> Floats:
    """The values themselves are normal: flushing them is another fault."""
    exponent = _last_vanishing(fmt)
    return signs(source, n) * magnitudes(source, max(exponent - 4, fmt.emin), exponent - 1, n)


@of_finite_rows
def _is_squares_underflow(row: Floats, fmt: Format) -> bool:
    size = np.abs(row)
    return bool(((size >= fmt.smallest_normal) & (size <= np.ldexp(1.0, _last_vanishing(fmt)))).all())


def _arbitrary_bits(source: Source, n: int, fmt: Format) -> Floats:
    """Magnitude and sign apart: a signed float64 has more patterns than a signed integer holds."""
    largest = int(fmt.bits(np.array([fmt.largest]))[0])
    patterns = source.integers(0, largest, n)
    return signs(source, n) * fmt.from_bits(patterns).astype(np.float64)


@of_finite_rows
def _is_arbitrary_bits(row: Floats, fmt: Format) -> bool:
    _, exponents = np.frexp(row)
    return row.size < 64 or int(np.ptp(exponents)) >= fmt.emax


REGIMES = (
    Regime(
        "wide_dynamic_range",
        "No zeros, and exponents at least twice 50 (28 in float16) apart.",
        EVERY_FAMILY,
        _wide_dynamic_range,
        _is_wide_dynamic_range,
    ),
    Regime(
        "subnormal",
        "Subnormals and zeros, not all of them zeros.",
        EVERY_FAMILY,
        _subnormal,
        _is_subnormal,
    ),
    Regime(
        "squares_overflow",
        "Finite values whose squares all overflow the format.",
        frozenset({"norm"}),
        _squares_overflow,
        _is_squares_overflow,
    ),
    Regime(
        "squares_underflow",
        "Normal values whose squares all round to zero in the format.",
        frozenset({"norm"}),
        _squares_underflow,
        _is_squares_underflow,
    ),
    Regime(
        "arbitrary_bits",
        "Any finite bit pattern, all equally likely; exponents all over the range from length 64 on.",
        EVERY_FAMILY,
        _arbitrary_bits,
        _is_arbitrary_bits,
    ),
)
