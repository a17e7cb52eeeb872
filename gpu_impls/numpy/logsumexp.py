"""log(sum exp(x)): shifted, online, to half an ulp; and two ways to get it wrong.

With m the maximum, m + log(sum exp(x - m)) never overflows. Its error is small beside max(1, |x|), which is
all the default bound asks: for [0, -20] it gives 0, where the value is 2.06e-9. To be right in ulps takes
log1p, and care where m and the logarithm cancel.

A row of nothing gives -inf, +inf gives +inf, NaN gives NaN, also beside +inf.
"""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import ALL_FORMATS, load, store
from gpu_impls.numpy.shifting import row_maximum, running_state
from gpu_impls.numpy.summation import pairwise_sum


def finite_or_zero(m: np.ndarray) -> np.ndarray:
    """What may be subtracted. With 0 for an infinite maximum, exp and log carry the infinity through."""
    return np.where(np.isfinite(m), m, m.dtype.type(0))


def shifted_rows(values: np.ndarray) -> np.ndarray:
    """m + log(sum exp(x - m)) for each row."""
    m = finite_or_zero(row_maximum(values))
    return m + np.log(pairwise_sum(np.exp(values - m[:, None])))


def without_maximum(values: np.ndarray) -> np.ndarray:
    """The rows with their (first) maximum hidden. A row with NaN loses its first NaN."""
    rest = values.copy()
    if values.size:
        np.put_along_axis(rest, np.argmax(values, axis=-1)[:, None], -np.inf, axis=-1)
    return rest


SHIFTED = "Blanchard, Higham and Higham, IMA J. Numer. Anal. 41, 2021"
ONLINE = "Milakov and Gimelshein, Online normalizer calculation for softmax, 2018"


@implementation("logsumexp", dtypes=ALL_FORMATS, summation="tree", source=SHIFTED)
def shifted(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """m + log(sum exp(x - m)), pairwise sum."""
    return store(shifted_rows(load(x, mask, hidden=-np.inf)), like=x)


@implementation("logsumexp", dtypes=ALL_FORMATS, source=ONLINE)
def online_tiles(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """m + log l, with the pair (m, l) merged tile by tile (tiles of 37)."""
    m, total = running_state(load(x, mask, hidden=-np.inf), tile=37)
    return store(np.where(np.isinf(m), m, m + np.log(total)), like=x)


# float64 errs by less than 2^-44 of the terms here: what survives this much cancellation is good to 2^-32.
CANCELLATION = 2.0**-12


def exact_logsumexp(row: np.ndarray) -> float:
    """One row of finite elements and -inf, in decimal arithmetic with digits doubled until 20 are certain.

    ``Decimal.exp`` and ``Decimal.ln`` are correctly rounded, so S = sum exp(x) has a relative error below (n
    + 1) 10^(1 - digits), and so log S an absolute one below twice that. S is never exactly 1 for more than
    one element (Lindemann and Weierstrass), hence the loop ends.
    """
    terms = [Decimal(float(value)) for value in row if value > -np.inf]
    digits = 60
    while True:
        context = Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)
        total = Decimal(0)
        for term in terms:
            total = context.add(total, context.exp(term))
        result = context.ln(total)
        if abs(result) > (len(terms) + 2) * Decimal(10) ** (21 - digits):
            return float(result)
        digits *= 2


@implementation(
    "logsumexp",
    dtypes=("float32", "float16", "bfloat16"),
    accumulate="float64",
    max_ulp=0.51,
    source="log1p: Maechler, Accurately computing log(1 - exp(-|a|)), 2012",
)
def log1p(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """m + log1p(sum of exp(x - m) over all but the maximum), in float64: [0, -20] gives 2.0611536e-9.

    For m >= 0 nothing cancels: both terms are right to 2^-40. For m < 0 the sum may come arbitrarily near to
    zero ([-ln 2, -ln 2]), where no fixed precision is enough; such rows, a few in a thousand of those near
    zero, are done again in decimal arithmetic. Rounded to storage once (bfloat16: through float32, which
    costs 2^-17 ulp).
    """
    values = load(x, mask, hidden=-np.inf).astype(np.float64)
    m = row_maximum(values)
    rest = np.exp(without_maximum(values) - finite_or_zero(m)[:, None])
    result = m + np.log1p(pairwise_sum(rest))
    for i in np.flatnonzero((m < 0) & (np.abs(result) < CANCELLATION * np.abs(m)) & np.isfinite(m)):
        result[i] = exact_logsumexp(values[i])
    return store(result, like=x)


@implementation(
    "logsumexp",
    dtypes=("float32",),  # 16-bit formats round e^-12 away
    summation="tree",
    known_faulty={"accuracy": "a gap of 12 still leaves e^-12, which is the whole result for a maximum of 0"},
)
def maximum_beyond_gap(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: answers with the maximum when the second largest element lies more than 12 below it."""
    values = load(x, mask, hidden=-np.inf)
    m = row_maximum(values)
    gap = m - row_maximum(without_maximum(values))
    return store(np.where(gap > 12, m, shifted_rows(values)), like=x)


UNGUARDED = "(-inf) - (-inf) is NaN: [-inf, -inf, 3, 1] in blocks of two"


@implementation(
    "logsumexp",
    dtypes=ALL_FORMATS,
    max_length=8192,
    known_faulty={"special_values": UNGUARDED, "masks": UNGUARDED},
)
def unguarded_blocks(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Faulty: online in blocks of two, subtracting a maximum of -inf. Right if no empty block comes first."""
    values = load(x, mask, hidden=-np.inf)
    m, total = np.full(x.shape[0], -np.inf, values.dtype), np.zeros(x.shape[0], values.dtype)
    for first in range(0, x.shape[-1], 2):
        block = values[:, first : first + 2]
        risen = np.maximum(m, row_maximum(block))
        total = total * np.exp(m - risen) + pairwise_sum(np.exp(block - risen[:, None]))
        m = risen
    return store(np.where(np.isposinf(m), m, m + np.log(total)), like=x)
