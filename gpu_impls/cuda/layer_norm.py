"""layer_norm of each row. Both write into ``out`` where there is one, x itself too, and into ``mean`` and ``rstd``
(float32, one a row) where these are given: what a backward pass keeps."""

from gpu_impls.cuda.kernels import BLOCK, DOMAIN, LANES, cuda_kernel
from gpu_impls.cuda.launch import Array, Kernel, norm_rows
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
