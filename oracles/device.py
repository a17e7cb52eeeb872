"""Device code, compiled at run time with explicit flags; the binary is kept.

``cupy.RawModule(code=...)`` appends ``-ftz=true`` to the options, after the caller's: ``-ftz=false`` is overruled
without a word, and float32 subnormals are flushed. So sources go through NVRTC here and the binary into a
``RawModule``. Needs CuPy and a GPU, when called.
"""

import functools
import hashlib
import importlib
import os
import tempfile
from pathlib import Path
from typing import Any

from oracles.cache import folder


@functools.cache
def digest(headers: Path) -> str:
    """A hash of every file of device code in a folder: a header may change any module."""
    h = hashlib.sha256()
    for path in sorted(headers.glob("*.cu*")):
        h.update(path.read_bytes())
    return h.hexdigest()


@functools.cache
def module(source: str, flags: tuple[str, ...], headers: Path) -> Any:
    """The ``RawModule`` of a source under ``flags``, compiled for the current device unless it was before.

    ``headers``: the folder whose files it includes.
    """
    cupy = importlib.import_module("cupy")
    device = cupy.cuda.Device().compute_capability
    told = " ".join((source, *flags, device, str(cupy.cuda.nvrtc.getVersion()), digest(headers)))
    path = folder() / "cubin" / f"{hashlib.sha256(told.encode()).hexdigest()[:32]}.cubin"
    if not path.exists():
        binary, _ = cupy.cuda.compiler.compile_using_nvrtc(source, flags)
        _keep(binary, path)
    return cupy.RawModule(path=str(path))


def _keep(binary: bytes, path: Path) -> None:
    """Written aside and moved: another process sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(binary)
    os.replace(file.name, path)
