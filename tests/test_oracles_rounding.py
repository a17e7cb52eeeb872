"""Rounding into a format, against brute force over bit patterns.

The patterns 0, 1, 2, ... of a format's non-negative values rise with the values, and infinity's comes after the
largest. So every point lies between the values of two patterns k and k + 1, a midpoint belongs to the even one and a
point beside it to the nearer. That, and no arithmetic, says here what is right, up to the overflow threshold.
"""

from fractions import Fraction

import numpy as np
import pytest

from oracles.enclosure import Enclosure
from oracles.formats import FORMATS, Format
from oracles.rounding import round_enclosure, round_floats, round_fraction
from properties.source import PCG64Source
from test_oracles_formats import decode, each_half, infinity, number, some_patterns
from test_oracles_inputs import INF, NAN, each_format

# Shares of a half step: within a float, within a pair of floats, beyond both.
NEAR = tuple(Fraction(1, 2**e) for e in (12, 40, 80, 1300))

each_sign = pytest.mark.parametrize("sign", [1, -1], ids=["plus", "minus"])

Point = tuple[Fraction, int]


def points(fmt: Format, k: int) -> list[Point]:
    """Points from the value of pattern ``k`` up to the next, each with the pattern it rounds to."""
    low, high = decode(fmt, k), decode(fmt, k + 1)
    half = (high - low) / 2
    beside = [(low + half * (1 + t), k + 1) for t in NEAR] + [(low + half * (1 - t), k) for t in NEAR]
    ends = [(low + half * t, k) for t in NEAR] + [(high - half * t, k + 1) for t in NEAR]
    return [(low, k), (low + half, k + k % 2), *beside, *ends]


def drawn_points(fmt: Format) -> list[Point]:
    return [point for k in some_patterns(fmt) for point in points(fmt, k)]


def stack(values: list[Fraction], radius: Fraction = Fraction(0)) -> Enclosure:
    whole = Enclosure.empty((len(values),))
    for i, value in enumerate(values):
        whole.put(i, Enclosure.around(value, radius * abs(value)))
    return whole


@each_sign
@each_format
def test_fractions_round_to_the_nearest_or_the_even(fmt: Format, sign: int):
    for value, right in drawn_points(fmt):
        assert round_fraction(sign * value, fmt) == sign * number(fmt, right)


@each_sign
@each_format
def test_enclosures_round_to_the_nearest_or_the_even(fmt: Format, sign: int):
    values, right = zip(*drawn_points(fmt), strict=True)
    rounded, decided = round_enclosure(stack([sign * v for v in values]), fmt)
    wanted = sign * fmt.from_bits(np.array(right)).astype(np.float64)
    assert rounded.dtype == fmt.dtype
    assert (rounded.astype(np.float64) == wanted)[decided].all()
    # Left open are only the points beside a midpoint that no pair of floats can tell from it.
    beyond_a_pair = 4 if fmt.precision == 53 else 2
    assert (~decided).sum() <= beyond_a_pair * len(some_patterns(fmt))


@each_half
def test_fractions_round_right_at_every_value_of_16_bits(fmt: Format):
    numbers = fmt.from_bits(np.arange(infinity(fmt) + 1)).astype(np.float64).tolist()
    for k in range(infinity(fmt)):
        low, high = decode(fmt, k), decode(fmt, k + 1)
        middle, dust = (low + high) / 2, (high - low) / 2**30
        rounded = [round_fraction(v, fmt) for v in (low, middle - dust, middle, middle + dust)]
        assert rounded == [numbers[i] for i in (k, k, k + k % 2, k + 1)]


@each_sign
@pytest.mark.parametrize("lo", [0.0, 2.0**-55, -(2.0**-55), 2.0**-1000, -(2.0**-1000), 5e-324, -5e-324])
@each_half
def test_pairs_round_right_at_every_midpoint_of_16_bits(fmt: Format, sign: int, lo: float):
    k = np.arange(infinity(fmt))
    low, high = (np.array([float(decode(fmt, int(i))) for i in j]) for j in (k, k + 1))
    hi, exponent = np.frexp((low + high) / 2)
    midpoints = Enclosure(sign * hi, np.full(hi.shape, sign * lo), exponent.astype(np.int64), np.zeros(hi.shape))
    rounded, decided = round_enclosure(midpoints, fmt)
    right = k + (k % 2 if lo == 0 else lo > 0)
    assert decided.all()
    assert (rounded.astype(np.float64) == sign * fmt.from_bits(right).astype(np.float64)).all()


@each_half
def test_going_through_float32_is_wrong_beside_midpoints_and_round_floats_is_not(fmt: Format):
    k = np.arange(infinity(fmt) - 1)
    values = fmt.from_bits(k).astype(np.float64)
    beside = (values + fmt.from_bits(k + 1).astype(np.float64)) / 2 * (1 + 2.0**-40)
    right = fmt.from_bits(k + 1).astype(np.float64)
    assert (round_floats(beside, fmt).astype(np.float64) == right).all()
    with np.errstate(under="ignore"):
        twice = beside.astype(np.float32).astype(fmt.dtype).astype(np.float64)
    assert (twice != right).mean() > 0.4  # the trap is there


def test_going_through_float64_is_wrong_beside_midpoints_of_float32():
    fmt = FORMATS["float32"]
    normal = [(v, number(fmt, k)) for v, k in drawn_points(fmt) if fmt.smallest_normal < v < fmt.largest]
    twice = [float(np.float32(float(v))) for v, _ in normal]
    assert sum(a != b for a, (_, b) in zip(twice, normal, strict=True)) > 20


@each_format
def test_overflow_begins_half_an_ulp_above_the_largest(fmt: Format):
    largest = Fraction(fmt.largest)
    half = (largest - decode(fmt, infinity(fmt) - 2)) / 2
    for value, right in [
        (largest + half * (1 - Fraction(1, 2**40)), fmt.largest),
        (largest + half, INF),
        (largest * 2, INF),
        (largest * Fraction(2) ** 3000, INF),
    ]:
        for sign in (1, -1):
            assert round_fraction(sign * value, fmt) == sign * right
            rounded, decided = round_enclosure(stack([sign * value]), fmt)
            assert (float(rounded[0]), bool(decided[0])) == (sign * right, True)


@each_format
def test_values_far_below_every_format_are_zero(fmt: Format):
    tiny = [Fraction(2) ** e for e in (fmt.quantum_exponent - 2, -3000, -200_000)]
    assert [round_fraction(v, fmt) for v in tiny] == [0, 0, 0]
    rounded, decided = round_enclosure(stack(tiny), fmt)
    assert rounded.tolist() == [0, 0, 0]
    assert decided.all()


@each_format
def test_a_pair_below_a_power_of_two_is_not_the_power(fmt: Format):
    """hi is a power of two and lo negative: the value lies in the binade below, where steps are half as long."""
    u, dust = Fraction(fmt.unit_roundoff), Fraction(1, 2**40)
    for power in (Fraction(1), Fraction(2) ** fmt.emin * 4, Fraction(2) ** fmt.emax):
        for down, right in ((u / 2, 1), (u / 2 * (1 + dust), 1 - u), (u / 2 * (1 - dust), 1)):
            rounded, decided = round_enclosure(stack([power * (1 - down)]), fmt)
            assert decided.all()
            assert Fraction(float(rounded[0])) == power * right


@each_sign
@pytest.mark.parametrize("half", [0.5, -0.5])
def test_ties_that_lo_alone_carries_go_to_even(sign: int, half: float):
    """In float64 hi is a value of the format already; the pair may be split either way."""
    fmt = FORMATS["float64"]
    normal = [k for k in some_patterns(fmt) if k >= 2**53 and 0 < k % 2**52 < 2**52 - 1]
    for k in normal:
        hi, exponent = np.frexp([sign * number(fmt, k)])
        tie = Enclosure(hi, np.array([sign * half * 2.0**-53]), exponent.astype(np.int64), np.zeros(1))
        rounded, decided = round_enclosure(tie, fmt)
        assert decided.all()
        right = k if k % 2 == 0 else k + (1 if half > 0 else -1)
        assert float(rounded[0]) == sign * number(fmt, right)


@each_format
def test_what_is_decided_is_right_at_both_ends_and_little_is_left_open(fmt: Format):
    """Balls of all radii, about points at all distances from a midpoint and from powers of two."""
    draws = PCG64Source("balls", fmt.name).integers(0, 2**30, 400)
    for k, share, width in zip([*some_patterns(fmt, 120)], draws[0::2].tolist(), draws[1::2].tolist(), strict=False):
        if k + 1 == infinity(fmt):
            continue
        step = decode(fmt, k + 1) - decode(fmt, k)
        middle, radius = decode(fmt, k) + step * share / 2**30, step * Fraction(width, 2**30) / 2
        rounded, decided = round_enclosure(Enclosure.around(middle, radius)[None], fmt)
        ends = {round_fraction(middle - radius, fmt), round_fraction(middle + radius, fmt)}
        widened = {round_fraction(middle - radius * 101 / 100, fmt), round_fraction(middle + radius * 101 / 100, fmt)}
        assert not decided[0] or ends == {float(rounded[0])}
        assert decided[0] or len(widened) == 2 or radius >= step / 4


@each_format
def test_a_wide_ball_at_a_power_of_two_reaches_the_midpoint_below(fmt: Format):
    ball = Enclosure.around(Fraction(1), Fraction(fmt.unit_roundoff) * Fraction(6, 10))
    assert not round_enclosure(ball, fmt)[1]


@each_format
def test_what_nothing_is_known_of_is_left_open_in_silence(fmt: Format):
    for ball in (Enclosure.unknown(), Enclosure.around(Fraction(0), Fraction(2) ** 900)):
        assert not round_enclosure(ball, fmt)[1]


@each_format
def test_floats_keep_the_sign_of_zero_and_what_is_not_finite(fmt: Format):
    tiny = 2.0 ** max(fmt.quantum_exponent - 2, -1074) if fmt.name != "float64" else 0.0
    values = np.array([0.0, -0.0, tiny, -tiny, INF, -INF, NAN, fmt.largest, -fmt.largest])
    rounded = round_floats(values, fmt)
    assert rounded.dtype == fmt.dtype
    wanted = np.array([0.0, -0.0, 0.0, -0.0, INF, -INF, NAN, fmt.largest, -fmt.largest]).astype(fmt.dtype)
    assert fmt.hex(rounded) == fmt.hex(wanted)
    assert round_floats(np.zeros((0, 3)), fmt).shape == (0, 3)
