"""Rows made for summation: absorption, cancellation, ties, and sums that are exact."""

import numpy as np

from oracles.formats import Format
from properties.regimes.moments import NORM_AND_SUM
from properties.regimes.regime import EVERY_FAMILY, Regime, accumulation_precision, of_finite_rows, ulps
from properties.source import Floats, Source, magnitudes, signs, uniforms, whole


def _near_ties(source: Source, n: int, fmt: Format) -> Floats:
    """Significands m, m + 1, m + 2; the first is moved if all came out equal."""
    significand = whole(source, 2 ** (fmt.precision - 1), 2**fmt.precision - 4)
    exponent = whole(source, -8, 8)
    steps = source.integers(0, 2, n)
    if n > 1 and steps.min() == steps.max():
        steps[0] += 1
    return signs(source, 1) * np.ldexp(significand + steps.astype(np.float64), exponent - fmt.precision + 1)


@of_finite_rows
def _is_near_ties(row: Floats, fmt: Format) -> bool:
    if row.size < 2:
        return True
    step = ulps(np.abs(row).max(), fmt)
    return bool(step <= np.ptp(row) <= 2 * step)


def _all_equal(source: Source, n: int, fmt: Format) -> Floats:
    """Ones, zeros, or any value of magnitude 2**-10 to 2**11."""
    kind = whole(source, 0, 2)
    value = (signs(source, 1) * magnitudes(source, -10, 10, 1))[0] if kind == 2 else 1.0 - kind
    return np.full(n, value)


@of_finite_rows
def _is_all_equal(row: Floats, fmt: Format) -> bool:
    return bool((row == row[:1]).all())


def _absorbed(source: Source, n: int, fmt: Format) -> Floats:
    """Each small element is 2**-(p + 1/2) or 2**-p of the first: under half an ulp, or a tie that goes to even,
    for p the bits of the storage format (a kernel that accumulates in it) or of the accumulation format."""
    precision = (fmt.precision, accumulation_precision(fmt))[whole(source, 0, 1)]
    tie = whole(source, 0, 1)
    # 2**24 + 1 + 1 is among them. In float16, 2**-24.5 of less than 2**10 would sink into the subnormals.
    low, high = (10, 14) if fmt.emax < 24 else (-4, 24)
    first = (signs(source, 1) * np.ldexp(1.0, whole(source, low, high)))[0]
    row = np.full(n, first * np.ldexp(1.0 if tie else np.sqrt(0.5), -precision))
    row[:1] = first
    return row


@of_finite_rows
def _is_absorbed(row: Floats, fmt: Format) -> bool:
    """Both ends of the range are powers of two: no rounding crosses them."""
    first, rest = row[:1], row[1:]
    shares = rest / first if rest.size else rest
    low, high = 2.0 ** -(accumulation_precision(fmt) + 1), 2.0**-fmt.precision
    return bool((np.abs(first) > 0).all() and (rest == rest[:1]).all() and ((shares >= low) & (shares <= high)).all())


def _alternating_cancel(source: Source, n: int, fmt: Format) -> Floats:
    """Pairs b, -b of magnitude 1 to 512; the first pair and an odd last element leave a small remainder."""
    pairs = magnitudes(source, 0, 8, (n + 1) // 2)
    row = np.repeat(pairs, 2)[:n]
    row[1::2] *= -1.0
    row[1] *= 1.0 - uniforms(source, 1)[0] / 64
    if n % 2:
        row[-1] = pairs[0] * (1.0 + uniforms(source, 1)[0]) / 256
    return row


@of_finite_rows
def _is_alternating_cancel(row: Floats, fmt: Format) -> bool:
    alternates = bool((row[0::2] > 0).all() and (row[1::2] < 0).all())
    shares = row / np.abs(row).max()  # foreign rows may have sums beyond float64
    return alternates and 16 * abs(float(np.sum(shares))) <= float(np.sum(np.abs(shares)))


def _small_integers(source: Source, n: int, fmt: Format) -> Floats:
    """From -8 to 8, or all of them negative: a kernel that pads with zeros answers 0 for their maximum."""
    negative = whole(source, 0, 1) == 1
    return source.integers(-8, -1 if negative else 8, n).astype(np.float64)


@of_finite_rows
def _is_small_integers(row: Floats, fmt: Format) -> bool:
    return bool(((np.abs(row) <= 8) & (row == np.rint(row))).all())


REGIMES = (
    Regime(
        "near_ties",
        "All within two ulps, not all equal.",
        EVERY_FAMILY,
        _near_ties,
        _is_near_ties,
    ),
    Regime(
        "all_equal",
        "All equal: ones, zeros, or any one value.",
        EVERY_FAMILY,
        _all_equal,
        _is_all_equal,
    ),
    Regime(
        "absorbed",
        "One value, then equal ones so small beside it that adding any one of them leaves it as it is.",
        NORM_AND_SUM,
        _absorbed,
        _is_absorbed,
    ),
    Regime(
        "alternating_cancel",
        "Signs alternate, and the sum is at most a sixteenth of the sum of magnitudes.",
        NORM_AND_SUM,
        _alternating_cancel,
        _is_alternating_cancel,
        min_length=2,
    ),
    Regime(
        "small_integers",
        "Whole numbers from -8 to 8, whose sums and squares are exact in any order.",
        EVERY_FAMILY,
        _small_integers,
        _is_small_integers,
    ),
)
