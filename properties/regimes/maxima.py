"""Rows made for the running maximum: how often it rises, by how much, and what it leaves behind."""

import numpy as np

from oracles.formats import Format
from properties.regimes.regime import EVERY_FAMILY, Regime, of_finite_rows
from properties.source import Floats, Source, magnitudes, signed_uniforms, uniforms, whole


def _steps(n: int, fmt: Format) -> int:
    """How many steps up a ramp of length n takes: all of them, as long as the format can hold the steps apart."""
    return min(n - 1, 2 ** (fmt.precision - 2))


def _ascending_ramp(source: Source, n: int, fmt: Format) -> Floats:
    """Multiples of one step, counted from a drawn origin on the ramp; it is 0, 1, 2, ... at its simplest."""
    if n == 0:
        return np.zeros(0)
    steps = _steps(n, fmt)
    origin = whole(source, 0, steps)
    step = magnitudes(source, -10, 2, 1)
    level = np.arange(n) * steps // max(n - 1, 1)
    return (level - origin) * step


@of_finite_rows
def _is_ascending_ramp(row: Floats, fmt: Format) -> bool:
    rises = np.diff(row)
    return bool((rises >= 0).all()) and int(np.count_nonzero(rises)) >= _steps(row.size, fmt)


def _descending_ramp(source: Source, n: int, fmt: Format) -> Floats:
    return _ascending_ramp(source, n, fmt)[::-1]


@of_finite_rows
def _is_descending_ramp(row: Floats, fmt: Format) -> bool:
    return _is_ascending_ramp(row[::-1], fmt)


def _rising_tiles(source: Source, n: int, fmt: Format) -> Floats:
    """Each tile starts with its maximum, the rest lies up to 4 below. Counted from the last tile, which tops at 0
    to 16, levels fall by 6 to 16 as long as the format resolves such jumps; all tiles before that lie level.
    """
    tile = whole(source, 16, min(128, n // 2)) if n >= 64 else whole(source, 1, min(16, n // 2))
    tiles = -(-n // tile)
    jumps = 6.0 + 10.0 * uniforms(source, tiles)
    deepest = 2.0 ** (fmt.precision + 1)  # steps of 2 there: two roundings move a jump by at most 2
    rising = min(tiles, int(deepest) // 16)
    jumps[: tiles - rising] = 0.0
    climbed = np.cumsum(jumps)  # one by one: np.sum adds in an order that depends on the machine
    level = 16.0 * uniforms(source, 1) - (climbed[-1] - climbed)
    below = 4.0 * uniforms(source, n)
    below[::tile] = 0.0
    return np.repeat(level, tile)[:n] - below


@of_finite_rows
def _is_rising_tiles(row: Floats, fmt: Format) -> bool:
    rises = np.diff(np.maximum.accumulate(row))
    rises = rises[rises > 0]
    return rises.size > 0 and bool(((rises >= 4) & (rises <= 18)).all())


def _gap(source: Source, n: int, fmt: Format) -> Floats:
    """A third of the rows: maximum within 1 of zero and a gap of 12 to 16, where the rest still counts for more
    than the error of a logsumexp that is nearly 0."""
    if whole(source, 0, 2) == 0:
        top, gap = signed_uniforms(source, 1), 12.0 + 4.0 * uniforms(source, 1)
    else:
        top, gap = 20.0 * signed_uniforms(source, 1), 110.0 * uniforms(source, 1)
    place, second = whole(source, 0, n - 1), whole(source, 1, n - 1)
    below = gap + 3.0 * uniforms(source, n)
    below[(place + second) % n] = gap[0]
    below[place] = 0.0
    return top - below


@of_finite_rows
def _is_gap(row: Floats, fmt: Format) -> bool:
    """Roundings at up to 133 move a difference by at most a step of the format there."""
    ordered, step = np.sort(row), 2.0 ** (8 - fmt.precision)
    gap, rest = ordered[-1] - ordered[-2], ordered[-2] - ordered[0]
    return bool(gap <= 110 + step and rest <= 3 + step and abs(ordered[-1]) <= 20)


REGIMES = (
    Regime(
        "ascending_ramp",
        "The running maximum rises at every element, or as often as the format can tell values apart.",
        EVERY_FAMILY,
        _ascending_ramp,
        _is_ascending_ramp,
    ),
    Regime(
        "descending_ramp",
        "The running maximum of the reversed row rises at every element, or as often as the format allows.",
        EVERY_FAMILY,
        _descending_ramp,
        _is_descending_ramp,
    ),
    Regime(
        "rising_tiles",
        "The running maximum rises only by jumps of 6 to 16 (within rounding), one per tile.",
        frozenset({"softmax", "sum"}),
        _rising_tiles,
        _is_rising_tiles,
        min_length=2,
    ),
    Regime(
        "gap",
        "One maximum within 20 of zero, a gap of 0 to 110 under it, the rest within 3 of each other.",
        frozenset({"softmax"}),
        _gap,
        _is_gap,
        min_length=2,
        max_length=300,
    ),
)
