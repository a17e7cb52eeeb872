"""Regimes that are about something beside the values: what is hidden, and how long the row is."""

from oracles.formats import Format
from properties.regimes.logits import REGIMES as LOGITS
from properties.regimes.regime import EVERY_FAMILY, Regime
from properties.source import Floats, Source, choice

_BY_NAME = {regime.name: regime for regime in LOGITS}
_ORDINARY = _BY_NAME["standard_normal"]
_UNDER_MASKS = (_BY_NAME["moderate_logits"], _BY_NAME["far_below_zero"])


def _masks(source: Source, n: int, fmt: Format) -> Floats:
    """Among very negative values a finite stand-in for -inf wins; among ordinary ones it may not show."""
    return choice(source, _UNDER_MASKS).build(source, n, fmt)


def _fits_under_masks(row: Floats, fmt: Format) -> bool:
    return any(regime.holds(row, fmt) for regime in _UNDER_MASKS)


REGIMES = (
    Regime(
        "masks",
        "Moderate or far negative values, some of them hidden (see properties.masks).",
        EVERY_FAMILY,
        _masks,
        _fits_under_masks,
    ),
    Regime("lengths", "Ordinary values; the length is the point.", EVERY_FAMILY, _ORDINARY.build, _ORDINARY.holds),
)
