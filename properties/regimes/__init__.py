"""Regimes: the named families of hostile rows, each written once (DESIGN.md, section 6).

The same names stand in tests, reports and baselines. Masks, lengths, layouts and recorded rows are crossed with these
by whoever builds cases; see ``properties/masks.py`` and ``properties/layouts.py``.
"""

from properties.regimes import composed, logits, magnitudes, maxima, moments, special, summands
from properties.regimes.regime import FAMILIES, Regime

REGIMES: dict[str, Regime] = {}
for _module in (logits, maxima, moments, summands, magnitudes, special, composed):
    for _regime in _module.REGIMES:
        if _regime.name in REGIMES:
            raise ValueError(f"two regimes are called {_regime.name}")
        REGIMES[_regime.name] = _regime


def regime_named(name: str) -> Regime:
    """The regime called ``name``. Raises ``ValueError`` listing the known ones."""
    try:
        return REGIMES[name]
    except KeyError:
        raise ValueError(f"unknown regime {name!r}: expected one of {', '.join(REGIMES)}") from None


__all__ = ["FAMILIES", "REGIMES", "Regime", "regime_named"]
