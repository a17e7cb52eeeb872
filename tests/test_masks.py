"""Masks: each does what its name says, and what they hide is hostile."""

import numpy as np
import pytest

from oracles.formats import FORMATS, Format
from oracles.rounding import round_floats
from properties.masks import MASKS, hide, hostile_values, mask_named
from properties.source import PCG64Source, normals

LENGTHS = [0, 1, 2, 3, 4, 5, 7, 16, 31, 48, 63, 100, 257, 384, 1000]


def _masks(name: str, n: int, count: int = 12) -> list[np.ndarray]:
    return [MASKS[name].build(PCG64Source(name, n, i), n, i) for i in range(count)]


def _hidden_runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """Start and length of every run of hidden places."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], mask, [True]]).astype(int)))
    return [(int(a), int(b - a)) for a, b in edges.reshape(-1, 2)]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name", MASKS)
def test_every_kind_is_a_boolean_row_and_repeats(name: str, n: int):
    for first, again in zip(_masks(name, n), _masks(name, n), strict=True):
        assert first.dtype == np.bool_
        assert first.shape == (n,)
        assert first.tolist() == again.tolist()


@pytest.mark.parametrize("n", LENGTHS)
def test_none_hides_nothing_and_all_hides_all(n: int):
    assert all(mask.all() for mask in _masks("none", n))
    assert not any(mask.any() for mask in _masks("all", n))


@pytest.mark.parametrize("n", [n for n in LENGTHS if n > 1])
def test_prefix_and_suffix_hide_one_run_and_never_the_row(n: int):
    for mask in _masks("prefix", n):
        [(start, length)] = _hidden_runs(mask)
        assert (start, length < n) == (0, True)
    for mask in _masks("suffix", n):
        [(start, length)] = _hidden_runs(mask)
        assert (start + length, length < n) == (n, True)


def test_prefix_hides_every_possible_length():
    lengths = {int((~MASKS["prefix"].build(PCG64Source(i), 5, 0)).sum()) for i in range(100)}
    assert lengths == {1, 2, 3, 4}


def test_random_hides_about_half():
    shown = np.mean([mask.mean() for mask in _masks("random", 1000)])
    assert 0.47 < shown < 0.53


@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_all_but_one_shows_each_place_in_turn(n: int):
    assert [np.flatnonzero(mask).tolist() for mask in _masks("all_but_one", n)] == [[i % n] for i in range(12)]


@pytest.mark.parametrize("n", [48, 100, 257, 384, 1000])
def test_tiles_are_whole_and_stand_where_they_say(n: int):
    for mask in _masks("first_tile", n):
        [(start, length)] = _hidden_runs(mask)
        assert start == 0
        assert length in {16, 32, 64, 128}
    for mask in _masks("middle_tile", n):
        [(start, length)] = _hidden_runs(mask)
        assert length in {16, 32, 64, 128}
        assert start % length == 0
        assert length <= start < n - length
    for mask in _masks("last_tile", n):
        [(start, length)] = _hidden_runs(mask)
        assert start + length == n
        assert any(start % tile == 0 and length <= tile for tile in (16, 32, 64, 128))


def test_tiles_of_every_size_occur():
    sizes = {int((~MASKS["first_tile"].build(PCG64Source(i), 384, 0)).sum()) for i in range(50)}
    assert sizes == {16, 32, 64, 128}


@pytest.mark.parametrize("n", [3, 4, 5, 7, 16, 31])
def test_short_rows_have_short_tiles_on_three_places(n: int):
    first, middle, last = (_hidden_runs(_masks(f"{place}_tile", n)[0]) for place in ("first", "middle", "last"))
    assert first == [(0, n // 3)]
    assert 0 < middle[0][0] < n - middle[0][1]
    assert sum(last[0]) == n


def test_each_takes_all_kinds_in_turn_and_all_places_in_time():
    kinds = [name for name in MASKS if name != "each"]
    for i in range(5 * len(kinds)):
        expected = MASKS[kinds[i % len(kinds)]].build(PCG64Source(i), 5, i // len(kinds))
        assert MASKS["each"].build(PCG64Source(i), 5, i).tolist() == expected.tolist()


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_hidden_places_hold_every_hostile_value_and_visible_ones_stay(fmt: Format):
    row = round_floats(normals(PCG64Source("hidden"), 40), fmt)
    mask = MASKS["random"].build(PCG64Source("hidden mask"), 40, 0)
    before = fmt.bits(row).tolist()
    hidden = hide(row, mask, PCG64Source("hide"), fmt)
    assert fmt.bits(row).tolist() == before
    assert fmt.bits(hidden[mask]).tolist() == fmt.bits(row[mask]).tolist()
    hostile = fmt.bits(hostile_values(row, mask, fmt)).tolist()
    assert set(fmt.bits(hidden[~mask]).tolist()) == set(hostile)
    assert len(set(hostile)) == 6


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_every_hostile_value_comes_to_a_single_hidden_place_too(fmt: Format):
    row = round_floats(np.array([1.0, 2.0]), fmt)
    mask = np.array([True, False])
    seen = {int(fmt.bits(hide(row, mask, PCG64Source(i), fmt))[1]) for i in range(100)}
    assert seen == set(fmt.bits(hostile_values(row, mask, fmt)).tolist())


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("visible", [0.0, -6e4, 6e4, -np.inf, np.nan, np.inf])
def test_hostile_values_are_what_they_are_called(fmt: Format, visible: float):
    row = round_floats(np.array([visible, 7.0]), fmt)
    nan, inf, large, above, minus_inf, minus_nan = hostile_values(row, np.array([True, False]), fmt).astype(np.float64)
    assert np.isnan([nan, minus_nan]).all()
    assert np.signbit([nan, minus_nan]).tolist() == [False, True]
    assert [inf, minus_inf] == [np.inf, -np.inf]
    assert np.isclose(large, min(3e38, fmt.largest), rtol=2.0**-fmt.precision)
    finite_top = visible if np.isfinite(visible) else 0.0
    assert np.isclose(above, min(finite_top + 2e4, fmt.largest), rtol=2.0 ** (1 - fmt.precision))


def test_fully_hidden_and_empty_rows_can_be_hidden():
    fmt = FORMATS["float32"]
    hidden = hide(np.zeros(7, np.float32), np.zeros(7, bool), PCG64Source(0), fmt)
    assert 20_000 in hidden
    assert hide(np.zeros(0, np.float32), np.zeros(0, bool), PCG64Source(0), fmt).shape == (0,)


def test_an_unknown_mask_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown mask 'sparse': expected one of none, prefix"):
        mask_named("sparse")
