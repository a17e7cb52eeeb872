"""Special values at every kind of place: NaN of both signs, the infinities, minus zero."""

from collections.abc import Callable

import numpy as np

from oracles.formats import Format
from properties.regimes.regime import EVERY_FAMILY, Regime
from properties.source import Floats, Source, choice, normals, whole

INF = float("inf")
NANS = (float("nan"), float(np.copysign(np.nan, -1.0)))
SPECIAL_VALUES = (*NANS, INF, -INF, -0.0)

Planting = Callable[[Source, Floats], None]


def _place(source: Source, n: int) -> int:
    """First, middle, last, or anywhere."""
    return (0, n // 2, n - 1, whole(source, 0, n - 1))[whole(source, 0, 3)]


def _one(source: Source, row: Floats) -> None:
    row[_place(source, row.size)] = choice(source, SPECIAL_VALUES)


def _two(source: Source, row: Floats) -> None:
    """Any two, maybe at one place: NaN beside inf, inf beside -inf."""
    _one(source, row)
    _one(source, row)


def _all_alike(source: Source, row: Floats) -> None:
    row[:] = choice(source, (-INF, -0.0, INF, *NANS))


def _all_hidden_but_one(source: Source, row: Floats) -> None:
    kept = whole(source, 0, row.size - 1)
    row[:kept] = -INF
    row[kept + 1 :] = -INF
    if row.size == 1:
        row[:] = -INF


def _hidden_part(source: Source, row: Floats) -> None:
    """A run of -inf at the start, in the middle or at the end: a block of a kernel in which every element is -inf."""
    length = whole(source, 1, max(1, row.size // 2))
    start = (0, (row.size - length) // 2, row.size - length)[whole(source, 0, 2)]
    row[start : start + length] = -INF


def _zeros_of_both_signs(source: Source, row: Floats) -> None:
    row[:] = np.where(source.integers(0, 1, row.size) == 0, -0.0, 0.0)
    row[_place(source, row.size)] = -0.0


PLANTINGS: tuple[Planting, ...] = (_one, _two, _all_alike, _all_hidden_but_one, _hidden_part, _zeros_of_both_signs)


def _specials(source: Source, n: int, fmt: Format) -> Floats:
    row = normals(source, n)
    if n > 0:
        choice(source, PLANTINGS)(source, row)
    return row


def _is_specials(row: Floats, fmt: Format) -> bool:
    special = ~np.isfinite(row) | ((row == 0) & np.signbit(row))
    return row.size == 0 or bool(special.any())


REGIMES = (
    Regime(
        "specials",
        "At least one NaN of either sign, infinity or minus zero, the rest standard normal.",
        EVERY_FAMILY,
        _specials,
        _is_specials,
    ),
)
