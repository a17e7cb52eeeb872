"""fused_add_rms_norm: s = x + residual comes out as it is stored, and rms_norm(s) beside it.

In 16 bits kernels disagree on which s the norm sees: the sum as it was computed, or as it was stored.
"""

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import ALL_FORMATS, load, store
from gpu_impls.numpy.rms_norm import DOMAIN, SOURCE, normalised

Pair = tuple[np.ndarray, np.ndarray]
# The sum is exact, or its own rounding, in these.
NARROW = ("float16", "bfloat16")


@implementation("fused_add_rms_norm", dtypes=ALL_FORMATS, domain=DOMAIN, summation="tree", source=SOURCE)
def unrounded(
    x: np.ndarray,
    residual: np.ndarray,
    weight: np.ndarray | None = None,
    eps: float = 1e-6,
    out: Pair | None = None,
) -> Pair:
    """The norm sees the sum before it is rounded to storage. Can write into ``out``, two arrays."""
    s = load(x) + load(residual)
    y, updated = out or (None, None)
    return store(normalised(s, weight, None, eps), like=x, out=y), store(s, like=x, out=updated)


@implementation(
    "fused_add_rms_norm", dtypes=ALL_FORMATS, domain=DOMAIN, summation="tree", statistics="rounded", source=SOURCE
)
def rounded(x: np.ndarray, residual: np.ndarray, weight: np.ndarray | None = None, eps: float = 1e-6) -> Pair:
    """The norm sees the sum as it was stored."""
    updated = store(load(x) + load(residual), like=x)
    return store(normalised(load(updated), weight, None, eps), like=x), updated


@implementation(
    "fused_add_rms_norm",
    dtypes=NARROW,
    domain=DOMAIN,
    summation="tree",
    known_faulty={"accuracy": "the norm sees the stored sum, and does not say so"},
)
def rounded_undeclared(
    x: np.ndarray, residual: np.ndarray, weight: np.ndarray | None = None, eps: float = 1e-6
) -> Pair:
    """Faulty: as ``rounded``, without the claim."""
    return rounded(x, residual, weight, eps)


@implementation(
    "fused_add_rms_norm",
    dtypes=ALL_FORMATS,
    domain=DOMAIN,
    summation="tree",
    known_faulty=dict.fromkeys(("accuracy", "special_values"), "the old residual comes out, not the sum"),
)
def residual_not_updated(
    x: np.ndarray, residual: np.ndarray, weight: np.ndarray | None = None, eps: float = 1e-6
) -> Pair:
    """Faulty: a right norm beside a residual that was forgotten."""
    return unrounded(x, residual, weight, eps)[0], residual.copy()
