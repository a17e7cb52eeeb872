"""The residual and its norm in one kernel: s = x + residual is stored, and rms_norm(s) beside it.

In 16 bits kernels disagree on which s the statistics and the output see: the sum as it was stored (vLLM), or the sum
before it was rounded (FlashInfer). Here that is a parameter, ``statistics``.
"""

from typing import Any

import numpy as np

from gpu_impls.backends import CUPY as cupy
from gpu_impls.cuda.kernels import BLOCK, DOMAIN, LANES, cuda_kernel
from gpu_impls.cuda.launch import Array, Kernel, checked, on_device, strided
from gpu_impls.numpy.rms_norm import SOURCE

STATISTICS = ("unrounded", "rounded")


def fused_add_rms_norm(
    x: Array,
    residual: Array,
    weight: Array | None = None,
    eps: float = 1e-6,
    out: Array | None = None,
    updated: Array | None = None,
    *,
    statistics: str = "unrounded",
    flush: bool = False,
    block: int = BLOCK,
) -> tuple[Array, Array]:
    """``(y, updated)``, both (rows, n) in x's dtype; in place where ``out`` is x and ``updated`` the residual.

    Raises:
        ValueError: another shape or dtype than x's, or a word for ``statistics`` that is neither.
    """
    x, residual = checked(on_device(x)), on_device(residual)
    weight = None if weight is None else on_device(weight)
    out, updated = (cupy.empty(x.shape, x.dtype) if a is None else on_device(a) for a in (out, updated))
    kernel = Kernel("fused_add_rms_norm", "fused_add_rms_norm", block, flush)
    kernel.launch(x, arguments(x, residual, weight, eps, out, updated, statistics))
    return out, updated


def arguments(
    x: Array, residual: Array, weight: Array | None, eps: float, out: Array, updated: Array, statistics: str
) -> list[Any]:
    """In the order of the kernel."""
    if statistics not in STATISTICS:
        raise ValueError(f"statistics={statistics!r}: expected one of {', '.join(map(repr, STATISTICS))}")
    shape, dtype = tuple(x.shape), x.dtype.name
    return [
        *strided(x, "x", shape, dtype),
        *strided(residual, "residual", shape, dtype),
        *strided(weight, "weight", shape[1:], dtype),
        *strided(out, "out", shape, dtype),
        *strided(updated, "updated", shape, dtype),
        np.float32(eps),
        np.int32(statistics == "rounded"),
        np.int32(shape[1]),
    ]


def _register(statistics: str, claim: str | None) -> None:
    """The kernel with one convention, as the operator has it: two results, two places in ``out``."""

    @cuda_kernel("fused_add_rms_norm", statistics, domain=DOMAIN, summation=LANES, statistics=claim, source=SOURCE)
    def kernel(
        x: Array,
        residual: Array,
        weight: Array | None = None,
        eps: float = 1e-6,
        out: tuple[Array, Array] | None = None,
        *,
        flush: bool = False,
        block: int = BLOCK,
    ) -> tuple[Array, Array]:
        """``out`` may be x and residual."""
        places, told = out or (None, None), {"statistics": statistics, "flush": flush, "block": block}
        return fused_add_rms_norm(x, residual, weight, eps, *places, **told)


_register("unrounded", claim=None)
_register("rounded", claim="rounded")
