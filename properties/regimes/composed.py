"""Regimes that are about something beside the values: what is hidden, and how long the row is."""

import numpy as np

from oracles.formats import Format
from properties.regimes.logits import REGIMES as LOGITS
from properties.regimes.regime import EVERY_FAMILY, Regime, of_finite_rows
from properties.source import Floats, Source, choice, uniforms

_BY_NAME = {regime.name: regime for regime in LOGITS}
_ORDINARY = _BY_NAME["standard_normal"]
_UNDER_MASKS = (_BY_NAME["moderate_logits"], _BY_NAME["far_below_zero"])


def _masks(source: Source, n: int, fmt: Format) -> Floats:
    """Among very negative values a finite stand-in for -inf wins; among ordinary ones it may not show."""
    return choice(source, _UNDER_MASKS).build(source, n, fmt)


def _fits_under_masks(row: Floats, fmt: Format) -> bool:
    return any(regime.holds(row, fmt) for regime in _UNDER_MASKS)


def _late_maximum(source: Source, n: int, fmt: Format) -> Floats:
    """A dominant element far above the rest outlives its own loss: whoever drops it from the sum and guards against
    0 is right by luck. Here the others count."""
    row = np.abs(_ORDINARY.build(source, n, fmt)) / 8
    row[-1:] = 10.0 + 4.0 * uniforms(source, 1)[: row.size]
    return row


@of_finite_rows
def _is_late_maximum(row: Floats, fmt: Format) -> bool:
    return 10 <= row[-1] <= 14 and (np.abs(row[:-1]) < 1).all()


REGIMES = (
    Regime(
        "late_maximum",
        "The last element outweighs each other by e^9 to e^14, but not all of them together in a long row.",
        EVERY_FAMILY,
        _late_maximum,
        _is_late_maximum,
        min_length=1,
    ),
    Regime(
        "masks",
        "Moderate or far negative values, some of them hidden (see properties.masks).",
        EVERY_FAMILY,
        _masks,
        _fits_under_masks,
    ),
    Regime("lengths", "Ordinary values; the length is the point.", EVERY_FAMILY, _ORDINARY.build, _ORDINARY.holds),
)
