"""rms_norm of each row."""

from gpu_impls.cuda.kernels import BLOCK, DOMAIN, LANES, cuda_kernel
from gpu_impls.cuda.launch import Array, Kernel, norm_rows
from gpu_impls.cuda.resident import resident_norm
from gpu_impls.numpy.rms_norm import SOURCE


@cuda_kernel("rms_norm", domain=DOMAIN, summation=LANES, source=SOURCE)
def two_read(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-6,
    out: Array | None = None,
    *,
    flush: bool = False,
    block: int = BLOCK,
) -> Array:
    """The mean square, then x rsqrt(mean square + eps), weight and bias. Can write into ``out``, x itself too."""
    return norm_rows(Kernel("rms_norm", "rms_norm", block, flush), x, weight, bias, eps, out)


@cuda_kernel("rms_norm", domain=DOMAIN, summation="tree", source=SOURCE)
def one_read(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-6,
    out: Array | None = None,
    *,
    flush: bool = False,
    block: int | None = None,
) -> Array:
    """Memory is asked for a row once: it stays in registers or caches. Rows that no block holds are read twice."""
    return resident_norm("rms_norm_one_read", "one_read", x, weight, bias, eps, out, block=block, flush=flush)
