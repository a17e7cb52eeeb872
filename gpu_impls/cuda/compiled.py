"""Compiling a .cu file with explicit flags, and keeping the binary.

``cupy.RawModule(code=...)`` appends ``-ftz=true`` to the options, after the caller's: ``-ftz=false`` is overruled
without a word, and float32 subnormals are flushed. So the source goes through NVRTC here and the binary into a
``RawModule``.
"""

import functools
import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpu_impls.backends import CUPY as cupy
from oracles.cache import folder

SOURCES = Path(__file__).parent


def options(storage: str, flush: bool, defines: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """What NVRTC, and nvcc as well, is told: nothing that bears on a result is left to a default."""
    return (
        "--std=c++17",
        f"-ftz={str(flush).lower()}",
        "-prec-div=true",
        "-prec-sqrt=true",
        "-fmad=true",
        f"-DSTORAGE={storage}",
        *(f"-D{name}={value}" for name, value in (defines or {}).items()),
        f"-I{SOURCES}",
    )


@functools.cache
def source_digest() -> str:
    """A hash of every source: a header may change any module."""
    h = hashlib.sha256()
    for path in sorted(SOURCES.glob("*.cu*")):
        h.update(path.read_bytes())
    return h.hexdigest()


@functools.cache
def module(file: str, flags: tuple[str, ...]) -> Any:
    """The ``RawModule`` of ``file``.cu under ``flags``, compiled for the current device unless it was before."""
    device = cupy.cuda.Device().compute_capability
    told = " ".join((file, *flags, device, str(cupy.cuda.nvrtc.getVersion()), source_digest()))
    path = folder() / "cubin" / f"{file}-{hashlib.sha256(told.encode()).hexdigest()[:16]}.cubin"
    if not path.exists():
        binary, _ = cupy.cuda.compiler.compile_using_nvrtc((SOURCES / f"{file}.cu").read_text("utf-8"), flags)
        _keep(binary, path)
    return cupy.RawModule(path=str(path))


def _keep(binary: bytes, path: Path) -> None:
    """Written aside and moved: another process sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(binary)
    os.replace(file.name, path)
