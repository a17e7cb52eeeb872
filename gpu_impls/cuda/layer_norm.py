"""layer_norm of each row. All write into ``out`` where there is one, x itself too, and into ``mean`` and ``rstd``
(float32, one a row) where these are given: what a backward pass keeps."""

from gpu_impls.cuda.kernels import BLOCK, DOMAIN, LANES, NARROW, cuda_kernel, faulty_kernel
from gpu_impls.cuda.launch import Array, Kernel, norm_rows
from gpu_impls.cuda.resident import resident_norm
from gpu_impls.numpy.layer_norm import CHAN


@cuda_kernel("layer_norm", domain=DOMAIN, summation=LANES, source="Ba, Kiros and Hinton, Layer Normalization, 2016")
def two_pass(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    out: Array | None = None,
    *,
    mean: Array | None = None,
    rstd: Array | None = None,
    flush: bool = False,
    block: int = BLOCK,
) -> Array:
    """Mean, then variance about it, then the output."""
    return norm_rows(Kernel("layer_norm", "two_pass", block, flush), x, weight, bias, eps, out, (mean, rstd))


@cuda_kernel("layer_norm", domain=DOMAIN, summation=LANES, source=f"Welford, Technometrics 4(3), 1962; {CHAN}")
def welford(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    out: Array | None = None,
    *,
    mean: Array | None = None,
    rstd: Array | None = None,
    flush: bool = False,
    block: int = BLOCK,
) -> Array:
    """Moments in one reading: Welford in each thread, merged by shuffles; 16 bytes at a time where rows are aligned.

    A thread takes 4 (or 8) neighbours at once, so that at n = 512 of 16 bits 64 threads have 8 elements each: 7
    additions and 6 merges, within the 13 that lanes:256 allows; at other n the sum is smaller beside its claim.
    """
    return norm_rows(Kernel("layer_norm", "welford", block, flush), x, weight, bias, eps, out, (mean, rstd))


ACCURATE = "Chan, Golub and LeVeque, American Statistician 37(3), 1983, section 3: about a pivot"
IN_TWO_FLOATS = f"{ACCURATE}; Joldes, Muller and Popescu, ACM TOMS 44(2), 2017"


@cuda_kernel("layer_norm", name="accurate_narrow", dtypes=NARROW, domain=DOMAIN, summation="tree", source=ACCURATE)
@cuda_kernel("layer_norm", dtypes=("float32",), accumulate="float64", source=ACCURATE)
def accurate(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    out: Array | None = None,
    *,
    mean: Array | None = None,
    rstd: Array | None = None,
    flush: bool = False,
    block: int | None = None,
) -> Array:
    """Sums in double about the row's first element, x - mean as (n x - S) / n: as accurate as float64 throughout, and
    rounded once. 16-bit storage has the same sums; the rest is float32. The row is read once, as in rms_norm's."""
    return _accurate("in_double", x, weight, bias, eps, out, (mean, rstd), block, flush)


@cuda_kernel("layer_norm", domain=DOMAIN, summation="compensated", source=IN_TWO_FLOATS)
def accurate_two_floats(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    out: Array | None = None,
    *,
    mean: Array | None = None,
    rstd: Array | None = None,
    flush: bool = False,
    block: int | None = None,
) -> Array:
    """The same with two floats in the place of a double: for devices on which double is slow."""
    return _accurate("in_two_floats", x, weight, bias, eps, out, (mean, rstd), block, flush)


@faulty_kernel("layer_norm", {"accuracy": "the mean is rounded to float32 before x - mean"}, accumulate="float64")
def mean_rounded(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    out: Array | None = None,
) -> Array:
    """Faulty by its claim to compute in float64: statistics do, but x is centred as usual."""
    return _accurate("mean_rounded", x, weight, bias, eps, out)


def _accurate(
    name: str,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    out: Array | None,
    statistics: tuple[Array | None, ...] = (None, None),
    block: int | None = None,
    flush: bool = False,
) -> Array:
    told = {"statistics": statistics, "block": block, "flush": flush}
    return resident_norm("layer_norm_accurate", name, x, weight, bias, eps, out, **told)
