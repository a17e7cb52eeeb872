"""log_softmax: (x - m) - log l, and the textbook x - logsumexp(x), which cancels far from zero.

A hidden element and an element of -inf give -inf, and so does a row of nothing. A row with NaN or +inf gives
NaN.
"""

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import ALL_FORMATS, load, store
from gpu_impls.numpy.shifting import exponentials, nonzero, row_maximum, subtractable
from gpu_impls.numpy.summation import pairwise_sum

SHIFTED = "Blanchard, Higham and Higham, IMA J. Numer. Anal. 41, 2021"


@implementation("log_softmax", dtypes=ALL_FORMATS, summation="tree", source=SHIFTED)
def shifted(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """(x - m) - log(sum exp(x - m)). Both terms are small however far the row lies from zero."""
    values = load(x, mask, hidden=-np.inf)
    m = row_maximum(values)
    log_total = np.log(nonzero(pairwise_sum(exponentials(values, m))))
    shifted = values - subtractable(m)[:, None]
    return store(shifted - log_total[:, None], like=x)


@implementation(
    "log_softmax",
    dtypes=ALL_FORMATS,
    summation="tree",
    known_faulty={"accuracy": "logsumexp is rounded at the size of x: [1e7, 1e7] gives -1, not -0.693"},
)
def by_logsumexp(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: x - (m + log(sum exp(x - m))), error u |logsumexp(x)|."""
    values = load(x, mask, hidden=-np.inf)
    m = row_maximum(values)
    log_total = np.log(nonzero(pairwise_sum(exponentials(values, m))))
    return store(values - (subtractable(m) + log_total)[:, None], like=x)
