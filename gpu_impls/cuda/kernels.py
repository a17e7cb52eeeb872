"""Registering CUDA kernels: right ones twice, with float32 subnormals kept and flushed (CuPy's default)."""

import functools
from collections.abc import Callable
from typing import Any

from gpu_impls import implementation
from gpu_impls.cuda.launch import STORAGE

BLOCK = 256
# How a block of BLOCK threads adds: every thread strided elements, then a tree over the threads. Adding the first
# element to 0, and the identities that pad the second level, is exact.
LANES = f"lanes:{BLOCK}"
NARROW = ("float16", "bfloat16")
# Squares of differences neither overflow nor underflow in float32.
DOMAIN = (1e-15, 1e15)

Register = Callable[[Callable[..., Any]], Callable[..., Any]]


def cuda_kernel(op: str, name: str | None = None, dtypes: tuple[str, ...] = tuple(STORAGE), **claims: Any) -> Register:
    """Register ``function(..., flush=)`` as ``cuda_NAME`` (subnormals kept) and ``cuda_NAME_ftz`` (flushed)."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for suffix, flush in (("", False), ("_ftz", True)):
            bound = functools.wraps(function)(functools.partial(function, flush=flush))
            named = {"name": f"cuda_{name or function.__name__}{suffix}", "subnormals": "flush" if flush else "keep"}
            implementation(op, dtypes=dtypes, backend="cupy", **named, **claims)(bound)
        return function

    return register


def faulty_kernel(op: str, known_faulty: dict[str, str], **claims: Any) -> Register:
    """Register ``cuda_NAME``, in float32, as caught by these properties and by no others."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name, domain = f"cuda_{function.__name__}", DOMAIN if op.endswith("_norm") else None
        told = {"backend": "cupy", "domain": domain, "known_faulty": known_faulty}
        return implementation(op, name=name, dtypes=("float32",), **told, **claims)(function)

    return register
