"""Maximum, and two twins: the wrong identity, and a comparison that loses NaN."""

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import ALL_FORMATS, load, store
from gpu_impls.numpy.shifting import row_maximum


@implementation("max", dtypes=ALL_FORMATS)
def propagating(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Exact. Identity -inf, so a row of nothing gives -inf; a NaN anywhere wins (IEEE 754-2019 maximum)."""
    return store(row_maximum(load(x, mask, hidden=-np.inf)), like=x)


IDENTITY_ZERO = "0 is not the identity of max: [-3, -5] gives 0"


@implementation(
    "max",
    dtypes=ALL_FORMATS,
    known_faulty=dict.fromkeys(("accuracy", "special_values"), IDENTITY_ZERO),
)
def identity_zero(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: starts from 0, so a row of negative numbers, or of nothing, gives 0."""
    return store(np.max(load(x, mask, hidden=-np.inf), axis=-1, initial=0), like=x)


@implementation(
    "max",
    dtypes=ALL_FORMATS,
    known_faulty={"special_values": "NaN > best is false: [NaN, 1, 2] gives 2"},
)
def by_comparison(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: keeps an element if it is greater than the best so far, which a NaN never is."""
    values = load(x, mask, hidden=-np.inf)
    best = np.full(x.shape[0], -np.inf, values.dtype)
    for column in np.ascontiguousarray(values.T):
        best = np.where(column > best, column, best)
    return store(best, like=x)
