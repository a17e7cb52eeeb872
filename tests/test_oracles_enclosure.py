"""Enclosures: whatever goes in lies within the ball, in exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from oracles.enclosure import Enclosure, Ground, floor_log2
from oracles.formats import Format
from properties.source import PCG64Source
from test_oracles_formats import decode, infinity, number, some_patterns
from test_oracles_inputs import INF, NAN, each_format

TWO = Fraction(2)

# Sums whose parts are so far apart that a pair of floats, or their float residual, leaves some out.
_APART = ((0, -53, -1200), (1000, 947, -1074), (9, -600, -3000))
SPREAD = [TWO**a + sign * TWO**b + TWO**c for a, b, c in _APART for sign in (1, -1)]


def drawn_fractions(count: int) -> list[Fraction]:
    """Numbers of both signs, of any size, that no pair of floats holds."""
    raw = PCG64Source("fractions").integers(1, 2**62, 4 * count).tolist()
    parts = zip(raw[0::4], raw[1::4], raw[2::4], raw[3::4], strict=True)
    return [(-1) ** (e % 2) * Fraction(a * 2**61 + b, c) * TWO ** (e % 6000 - 3000) for a, b, c, e in parts]


def holds(enclosure: Enclosure, value: Fraction, radius: Fraction = Fraction(0)) -> bool:
    """Whether a ball of shape () holds all of ``value`` give or take ``radius``."""
    if enclosure.radius == INF:
        return True
    reach = Fraction(float(enclosure.radius)) * TWO ** int(enclosure.exponent)
    return abs(enclosure.fraction(()) - value) + radius <= reach


@pytest.mark.parametrize("exponent", [-3000, -1074, -1, 0, 1, 52, 53, 3000])
def test_floor_log2_at_powers_of_two_and_beside_them(exponent: int):
    power, dust = TWO**exponent, TWO ** (exponent - 200)
    for sign in (1, -1):
        assert [floor_log2(sign * v) for v in (power - dust, power, power + dust, 2 * power - dust)] == [
            exponent - 1,
            exponent,
            exponent,
            exponent,
        ]


def test_zero_has_no_exponent():
    with pytest.raises(ValueError, match="binary exponent of 0"):
        floor_log2(Fraction(0))


@pytest.mark.parametrize("radius", [Fraction(0), TWO**-5000, TWO**-200, Fraction(1, 3), TWO**100, TWO**3000])
def test_a_ball_holds_what_it_was_made_of(radius: Fraction):
    for value in [Fraction(0), Fraction(1), Fraction(1, 3), *SPREAD, *drawn_fractions(30)]:
        assert holds(Enclosure.around(value, radius), value, radius)


@pytest.mark.parametrize("relative", [Fraction(0), TWO**-106, TWO**-30, Fraction(3)])
def test_and_little_more(relative: Fraction):
    for value in [Fraction(1), Fraction(1, 3), *SPREAD, *drawn_fractions(30)]:
        radius = relative * abs(value)
        assert not holds(Enclosure.around(value, radius), value, radius * (1 + TWO**-40) + TWO**-105 * abs(value))


@pytest.mark.parametrize("value", [*SPREAD, Fraction(1, 3), 1 - TWO**-54, 1 - TWO**-200])
def test_only_a_pair_that_holds_it_all_has_radius_0(value: Fraction):
    ball = Enclosure.around(value, Fraction(0))
    assert (ball.radius == 0) == (ball.fraction(()) == value)


def test_the_parts_do_not_overlap():
    for value in [*SPREAD, *drawn_fractions(50), Fraction(1), Fraction(-3, 4), 1 - TWO**-60]:
        ball = Enclosure.around(value, Fraction(0))
        assert 0.5 <= abs(float(ball.hi)) <= 1
        assert abs(float(ball.lo)) <= np.spacing(abs(float(ball.hi))) / 2


@each_format
def test_values_of_a_format_hold_themselves(fmt: Format):
    patterns = some_patterns(fmt)
    exact = Enclosure.exact(fmt.from_bits(np.array(patterns)))
    assert (exact.radius == 0).all()
    assert [exact.fraction((i,)) for i in range(len(patterns))] == [decode(fmt, k) for k in patterns]
    assert exact.value().tolist() == [number(fmt, k) for k in patterns]


@each_format
def test_what_is_not_finite_holds_nothing(fmt: Format):
    exact = Enclosure.exact(np.array([NAN, INF, -INF]).astype(fmt.dtype))
    assert exact.value().tolist() == [0, 0, 0]
    assert infinity(fmt) > 0
    assert float(Enclosure.unknown().radius) == INF


@pytest.mark.parametrize("exponent", [-4000, -1074, -1022, 0, 24, 3000])
def test_the_exponent_of_a_ball_just_below_a_power_of_two_is_the_lower_one(exponent: int):
    power = TWO**exponent
    for dust in (TWO**-54, TWO**-60, TWO**-107):
        for sign in (1, -1):
            below, above = (Enclosure.around(sign * power * (1 + s * dust), Fraction(0)) for s in (-1, 1))
            assert abs(float(below.hi)) in (0.5, 1.0)  # it is rounded up to the power
            assert (int(below.magnitude_exponent), int(above.magnitude_exponent)) == (exponent - 1, exponent)
    assert Enclosure.around(Fraction(0), Fraction(0)).magnitude_exponent < -(2**30)


def test_values_overflow_and_underflow_in_silence():
    far = [Enclosure.around(sign * TWO**e, Fraction(0)) for e in (100_000, -100_000) for sign in (1, -1)]
    assert [float(e.value()) for e in far] == [INF, -INF, 0, 0]
    wide = [float(e.value(np.longdouble) / e.value(np.longdouble)) for e in (Enclosure.around(TWO**900, Fraction(0)),)]
    assert wide == [1]


def test_parts_are_put_and_taken_by_place():
    whole = Enclosure.empty((2, 3))
    whole.put((1, np.array([0, 2])), Enclosure.exact(np.array([5.0, -7.0])))
    whole.put((0, 1), Enclosure.around(Fraction(1, 3), Fraction(1)))
    assert whole.value().tolist() == [[0, 1 / 3, 0], [5, 0, -7]]
    assert whole[1].value().tolist() == [5, 0, -7]
    assert (whole[1].radius == 0).all()
    assert holds(whole[0, 1], Fraction(1, 3), Fraction(1))


@pytest.mark.parametrize(
    ("grounds", "weakest"),
    [
        (set(), Ground.PROVED),
        ({Ground.PROVED}, Ground.PROVED),
        ({Ground.PROVED, Ground.DOCUMENTED}, Ground.DOCUMENTED),
        (set(Ground), Ground.MPMATH),
    ],
    ids=["none", "proved", "documented", "mpmath"],
)
def test_a_table_stands_on_its_weakest_ground(grounds: set[Ground], weakest: Ground):
    assert Ground.weakest(grounds) is weakest
