"""Sources: pinned to the bit, unbiased, exact at the ends, and simplest first."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.source import (
    DrawnSource,
    PCG64Source,
    choice,
    magnitudes,
    normals,
    signed_uniforms,
    signs,
    uniforms,
)


class Scripted:
    """Gives the integers it was told to, in turn, to see what they are made into."""

    def __init__(self, *integers: int) -> None:
        self.rest = list(integers)

    def integers(self, low: int, high: int, size: int) -> np.ndarray:
        taken, self.rest = self.rest[:size], self.rest[size:]
        assert all(low <= i <= high for i in taken)
        return np.array(taken, dtype=np.int64)


def test_the_same_key_gives_the_same_integers_everywhere():
    drawn = PCG64Source("softmax", 7).integers(0, 2**63 - 1, 3)
    assert drawn.tolist() == [8299358072639876352, 7343662620565753434, 7226112616695998822]
    assert PCG64Source().integers(-5, 5, 8).tolist() == [-2, 0, -2, 4, -5, -3, 5, 4]


def test_another_key_gives_other_integers():
    keys = [(), (1,), ("1",), (1, 1), (11,), ("a", "b"), ("ab",)]
    drawn = {tuple(PCG64Source(*key).integers(0, 2**60, 4).tolist()) for key in keys}
    assert len(drawn) == len(keys)


def test_numpy_integers_are_keys_like_any_other():
    assert PCG64Source(np.int64(3)).integers(0, 99, 5).tolist() == PCG64Source(3).integers(0, 99, 5).tolist()


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (-3, 9), (0, 2**32), (5, 2**33 + 12345), (-(2**62), 2**62 - 1), (0, 2**63 - 1)]
)
def test_integers_are_the_exact_product_shifted(low: int, high: int):
    source, again = PCG64Source(low, high), PCG64Source(low, high)
    raw = again._bits.random_raw(500)
    expected = [low + (int(r) * (high - low + 1) >> 64) for r in raw]
    assert source.integers(low, high, 500).tolist() == expected


def test_both_ends_are_included_and_equally_likely():
    counts = np.bincount(PCG64Source("dice").integers(1, 6, 60_000), minlength=7)[1:]
    assert ((counts > 9_500) & (counts < 10_500)).all()  # 10,000 with a standard deviation of 91


@pytest.mark.parametrize("source", [PCG64Source(), DrawnSource(lambda s: 0)])
@pytest.mark.parametrize(("low", "high"), [(1, 0), (-(2**63), 2**63 - 1)])
def test_impossible_ranges_raise(source: PCG64Source | DrawnSource, low: int, high: int):
    with pytest.raises(ValueError, match="no integers to draw"):
        source.integers(low, high, 1)


@pytest.mark.parametrize("make", [uniforms, signed_uniforms, normals])
def test_no_numbers_are_no_numbers(make):
    assert make(PCG64Source(), 0).shape == (0,)


def test_small_integers_are_short_fractions():
    assert uniforms(Scripted(0, 1, 2, 3, 4), 5).tolist() == [0, 0.5, 0.25, 0.75, 0.125]
    assert signed_uniforms(Scripted(0, 1, 2, 3, 4), 5).tolist() == [0, 0, 0.5, -0.5, 0.25]
    assert not np.signbit(signed_uniforms(Scripted(1), 1)).any()


def test_the_largest_integer_gives_the_largest_number_below_one():
    assert uniforms(Scripted(2**53 - 1), 1)[0] == 1 - 2**-53
    assert abs(signed_uniforms(Scripted(2**53 - 1), 1)[0]) == 1 - 2**-52
    assert 5.7 < abs(normals(Scripted(2**53 - 1), 1)[0]) < 5.8


def test_moments_are_those_promised():
    u, v, x = (make(PCG64Source("moments"), 200_000) for make in (uniforms, signed_uniforms, normals))
    assert abs(u.mean() - 0.5) < 0.004
    assert abs(u.var() - 1 / 12) < 0.001
    assert abs(v.mean()) < 0.007
    assert abs(x.mean()) < 0.012
    assert abs(x.std() - 1) < 0.01
    assert abs((x**4).mean() / x.var() ** 2 - 2.57) < 0.05


def test_magnitudes_keep_to_their_binades():
    x = magnitudes(PCG64Source("m"), -1074, 1023, 5_000)
    assert (x > 0).all()
    assert np.isfinite(x).all()
    y = magnitudes(PCG64Source("m"), 3, 4, 5_000)
    assert 8 <= y.min() < 8.1
    assert 31.9 < y.max() < 32


def test_simplest_choices_come_first():
    assert choice(Scripted(0), ("plain", "odd")) == "plain"
    assert signs(Scripted(0, 1), 2).tolist() == [1, -1]


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_drawn_integers_stay_within_their_range(data):
    drawn = DrawnSource(data.draw).integers(-3, 11, 20)
    assert drawn.dtype == np.int64
    assert drawn.min() >= -3
    assert drawn.max() <= 11
