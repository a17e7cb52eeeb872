"""The error in units in the last place: the one metric every report is written in.

For an exact real y and a format of precision p, smallest normal exponent emin::

    ulp(y) = 2**(max(floor(log2 |y|), emin) - p + 1),     ulp(0) = the smallest subnormal
    error  = |z - y| / ulp(y)

The unit is that of the *exact* value: at a binade's edge, y just below 2**k, the unit is the smaller one even if z
is 2**k (what 128 bits do not tell from 2**k has the unit of its enclosure's centre); below the smallest normal the
unit no longer shrinks. A correctly rounded z has an error of at most 0.5, but a tie rounded the wrong way has 0.5
as well: "correctly rounded" compares bits, "faithful" is error < 1. An infinite z costs nothing where infinity is
the correct rounding of y (``|y| >= largest + ulp(largest)/2``) and infinitely much elsewhere; NaN is no number and
has no error here: non-finite values are compared by class.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from oracles.enclosure import Enclosure, Ints, floor_log2
from oracles.formats import Array, Format
from oracles.rounding import round_enclosure, round_fraction

# How errors are counted, by NumPy and by device code: summed as integers in units of 2**-20 ULP, since addition of
# floats is not associative; in a histogram of 64 bins to a binade, so that a percentile is right to 1.6 %; and in the
# mean of a row as if none were larger than CAP.
UNIT_BITS, BINS, CAP = 20, 64, 2.0**16


def ulp(value: Fraction, fmt: Format) -> Fraction:
    """``ulp(value)`` in ``fmt``, exactly."""
    exponent = fmt.emin if value == 0 else max(floor_log2(value), fmt.emin)
    return Fraction(2) ** (exponent - fmt.precision + 1)


def error_in_ulps(computed: float, exact: Fraction, fmt: Format) -> Fraction | float:
    """``|computed - exact| / ulp(exact)`` for one finite or infinite ``computed``; exact, or ``inf``."""
    if np.isnan(computed):
        raise ValueError("NaN has no error in ULPs: compare it by class")
    if np.isinf(computed):
        return 0.0 if round_fraction(exact, fmt) == computed else float("inf")
    return abs(Fraction(computed) - exact) / ulp(exact, fmt)


def ulp_exponents(exact: Enclosure, fmt: Format) -> Ints:
    """``log2(ulp(y))`` of every element."""
    exponents: Ints = np.maximum(exact.magnitude_exponent, fmt.emin) - fmt.precision + 1
    return exponents


def errors_in_ulps(computed: Array, exact: Enclosure, fmt: Format, dtype: type[np.floating[Any]] = np.float64) -> Array:
    """Vectorised :func:`error_in_ulps` in ``dtype``; NaN where ``computed`` is NaN, inf beyond the range of ``dtype``
    (1e-12 where the exact float64 result is 0 is 2e311 ULP).

    Everything is scaled to the unit first, so that nothing overflows or is lost next to the exact value: there the
    subtraction of ``hi`` is exact (Sterbenz) and ``lo`` enters whole.
    """
    unit = ulp_exponents(exact, fmt)
    inward = np.clip(exact.exponent - unit, -5000, 5000).astype(np.int32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = np.ldexp(computed.astype(dtype), (-unit).astype(np.int32))
        hi, lo = (np.ldexp(part.astype(dtype), inward) for part in (exact.hi, exact.lo))
        errors: Array = np.abs((scaled - hi) - lo)
        infinite = np.isinf(computed.astype(np.float64))
    if infinite.any():
        rounded, _ = round_enclosure(exact, fmt)
        errors = np.where(infinite, np.where(rounded == computed, 0.0, np.inf), errors)
    return errors
