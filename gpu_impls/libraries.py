"""Libraries that a machine may or may not have: named with the pip extra that brings them, imported when first used.

Listing and collecting need names and contracts alone, and PyTorch, JAX and transformers take seconds to import.
"""

import functools
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

# Importable libraries by the extra of pyproject.toml that installs them.
EXTRAS: dict[str, tuple[str, ...]] = {
    "scipy": ("scipy",),
    "torch": ("torch",),
    "jax": ("jax",),
    "cupy": ("cupy",),
    "triton": ("triton", "torch"),
    "liger": ("liger_kernel", "triton", "torch"),
    "onnx": ("onnxruntime", "onnx"),
    "transformers": ("transformers", "torch"),
}


def absent(need: str) -> str | None:
    """What is missing of ``need``, in words; None where all is here. An extra, or one on a GPU: ``cupy+cuda``."""
    extra, _, device = need.partition("+")
    for library in EXTRAS.get(extra, (extra,)):
        if importlib.util.find_spec(library) is None:
            return f"{library} is not installed: pip install 'trueulp[{extra}]'"
    return "no CUDA device: NVIDIA's driver finds none here" if device and not cuda_devices() else None


@functools.cache
def cuda_devices() -> tuple[str, ...]:
    """Names of the GPUs. Asks the driver itself, in a process of its own: no library need be imported, no context is
    made, and processes forked from this one can use CUDA still."""
    try:
        asked = subprocess.run([sys.executable, "-I", "-S", "-c", _ASK], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):  # no interpreter to ask with, or a driver that does not answer
        return ()
    return tuple(asked.stdout.splitlines())


_ASK = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
count, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
if not driver.cuInit(0) and not driver.cuDeviceGetCount(ctypes.byref(count)):
    for device in range(count.value):
        if not driver.cuDeviceGetName(name, len(name), device):
            print(name.value.decode(errors="replace"))
"""


class Library:
    """A module that is imported when its first attribute is asked for.

    Args:
        name: as in ``import name``.
        prepare: called with the module, once, right after its import.
    """

    def __init__(self, name: str, prepare: Callable[[Any], None] = lambda module: None) -> None:
        self._name, self._prepare = name, prepare
        self._module: ModuleType | None = None

    def load(self) -> ModuleType:
        if self._module is None:
            module = importlib.import_module(self._name)
            self._prepare(module)
            self._module = module
        return self._module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what pickle, copy and inspect look for is no reason to import
            raise AttributeError(name)
        return getattr(self.load(), name)


def load_libraries(module: ModuleType) -> None:
    """Import every library that ``module`` names, so that its first kernel need not."""
    for value in list(vars(module).values()):
        if isinstance(value, Library):
            value.load()
