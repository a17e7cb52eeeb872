"""Population variance (ddof 0) of the visible elements: in two passes, and in one, which cancels."""

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import ALL_FORMATS, load, store, visible_count
from gpu_impls.numpy.summation import pairwise_sum

# Squares of differences neither overflow nor underflow in float32.
DOMAIN = (1e-15, 1e15)


@implementation(
    "var",
    dtypes=ALL_FORMATS,
    domain=DOMAIN,
    summation="tree",
    source="Chan, Golub and LeVeque, Amer. Stat. 37, 1983",
)
def two_pass(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """sum (x - mean)^2 / n. NaN for a row of nothing (0 / 0) and for infinite elements (inf - inf)."""
    values = load(x, mask)
    count = visible_count(values, mask)
    difference = values - (pairwise_sum(values) / count)[:, None]
    if mask is not None:
        np.copyto(difference, 0, where=~mask)
    return store(pairwise_sum(difference * difference) / count, like=x)


@implementation(
    "var",
    dtypes=ALL_FORMATS,
    domain=DOMAIN,
    summation="tree",
    known_faulty={"accuracy": "E[x^2] - E[x]^2 cancels: [4096, 4097, 4098, 4099] gives 2, not 1.25"},
)
def one_pass(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: E[x^2] - E[x]^2, error u (mean^2 + variance), where two passes have u variance."""
    values = load(x, mask)
    count = visible_count(values, mask)
    mean = pairwise_sum(values) / count
    return store(pairwise_sum(values * values) / count - mean * mean, like=x)
