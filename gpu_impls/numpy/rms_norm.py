"""rms_norm: y = x / sqrt(mean(x^2) + eps) * weight + bias; plain, safe at any scale, and with eps misplaced.

A zero row gives 0 (NaN for eps = 0, by 0 * inf). An infinite element gives NaN, finite ones beside it 0. NaN
spreads.
"""

import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.affine import scale_and_shift
from gpu_impls.numpy.precision import ALL_FORMATS, load, store
from gpu_impls.numpy.summation import pairwise_sum

# Squares, and their mean, neither overflow nor underflow in float32.
DOMAIN = (1e-15, 1e15)
SOURCE = "Zhang and Sennrich, Root Mean Square Layer Normalization, 2019"


def mean_square(values: np.ndarray) -> np.ndarray:
    """``(rows, 1)``: pairwise sum of the squares over n; NaN for n = 0, where nothing is left to multiply."""
    return (pairwise_sum(values * values) / values.shape[-1])[:, None]


def normalised(values: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, eps: float) -> np.ndarray:
    """The formula as it stands, in the precision of ``values``."""
    reciprocal = 1 / np.sqrt(mean_square(values) + values.dtype.type(eps))
    return scale_and_shift(values * reciprocal, weight, bias)


@implementation("rms_norm", dtypes=ALL_FORMATS, domain=DOMAIN, summation="tree", source=SOURCE)
def plain(
    x: np.ndarray,
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    eps: float = 1e-6,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """The formula as it stands. Can write into ``out``."""
    return store(normalised(load(x), weight, bias, eps), like=x, out=out)


def split(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(f, e) with values = f * 2^e exactly and |f| in [1/2, 1); 0, inf and NaN keep e = 0."""
    fraction, exponent = np.frexp(values)
    return fraction, np.where(np.isfinite(values), exponent, 0)


def row_exponent(values: np.ndarray, eps: np.floating) -> np.ndarray:
    """``(rows, 1)``: the least e with max|x| < 2^e and eps < 4^e; x 2^k and eps 4^k move it by exactly k."""
    nothing = -(10**6)
    largest = np.max(np.abs(values), axis=-1, initial=0, keepdims=True)
    of_x = np.where(largest > 0, split(largest)[1], nothing)
    of_eps = -(-split(eps)[1] // 2) if eps > 0 else nothing
    exponent = np.maximum(of_x, of_eps)
    return np.where(exponent == nothing, 0, exponent)


def add_without_overflow(fraction: np.ndarray, exponent: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """fraction * 2^exponent + bias, finite whenever the sum is, even if the product alone is not."""
    # Only where the product is huge: elsewhere the shift would cost a small bias its last bits.
    huge = (exponent > np.finfo(fraction.dtype).maxexp - 16) & (fraction != 0)
    margin = np.where(huge, 32, 0)
    return np.ldexp(np.ldexp(fraction, exponent - margin) + np.ldexp(bias, -margin), margin)


@implementation("rms_norm", dtypes=ALL_FORMATS, summation="tree", source=SOURCE)
def scaled(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-6
) -> np.ndarray:
    """The same for the whole format: subnormals, rows near the largest finite number, any eps.

    Row and root of eps are brought below 1 by one power of two, so that the larger of mean square and eps is
    neither huge nor tiny. The products run on fractions in [1/2, 1) with their exponents kept aside, and meet
    the range of the format once, at the end. Powers of two are exact: hence exactly odd, and exactly
    covariant under x 2^k, eps 4^k.
    """
    values = load(x)
    eps = values.dtype.type(eps)
    scale = row_exponent(values, eps)
    reciprocal = 1 / np.sqrt(mean_square(np.ldexp(values, -scale)) + np.ldexp(eps, -2 * scale))
    fraction, exponent = split(values)
    fraction, exponent = fraction * reciprocal, exponent - scale
    if weight is not None:
        weight_fraction, weight_exponent = split(weight.astype(values.dtype))
        fraction, exponent = fraction * weight_fraction, exponent + weight_exponent
    if bias is None:
        return store(np.ldexp(fraction, exponent), like=x)
    return store(add_without_overflow(fraction, exponent, bias.astype(values.dtype)), like=x)


@implementation(
    "rms_norm",
    dtypes=("float32", "bfloat16"),
    summation="tree",
    known_faulty={"accuracy": "squares overflow and underflow float32: [3e19, 4e19] with eps 0 gives zeros"},
)
def overflowing(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-6
) -> np.ndarray:
    """Faulty: the plain formula, promised for the whole format."""
    return plain(x, weight, bias, eps)


EPS_OUTSIDE = "eps is added to the root, not under it: [1e-3, -1e-3] with eps 1e-5 gives 0.990, not 0.302"


@implementation(
    "rms_norm",
    dtypes=("float32", "float16", "bfloat16"),
    domain=DOMAIN,
    summation="tree",
    known_faulty=dict.fromkeys(("accuracy", "exact_scaling"), EPS_OUTSIDE),
)
def eps_outside(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-6
) -> np.ndarray:
    """Faulty: x / (sqrt(mean(x^2)) + eps)."""
    values = load(x)
    reciprocal = 1 / (np.sqrt(mean_square(values)) + values.dtype.type(eps))
    return store(scale_and_shift(values * reciprocal, weight, bias), like=x)
