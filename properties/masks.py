"""Masks of rows, and what stands where they hide.

A mask is boolean, True = takes part. What it hides never matters (DESIGN.md, section 5), so hidden places always hold
what would do most harm if it did.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oracles.formats import Array, Format
from oracles.rounding import round_floats
from properties.source import Source, whole

Mask = NDArray[np.bool_]
Build = Callable[[Source, int, int], Mask]

TILES = (16, 32, 64, 128)


@dataclass(frozen=True)
class MaskKind:
    """A named family of masks.

    Args:
        name: as in cases and test ids.
        promise: one sentence.
        build: ``(source, n, row_index)`` to one row's mask of length n.
    """

    name: str
    promise: str
    build: Build


def _none(source: Source, n: int, row_index: int) -> Mask:
    return np.ones(n, dtype=bool)


def _all(source: Source, n: int, row_index: int) -> Mask:
    return np.zeros(n, dtype=bool)


def _prefix(source: Source, n: int, row_index: int) -> Mask:
    hidden = whole(source, min(1, n - 1), n - 1) if n else 0
    return np.arange(n) >= hidden


def _suffix(source: Source, n: int, row_index: int) -> Mask:
    return _prefix(source, n, row_index)[::-1]


def _random(source: Source, n: int, row_index: int) -> Mask:
    return source.integers(0, 1, n) == 0


def _all_but_one(source: Source, n: int, row_index: int) -> Mask:
    return np.arange(n) == (row_index % n if n else 0)


def _tile(source: Source, n: int) -> int:
    """A tile that leaves room for two others; in rows too short for 16, a third of the row."""
    fitting = [tile for tile in TILES if 3 * tile <= n] or [max(1, n // 3)]
    return fitting[whole(source, 0, len(fitting) - 1)]


def _hidden_block(n: int, start: int, tile: int) -> Mask:
    place = np.arange(n)
    return (place < start) | (place >= start + tile)


def _first_tile(source: Source, n: int, row_index: int) -> Mask:
    return _hidden_block(n, 0, _tile(source, n))


def _middle_tile(source: Source, n: int, row_index: int) -> Mask:
    """Whole tiles counted from the start, as a kernel's are."""
    tile = _tile(source, n)
    return _hidden_block(n, (n // tile) // 2 * tile, tile)


def _last_tile(source: Source, n: int, row_index: int) -> Mask:
    """What remains beyond the last but one tile boundary: a whole tile, or the ragged end."""
    tile = _tile(source, n)
    return _hidden_block(n, max(n - 1, 0) // tile * tile, tile)


MASKS: dict[str, MaskKind] = {
    kind.name: kind
    for kind in (
        MaskKind("none", "Everything takes part.", _none),
        MaskKind("prefix", "A run at the start is hidden, never the whole row.", _prefix),
        MaskKind("suffix", "A run at the end is hidden, never the whole row.", _suffix),
        MaskKind("random", "Each place is hidden or not by the toss of a coin.", _random),
        MaskKind("all_but_one", "One place takes part: place row_index modulo n.", _all_but_one),
        MaskKind("all", "Nothing takes part.", _all),
        MaskKind("first_tile", "The first tile of 16, 32, 64 or 128 (shorter in short rows) is hidden.", _first_tile),
        MaskKind("middle_tile", "A tile with tiles on both sides is hidden, on tile boundaries.", _middle_tile),
        MaskKind("last_tile", "The last tile, whole or ragged, is hidden.", _last_tile),
    )
}

_SINGLE = tuple(MASKS.values())


def _each(source: Source, n: int, row_index: int) -> Mask:
    """One kind after the other, so that a batch has them all side by side."""
    turn, kind = divmod(row_index, len(_SINGLE))
    return _SINGLE[kind].build(source, n, turn)


MASKS["each"] = MaskKind("each", "The other kinds in turn by row_index.", _each)


def mask_named(name: str) -> MaskKind:
    """The mask kind called ``name``. Raises ``ValueError`` listing the known ones."""
    try:
        return MASKS[name]
    except KeyError:
        raise ValueError(f"unknown mask {name!r}: expected one of {', '.join(MASKS)}") from None


def hostile_values(row: Array, mask: Mask, fmt: Format) -> Array:
    """What hidden places hold: NaN, inf, 3e38, the visible maximum + 2e4, -inf, NaN with its sign bit set.

    Finite ones are clipped to the format; without a finite visible value the maximum counts as 0.
    """
    visible = row.astype(np.float64)[mask]
    top = np.max(visible, initial=-np.inf, where=np.isfinite(visible))
    above = min((top if np.isfinite(top) else 0.0) + 2e4, fmt.largest)
    values = [np.nan, np.inf, min(3e38, fmt.largest), above, -np.inf, np.copysign(np.nan, -1.0)]
    return round_floats(np.array(values), fmt)


def hide(row: Array, mask: Mask, source: Source, fmt: Format) -> Array:
    """A copy of ``row`` with hostile values, in turn from a drawn one on, wherever ``mask`` is False."""
    hostile = hostile_values(row, mask, fmt)
    first = whole(source, 0, hostile.size - 1)
    hidden = np.array(row, dtype=fmt.dtype)
    hidden[~mask] = hostile[(first + np.arange(np.count_nonzero(~mask))) % hostile.size]
    return hidden
