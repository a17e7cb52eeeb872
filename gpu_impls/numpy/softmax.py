"""Softmax: in three passes, online by element, online by tiles; and six ways to get it wrong.

A row is summarised by m, its maximum, and l = sum exp(x - m); then y = exp(x - m) / l. An element of -inf and
a hidden element are the same thing, exp(-inf) = 0. A row of nothing gives zeros. A row with NaN or +inf gives
NaN throughout.
"""

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import ALL_FORMATS, load, store
from gpu_impls.numpy.shifting import exponentials, nonzero, row_maximum, running_state
from gpu_impls.numpy.summation import pairwise_sum

THREE_PASS = "Blanchard, Higham and Higham, IMA J. Numer. Anal. 41, 2021"
ONLINE = "Milakov and Gimelshein, Online normalizer calculation for softmax, 2018"


def normalised(values: np.ndarray, m: np.ndarray, total: np.ndarray) -> np.ndarray:
    """exp(x - m) / total: subtraction, exponential and division each round once."""
    return exponentials(values, m) / nonzero(total)[:, None]


@implementation("softmax", dtypes=ALL_FORMATS, summation="tree", source=THREE_PASS)
def three_pass(x: np.ndarray, mask: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
    """Maximum; exponentials and their pairwise sum; division. Can write into ``out``."""
    values = load(x, mask, hidden=-np.inf)
    weights = exponentials(values, row_maximum(values))
    total = pairwise_sum(weights)
    return store(weights / nonzero(total)[:, None], like=x, out=out)


@implementation("softmax", dtypes=ALL_FORMATS, max_length=16384, source=f"{ONLINE}, algorithm 3")
def online(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """(m, l) grows element by element, l is rescaled whenever m rises; then one pass for the output."""
    values = load(x, mask, hidden=-np.inf)
    return store(normalised(values, *running_state(values, tile=1)), like=x)


@implementation("softmax", dtypes=ALL_FORMATS, source=f"{ONLINE}, section 3.1")
def online_tiles(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """(m, l) of each tile of 37 merges into the running pair. The odd tile leaves a tail at usual lengths."""
    values = load(x, mask, hidden=-np.inf)
    return store(normalised(values, *running_state(values, tile=37)), like=x)


UNSHIFTED = "exp(x) overflows beyond 88, and vanishes for a row far below zero"


@implementation(
    "softmax",
    dtypes=ALL_FORMATS,
    known_faulty=dict.fromkeys(("accuracy", "special_values"), UNSHIFTED),
)
def unshifted(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: exp(x) / sum exp(x). [1000, 1001] gives NaN; [2, inf, -1] gives [0, NaN, 0]."""
    weights = np.exp(load(x, mask, hidden=-np.inf))
    return store(weights / nonzero(pairwise_sum(weights))[:, None], like=x)


@implementation(
    "softmax",
    dtypes=ALL_FORMATS,
    max_length=16384,
    known_faulty={"accuracy": "what came before a rise of 6 is dropped, though it weighs up to e^-6"},
)
def rescale_lost(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: online by element, factors below e^-6 taken for 0. Right unless m rises by 6 to 17 at once."""
    values = load(x, mask, hidden=-np.inf)

    def negligible_below_e_minus_6(minus_rise: np.ndarray) -> np.ndarray:
        return np.where(minus_rise < -6, minus_rise.dtype.type(0), np.exp(minus_rise))

    return store(normalised(values, *running_state(values, tile=1, rescale=negligible_below_e_minus_6)), like=x)


@implementation(
    "softmax",
    dtypes=ALL_FORMATS,
    known_faulty={"accuracy": "the running maximum starts at -5e4: [-70000, -70001] gives zeros"},
)
def finite_start(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: a finite number stands for -inf at the start, and is the maximum of every row below it."""
    values = load(x, mask, hidden=-np.inf)
    return store(normalised(values, *running_state(values, tile=37, start=-5e4)), like=x)


@implementation(
    "softmax",
    dtypes=ALL_FORMATS,
    summation="tree",
    known_faulty={"masks": "-10000 is added to hidden elements: NaN, inf and 3e38 under the mask still win"},
)
def mask_stand_in(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: adds -10000 where the mask hides. A row with nothing visible gives weights, not zeros."""
    values = load(x)
    if mask is not None:
        values = values + np.where(mask, 0, -10000).astype(values.dtype)
    m = row_maximum(values)
    return store(normalised(values, m, pairwise_sum(exponentials(values, m))), like=x)


PADDED = "padding counts as logits of 0: the weights of [-3, -5, -4] add up to 0.07"


@implementation(
    "softmax",
    dtypes=ALL_FORMATS,
    summation="tree",
    known_faulty=dict.fromkeys(("accuracy", "special_values", "masks"), PADDED),
)
def padded_with_zero(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: rows are padded to a multiple of four with 0, the identity of a sum, not of a softmax."""
    values = load(x, mask, hidden=-np.inf)
    rows, n = values.shape
    padded = np.zeros((rows, -(-n // 4) * 4), values.dtype)
    padded[:, :n] = values
    m = row_maximum(padded)
    return store(normalised(values, m, pairwise_sum(exponentials(padded, m))), like=x)
