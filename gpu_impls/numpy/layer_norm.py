"""layer_norm: y = (x - mean) / sqrt(var + eps) * weight + bias, with the moments taken in five ways.

All share the last step; what differs is how far rounding moves mean and variance on a row of large mean and
small spread. A row with NaN or an infinite element gives NaN throughout (inf - inf). A constant row gives the
bias.
"""

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.affine import scale_and_shift
from gpu_impls.numpy.precision import ALL_FORMATS, load, store
from gpu_impls.numpy.summation import WARP, lanes_of, pairwise_sum

# Squares of differences neither overflow nor underflow in float32.
DOMAIN = (1e-15, 1e15)
CHAN = "Chan, Golub and LeVeque, Amer. Stat. 37, 1983"


def normalised(
    values: np.ndarray,
    moments: tuple[np.ndarray, np.ndarray],
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    eps: float,
) -> np.ndarray:
    """(x - mean) / sqrt(var + eps), then weight and bias; each operation rounds once."""
    mean, var = moments
    reciprocal = 1 / np.sqrt(var + values.dtype.type(eps))
    return scale_and_shift((values - mean[:, None]) * reciprocal[:, None], weight, bias)


def row_mean(values: np.ndarray) -> np.ndarray:
    """Pairwise sum over n; NaN for n = 0."""
    return pairwise_sum(values) / values.dtype.type(values.shape[-1])


def two_pass_moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean first, then the mean of the squared differences."""
    mean = row_mean(values)
    difference = values - mean[:, None]
    return mean, row_mean(difference * difference)


def corrected_moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two passes; the mean of the differences, 0 but for rounding, corrects the mean and the variance."""
    mean = row_mean(values)
    difference = values - mean[:, None]
    error = row_mean(difference)
    # On a constant row both terms are the square of the error of the mean, and may cancel to below 0.
    var = np.maximum(row_mean(difference * difference) - error * error, 0)
    return mean + error, var


def welford_moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One pass, element by element: mean += d / k, M2 += d (x - mean), where d = x - mean before the step."""
    rows, n = values.shape
    mean, m2 = np.zeros(rows, values.dtype), np.zeros(rows, values.dtype)
    for k, column in enumerate(np.ascontiguousarray(values.T), start=1):
        before = column - mean
        mean = mean + before / values.dtype.type(k)
        m2 = m2 + before * (column - mean)
    return mean, m2 / values.dtype.type(n)


Partial = tuple[np.ndarray, np.ndarray, np.ndarray]  # count, mean, M2 (sum of squared differences)


def lane_moments(values: np.ndarray) -> Partial:
    """Welford in each of 32 lanes, ``(rows, 32)``; lanes past the end of the row sit out the last step."""
    rows, n = values.shape
    count, mean, m2 = (np.zeros((rows, WARP), values.dtype) for _ in range(3))
    for step, column in enumerate(lanes_of(values)):
        active = step * WARP + np.arange(WARP) < n
        count = count + active.astype(values.dtype)
        before = column - mean
        mean = np.where(active, mean + before / np.maximum(count, 1), mean)
        m2 = np.where(active, m2 + before * (column - mean), m2)
    return count, mean, m2


def merged(a: Partial, b: Partial) -> Partial:
    """The moments of two parts together (Chan, Golub and LeVeque, 1983); either may be empty."""
    (count_a, mean_a, m2_a), (count_b, mean_b, m2_b) = a, b
    count = count_a + count_b
    share = count_b / np.maximum(count, 1)
    apart = mean_b - mean_a
    return count, mean_a + apart * share, m2_a + m2_b + apart * apart * (count_a * share)


def warp_welford_moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lanes, then a shuffle tree of merges by 16, 8, 4, 2, 1."""
    partial = lane_moments(values)
    offset = WARP // 2
    while offset:
        lower = tuple(part[:, :offset] for part in partial)
        upper = tuple(part[:, offset : 2 * offset] for part in partial)
        partial = merged(lower, upper)
        offset //= 2
    _, mean, m2 = (part[:, 0] for part in partial)
    return mean, m2 / values.dtype.type(values.shape[-1])


def one_pass_moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Faulty: E[x^2] - E[x]^2."""
    mean = row_mean(values)
    return mean, row_mean(values * values) - mean * mean


@implementation(
    "layer_norm",
    dtypes=ALL_FORMATS,
    domain=DOMAIN,
    summation="tree",
    source="Ba, Kiros and Hinton, Layer Normalization, 2016",
)
def two_pass(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-5
) -> np.ndarray:
    """Mean, then variance about it; pairwise sums."""
    values = load(x)
    return store(normalised(values, two_pass_moments(values), weight, bias, eps), like=x)


@implementation("layer_norm", dtypes=ALL_FORMATS, domain=DOMAIN, summation="tree", source=CHAN)
def corrected_two_pass(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-5
) -> np.ndarray:
    """Two passes with the error of the mean taken out of mean and variance."""
    values = load(x)
    return store(normalised(values, corrected_moments(values), weight, bias, eps), like=x)


@implementation("layer_norm", dtypes=ALL_FORMATS, domain=DOMAIN, source="Welford, Technometrics 4(3), 1962")
def welford(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-5
) -> np.ndarray:
    """Moments in one pass, element by element."""
    values = load(x)
    return store(normalised(values, welford_moments(values), weight, bias, eps), like=x)


@implementation("layer_norm", dtypes=ALL_FORMATS, domain=DOMAIN, summation="lanes:32", source=CHAN)
def welford_warp_tree(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-5
) -> np.ndarray:
    """Welford in 32 lanes, partial moments merged in a shuffle tree, as one GPU warp does it."""
    values = load(x)
    return store(normalised(values, warp_welford_moments(values), weight, bias, eps), like=x)


@implementation(
    "layer_norm",
    dtypes=ALL_FORMATS,
    domain=DOMAIN,
    summation="tree",
    known_faulty={"accuracy": "E[x^2] - E[x]^2 cancels when the mean is large beside the spread"},
)
def one_pass_variance(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-5
) -> np.ndarray:
    """Faulty: the variance as a difference of two large numbers; it may even come out negative."""
    values = load(x)
    return store(normalised(values, one_pass_moments(values), weight, bias, eps), like=x)
