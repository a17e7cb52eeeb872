"""Rounding to nearest, ties to even: once, from the exact value straight into the format.

Casting float64 to bfloat16 with ml_dtypes, PyTorch or JAX rounds twice, through float32, and gets every double
next to a rounding midpoint wrong. Nothing here goes through another format.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from oracles.enclosure import Enclosure, floor_log2
from oracles.formats import Array, Format


def round_fraction(value: Fraction, fmt: Format) -> float:
    """``value`` rounded to ``fmt``, as a float: the scalar definition that the vectorised one is tested against.

    Overflow follows IEEE 754-2019, section 7.4: from ``largest + ulp/2`` on the result is infinite.
    """
    if value == 0:
        return 0.0
    quantum = Fraction(2) ** (max(floor_log2(value), fmt.emin) - fmt.precision + 1)
    rounded = round(value / quantum) * quantum  # Fraction.__round__ takes ties to even
    if abs(rounded) > Fraction(fmt.largest):
        return float("inf") if value > 0 else float("-inf")
    return float(rounded)


def round_enclosure(enclosure: Enclosure, fmt: Format) -> tuple[Array, NDArray[np.bool_]]:
    """The correctly rounded values (in ``fmt.dtype``), and where the enclosure decides them.

    Undecided elements hold a rounding midpoint within their radius: evaluate those again with more precision.
    An exact centre (radius 0) is always decided, ties included.
    """
    quantum_exponent = np.maximum(enclosure.magnitude_exponent, fmt.emin) - fmt.precision + 1
    # Below -1100 everything is far under half a quantum of any format; the clip keeps ldexp's int32 in range.
    shift = np.clip(enclosure.exponent - quantum_exponent, -1100, 1100).astype(np.int32)
    hi, lo = np.ldexp(enclosure.hi, shift), np.ldexp(enclosure.lo, shift)
    with np.errstate(over="ignore"):
        radius = np.ldexp(enclosure.radius, shift)

    nearest = np.rint(hi)  # ties to even; |hi| <= 2**precision
    rest = hi - nearest  # exact, in [-1/2, 1/2]; |lo| is at most half the last place of hi
    up = (rest == 0.5) & (lo > 0)
    down = (rest == -0.5) & (lo < 0)
    # With 53 bits hi is an integer already and lo alone can be a tie: away from an odd nearest to the even one.
    tie_of_lo = (rest == 0) & (np.abs(lo) == 0.5) & (np.fmod(nearest, 2) != 0)
    nearest = nearest + up - down + np.where(tie_of_lo, np.sign(lo), 0.0)

    distance = np.abs((0.5 - np.abs(rest)) - np.where(rest >= 0, 1.0, -1.0) * lo)
    distance = np.where(rest == 0, 0.5 - np.abs(lo), distance)
    # Below a power of two midpoints lie twice as close; so wide an enclosure decides nothing anyway.
    decided = (radius == 0) | ((np.abs(distance) > 1.001 * radius) & (radius < 0.25))

    with np.errstate(over="ignore"):
        values = np.ldexp(nearest, np.clip(quantum_exponent, -1100, 1100).astype(np.int32))
    values = np.where(np.abs(values) > fmt.largest, np.copysign(np.inf, values), values)
    return values.astype(fmt.dtype), decided  # representable, so the cast is exact


def round_floats(values: Array, fmt: Format) -> Array:
    """Float64 (or narrower) ``values`` rounded to ``fmt``; zeros keep their sign, inf and NaN pass through."""
    wide = np.asarray(values).astype(np.float64)
    rounded, _ = round_enclosure(Enclosure.exact(wide), fmt)
    kept = np.where(np.isfinite(wide), np.copysign(rounded.astype(np.float64), wide), wide)
    return kept.astype(fmt.dtype)  # representable, so the cast is exact
