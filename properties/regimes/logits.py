"""Logits: where exp overflows, underflows, or sees differences that vanish beside their own magnitude."""

import numpy as np

from oracles.formats import Format
from properties.regimes.regime import EVERY_FAMILY, Regime, of_finite_rows, ulps
from properties.source import Floats, Source, magnitudes, normals, signs, uniforms, whole


def _spread_is(row: Floats, low: float, high: float) -> bool:
    """The standard deviation, where the row is long enough to have one (short drawn rows may be all zeros)."""
    return row.size < 64 or low <= float(np.std(row)) <= high


def _standard_normal(source: Source, n: int, fmt: Format) -> Floats:
    return normals(source, n)


@of_finite_rows
def _is_standard_normal(row: Floats, fmt: Format) -> bool:
    return bool((np.abs(row) <= 6).all()) and _spread_is(row, 0.5, 1.5)


def _moderate_logits(source: Source, n: int, fmt: Format) -> Floats:
    scale = 3.0 + 17.0 * uniforms(source, 1)
    return scale * normals(source, n)


@of_finite_rows
def _is_moderate_logits(row: Floats, fmt: Format) -> bool:
    return bool((np.abs(row) <= 120).all()) and _spread_is(row, 1.5, 30)


def _thousand_scale_logits(source: Source, n: int, fmt: Format) -> Floats:
    """About a common centre 1, 10 or 80 wide, so that neighbours share the mass; or each on its own."""
    kind = whole(source, 0, 3)
    if kind == 3:
        return signs(source, n) * (1000.0 + 4000.0 * uniforms(source, n))
    centre = signs(source, 1) * (1000.0 + 4000.0 * uniforms(source, 1))
    return centre + (1.0, 10.0, 80.0)[kind] * normals(source, n)  # 80 * 5.8 < 500


@of_finite_rows
def _is_thousand_scale_logits(row: Floats, fmt: Format) -> bool:
    return bool(((np.abs(row) >= 500) & (np.abs(row) <= 5600)).all())


def _far_below_zero(source: Source, n: int, fmt: Format) -> Floats:
    """Half of the rows lie under -5e4, where some kernels start their running maximum."""
    narrow = fmt.largest < 1e5
    if whole(source, 0, 1) == 0:
        low, high = (52_000.0, 60_000.0) if narrow else (70_000.0, 100_000.0)
        base = low + (high - low) * uniforms(source, 1)
    else:
        base = magnitudes(source, 14, 14 if narrow else 22, 1)
    # A few steps of the format wide, so that there is a maximum and something beside it.
    spread = np.maximum(16.0, 4.0 * ulps(base, fmt))
    return -(base + spread * uniforms(source, n))


@of_finite_rows
def _is_far_below_zero(row: Floats, fmt: Format) -> bool:
    return bool((row < -1e4).all())


def _one_dominant(source: Source, n: int, fmt: Format) -> Floats:
    """Grows with n, so that a sum of 128,256 that loses it is over its bound too."""
    row = normals(source, n)
    place = (0, n // 2, n - 1)[whole(source, 0, 2)]
    dominant = 64.0 * (1.0 + uniforms(source, 1)) * max(1.0, n / 16)
    row[place : place + 1] = np.minimum(dominant, fmt.largest / 8)
    return row


@of_finite_rows
def _is_one_dominant(row: Floats, fmt: Format) -> bool:
    place = int(np.argmax(row))
    others = float(np.abs(np.delete(row, place)).max(initial=0.0))
    return place in {0, row.size // 2, row.size - 1} and float(row[place]) >= max(64.0, 8 * others)


REGIMES = (
    Regime(
        "standard_normal",
        "Nearly standard normal: within 6 of zero, standard deviation about 1 from length 64 on.",
        EVERY_FAMILY,
        _standard_normal,
        _is_standard_normal,
    ),
    Regime(
        "moderate_logits",
        "Nearly normal of scale 3 to 20: within 120 of zero, standard deviation 1.5 to 30 from length 64 on.",
        frozenset({"softmax"}),
        _moderate_logits,
        _is_moderate_logits,
    ),
    Regime(
        "thousand_scale_logits",
        "Every magnitude lies between 500 and 5600, where an unshifted exp overflows or underflows.",
        frozenset({"softmax"}),
        _thousand_scale_logits,
        _is_thousand_scale_logits,
    ),
    Regime(
        "far_below_zero",
        "Every value lies below -1e4; a stand-in of that size for minus infinity is larger than the row.",
        frozenset({"softmax", "sum"}),
        _far_below_zero,
        _is_far_below_zero,
    ),
    Regime(
        "one_dominant",
        "One element, first, middle or last, is at least 64 and 8 times every other.",
        EVERY_FAMILY,
        _one_dominant,
        _is_one_dominant,
    ),
)
