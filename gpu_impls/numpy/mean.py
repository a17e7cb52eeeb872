"""Mean of the visible elements, and a twin that divides by the wrong count."""

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import ALL_FORMATS, load, store, visible_count
from gpu_impls.numpy.summation import pairwise_sum


@implementation("mean", dtypes=ALL_FORMATS, summation="tree")
def pairwise(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Pairwise sum over the visible count. 0 / 0 is NaN for a row of nothing, as it should be."""
    values = load(x, mask)
    return store(pairwise_sum(values) / visible_count(values, mask), like=x)


@implementation(
    "mean",
    dtypes=ALL_FORMATS,
    summation="tree",
    known_faulty={"masks": "divides by n, not by the number of visible elements"},
)
def over_length(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: hidden elements add nothing, but are counted. A row with all hidden gives 0, not NaN."""
    values = load(x, mask)
    return store(pairwise_sum(values) / visible_count(values, None), like=x)
