"""Rows made for means, variances and root mean squares: conditioning, epsilon, outliers."""

import numpy as np

from oracles.formats import Format
from properties.regimes.regime import EVERY_FAMILY, Regime, of_finite_rows, ulps
from properties.source import (
    Floats,
    Source,
    choice,
    magnitudes,
    normals,
    signed_uniforms,
    signs,
    uniforms,
    whole,
)

NORM_AND_SUM = frozenset({"norm", "sum"})
EPSILONS = (1e-5, 1e-6, 1e-12)


def _large_mean_small_variance(source: Source, n: int, fmt: Format) -> Floats:
    """Steps of 0.001 above 1000 (1000.001 ... 1000.010 at n = 10), or mean 1000 and spread 0.03 to 1 up to n = 1023,
    or any mean and ratio. Spreads that the format cannot resolve become a step of the format."""
    kind = whole(source, 0, 2)
    step_at_1000 = float(ulps(np.array([1000.0]), fmt)[0])
    if kind == 0:
        return 1000.0 + (np.arange(n) % 10 + 1) * max(0.001, step_at_1000)
    if kind == 1 and n <= 1023:
        return 1000.0 + max(0.03 + 0.97 * float(uniforms(source, 1)[0]), step_at_1000) * _deviations(source, n)
    mean = signs(source, 1) * magnitudes(source, 0, 12, 1)
    ratio = magnitudes(source, 3, min(fmt.precision - 2, 22), 1)
    return mean + np.abs(mean) / ratio * _deviations(source, n)


def _deviations(source: Source, n: int) -> Floats:
    """Uniform of variance 1; the first two are apart, so that no row is constant, drawn or rounded."""
    deviations = 1.732 * signed_uniforms(source, n)
    deviations[:2] = (1.5, -1.5)[:n]
    return deviations


@of_finite_rows
def _is_large_mean_small_variance(row: Floats, fmt: Format) -> bool:
    if row.size < 2:
        return True
    mean, deviation = abs(float(np.mean(row))), float(np.std(row))
    return 0 < 3.5 * deviation <= mean


def _eps_scale(source: Source, n: int, fmt: Format) -> Floats:
    base = np.sqrt(choice(source, EPSILONS))
    return base * signs(source, n) * (0.25 + 3.75 * uniforms(source, n))


@of_finite_rows
def _is_eps_scale(row: Floats, fmt: Format) -> bool:
    """The factors are a little wider than those drawn: 2.5e-7 is four steps of float16."""
    size = np.abs(row)
    return any(((size >= 0.2 * base) & (size <= 4.2 * base)).all() for base in np.sqrt(EPSILONS))


def _outlier_channels(source: Source, n: int, fmt: Format) -> Floats:
    row = normals(source, n)
    if n == 0:
        return row
    count = whole(source, 1, max(1, n // 64))
    places = source.integers(0, n - 1, count)
    row[places] = signs(source, count) * (20.0 + 80.0 * uniforms(source, count))
    return row


@of_finite_rows
def _is_outlier_channels(row: Floats, fmt: Format) -> bool:
    size = np.abs(row)
    outliers = (size >= 20) & (size <= 100)
    few = 1 <= int(np.count_nonzero(outliers)) <= max(1, row.size // 64)
    return few and bool((size[~outliers] <= 6).all())


def _heavy_tail(source: Source, n: int, fmt: Format) -> Floats:
    """The quantile function of Student's t with 2 degrees of freedom is algebraic: ``v * sqrt(2 / (1 - v**2))``;
    2**-30 bounds it by 46341. One element is drawn beyond 30, so that short rows have a tail too."""
    v = signed_uniforms(source, n)
    row = v * np.sqrt(2.0 / (1.0 + 2.0**-30 - v * v))
    if n > 0:
        row[whole(source, 0, n - 1)] = (signs(source, 1) * magnitudes(source, 5, 11, 1))[0]
    return row


@of_finite_rows
def _is_heavy_tail(row: Floats, fmt: Format) -> bool:
    size = np.abs(row)
    narrow_middle = row.size < 64 or float(np.median(size)) <= 3
    return 30 <= float(size.max()) <= 46400 and narrow_middle


REGIMES = (
    Regime(
        "large_mean_small_variance",
        "The spread is not zero, and the mean at least 3.5 (drawn: 8 to 8e6, as the format allows) times as large.",
        NORM_AND_SUM,
        _large_mean_small_variance,
        _is_large_mean_small_variance,
    ),
    Regime(
        "eps_scale",
        "Every magnitude is within a quarter and 4 times (and rounding) of sqrt(eps) for eps 1e-5, 1e-6 or 1e-12.",
        frozenset({"norm"}),
        _eps_scale,
        _is_eps_scale,
    ),
    Regime(
        "outlier_channels",
        "Between one element and one in 64 is 20 to 100 in magnitude, the rest is within 6.",
        EVERY_FAMILY,
        _outlier_channels,
        _is_outlier_channels,
    ),
    Regime(
        "heavy_tail",
        "The largest magnitude is 30 to 46400, the median magnitude at most 3 from length 64 on.",
        EVERY_FAMILY,
        _heavy_tail,
        _is_heavy_tail,
    ),
)
