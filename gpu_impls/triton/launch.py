"""Launching a row kernel of Triton's: shapes checked, strides laid out, threads chosen by n."""

import os
from collections.abc import Callable
from typing import Any

from gpu_impls import implementation
from gpu_impls.backends import TORCH as torch
from gpu_impls.libraries import Library

kernels: Any = Library("gpu_impls.triton.kernels")

Tensor = Any
Register = Callable[[Callable[..., Any]], Callable[..., Any]]

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DTYPES = ("float32", "float16") if INTERPRETED else ("float32", "float16", "bfloat16")
LONGEST = 131_072
ELEMENTS = 16  # a thread
# A row is shared by one warp at least, each thread adding its elements before the lanes are added.
LANES = "lanes:32"
# Squares neither overflow nor underflow in float32.
DOMAIN = (1e-15, 1e15)


def triton_kernel(op: str, **claims: Any) -> Register:
    """Register a function as an implementation of ``op`` on CUDA tensors, or on the CPU's where Triton interprets."""
    backend = "torch" if INTERPRETED else "torch_cuda"
    return implementation(op, dtypes=DTYPES, backend=backend, max_length=LONGEST, **claims)


# Products and sums may be fused, as they are by default up to Triton 3.9 and no longer by 3.10.
FUSED = {"enable_fp_fusion": True}


def shape(n: int) -> dict[str, int]:
    """What Triton is told of rows of n elements."""
    block = 1 << max(n - 1, 0).bit_length()
    return {"BLOCK": block, "num_warps": min(max(block // (32 * ELEMENTS), 1), 32)}


def checked(x: Tensor) -> Tensor:
    """``x`` as rows.

    Raises:
        ValueError: another shape, or rows that are too long.
    """
    if x.ndim != 2 or x.shape[1] > LONGEST:
        raise ValueError(f"x has shape {tuple(x.shape)}: expected (rows, n) with n at most {LONGEST:,}")
    return x


def strides(array: Tensor | None, dimensions: int) -> tuple[int, ...]:
    return (0,) * dimensions if array is None else array.stride()


def launch(kernel: Any, x: Tensor, *arguments: Any) -> None:
    """One program a row; nothing to do where there is no element."""
    if x.numel():
        kernel[(x.shape[0],)](*arguments, x.shape[1], **shape(x.shape[1]), **FUSED)


def empty_like(x: Tensor) -> Tensor:
    """Contiguous, whatever the layout of ``x``."""
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def norm(kernel: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, out: Tensor | None) -> Tensor:
    """Run a norm's kernel. ``out`` may be ``x``."""
    out = empty_like(checked(x)) if out is None else out
    columns = (*strides(weight, 1), *strides(bias, 1))
    launch(kernel, x, x, weight, bias, out, *x.stride(), *columns, *out.stride(), eps)
    return out
