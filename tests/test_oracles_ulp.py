"""The error in ULPs, scalar and vectorised, against the spacing of neighbouring bit patterns.

Between the values of patterns k and k + 1 the unit is their distance: no logarithm, no exponent.
"""

from fractions import Fraction

import numpy as np
import pytest

from oracles.enclosure import Enclosure
from oracles.formats import FORMATS, Format
from oracles.ulp import error_in_ulps, errors_in_ulps, ulp, ulp_exponents
from test_oracles_formats import decode, each_half, infinity, number, some_patterns
from test_oracles_inputs import INF, NAN, each_format

each_sign = pytest.mark.parametrize("sign", [1, -1], ids=["plus", "minus"])

# Where exact values stand between two neighbours: on the lower, at the midpoint, and close below the upper one.
SHARES = tuple(Fraction(*p) for p in ((0, 1), (1, 2), (1, 3), (2**70 - 1, 2**70), (1, 2**1100)))


def spots(fmt: Format) -> list[tuple[Fraction, Fraction, int]]:
    """Exact values, the unit there, and the pattern at or below."""
    found = []
    for k in some_patterns(fmt, 25):
        low, high = decode(fmt, k), decode(fmt, k + 1)
        found += [(low + share * (high - low), high - low, k) for share in SHARES]
    return found


def computed_values(fmt: Format, k: int) -> list[float]:
    """Neighbours of pattern ``k`` up to three steps away, zero, and the far ends."""
    near = range(max(k - 2, 0), min(k + 4, infinity(fmt)))
    return [*(number(fmt, j) for j in near), 0.0, 1.0, -1.0, fmt.largest, -fmt.largest]


def vectorised(computed: list[float], exact: Fraction, fmt: Format) -> list[float]:
    ball = Enclosure.around(exact, Fraction(0))
    whole = Enclosure.empty((len(computed),))
    whole.put(slice(None), ball)
    return errors_in_ulps(np.array(computed).astype(fmt.dtype), whole, fmt).tolist()


@each_sign
@each_format
def test_the_unit_is_the_distance_of_the_neighbours(fmt: Format, sign: int):
    for value, unit, _ in spots(fmt):
        assert ulp(sign * value, fmt) == unit
        assert Fraction(2) ** int(ulp_exponents(Enclosure.around(sign * value, Fraction(0)), fmt)) == unit


@each_sign
@each_format
def test_errors_are_distances_in_units(fmt: Format, sign: int):
    for value, unit, k in spots(fmt):
        computed = [sign * z for z in computed_values(fmt, k)]
        right = [abs(Fraction(z) - sign * value) / unit for z in computed]
        assert [error_in_ulps(z, sign * value, fmt) for z in computed] == right
        for got, wanted in zip(vectorised(computed, sign * value, fmt), right, strict=True):
            beyond = wanted >= Fraction(2) ** 1024  # of a float64 in units of a subnormal
            assert got == INF if beyond else abs(Fraction(got) - wanted) <= wanted / 2**50 + Fraction(1, 2**1000)


@each_half
def test_every_value_of_16_bits_is_one_unit_above_the_one_before(fmt: Format):
    patterns = np.arange(infinity(fmt))
    values = fmt.from_bits(patterns)
    exact = Enclosure.exact(values)
    assert (errors_in_ulps(values, exact, fmt) == 0).all()
    assert (errors_in_ulps(values[1:], exact[:-1], fmt) == 1).all()
    # Seen from the larger one the unit is that of its own binade: half at a power of two above the subnormals.
    first_of_binade = (patterns[1:] % 2 ** (fmt.precision - 1) == 0) & (patterns[1:] > 2 ** (fmt.precision - 1))
    assert (errors_in_ulps(values[:-1], exact[1:], fmt) == np.where(first_of_binade, 0.5, 1)).all()
    assert (errors_in_ulps(-values[1:], exact[1:], fmt) == 2 * errors_in_ulps(0 * values[1:], exact[1:], fmt)).all()


@each_half
def test_midpoints_of_16_bits_are_half_a_unit_from_both(fmt: Format):
    values = fmt.from_bits(np.arange(infinity(fmt)))
    wide = values.astype(np.float64)
    middle = Enclosure.exact((wide[:-1] + wide[1:]) / 2)
    assert (errors_in_ulps(values[:-1], middle, fmt) == 0.5).all()
    assert (errors_in_ulps(values[1:], middle, fmt) == 0.5).all()


@each_format
def test_zero_is_measured_in_subnormals(fmt: Format):
    zero, least = Fraction(0), fmt.smallest_subnormal
    assert ulp(zero, fmt) == Fraction(least)
    assert [error_in_ulps(z, zero, fmt) for z in (0.0, -0.0, least, -3 * least)] == [0, 0, 1, 3]
    assert vectorised([0.0, -0.0, least, -3 * least], zero, fmt) == [0, 0, 1, 3]


@each_format
def test_below_a_power_of_two_the_unit_is_the_smaller_one_whatever_was_computed(fmt: Format):
    """The unit of the computed value would halve these errors."""
    u = Fraction(fmt.unit_roundoff)
    exact = 1 - Fraction(1, 2**60)
    for z in (1.0, float(1 + 2 * u), 2.0):
        right = (Fraction(z) - exact) / u
        assert error_in_ulps(z, exact, fmt) == right
        assert vectorised([z], exact, fmt) == [pytest.approx(float(right), rel=1e-14, abs=0)]


@each_sign
@each_format
def test_infinity_costs_nothing_where_it_is_the_right_rounding(fmt: Format, sign: int):
    largest = Fraction(fmt.largest)
    threshold = largest + ulp(largest, fmt) / 2
    below = threshold - ulp(largest, fmt) / 2**40
    for exact, plus, minus in ((threshold, 0, INF), (below, INF, INF), (threshold * 2**3000, 0, INF), (1, INF, INF)):
        computed = [sign * INF, -sign * INF]
        assert [error_in_ulps(z, sign * Fraction(exact), fmt) for z in computed] == [plus, minus]
        assert vectorised(computed, sign * Fraction(exact), fmt) == [plus, minus]
    assert error_in_ulps(fmt.largest, threshold, fmt) == Fraction(1, 2)  # finite, and measured
    assert vectorised([fmt.largest], threshold, fmt) == [0.5]


@each_format
def test_nan_has_no_error(fmt: Format):
    with pytest.raises(ValueError, match="compare it by class"):
        error_in_ulps(NAN, Fraction(1), fmt)
    signalling = fmt.from_bits(np.array([infinity(fmt) + 1]))
    assert np.isnan(errors_in_ulps(signalling, Enclosure.exact(np.ones(1)), fmt)).all()
    assert np.isnan(vectorised([NAN, -NAN], Fraction(1), fmt)).all()


@pytest.mark.parametrize("part", [Fraction(1, 7), Fraction(1, 2), Fraction(2**60 - 1, 2**61)])
def test_residuals_below_the_smallest_subnormal_of_float64_are_seen(part: Fraction):
    fmt = FORMATS["float64"]
    exact = (3 + part) * Fraction(2) ** -1074
    right = [float(part), float(1 - part), float(3 + part)]
    assert vectorised([3 * 2.0**-1074, 4 * 2.0**-1074, 0.0], exact, fmt) == pytest.approx(right, rel=1e-15, abs=0)


@each_format
def test_values_far_beyond_the_format_are_measured_in_its_ends(fmt: Format):
    assert vectorised([0.0, fmt.smallest_subnormal], Fraction(2) ** -9000, fmt) == [0, 1]
    huge = vectorised([fmt.largest], Fraction(2) ** 9000, fmt)
    assert huge == [2.0 ** (fmt.precision - 1)]  # all of it is missing
