"""The environment beside the numbers, not among them: two runs of one report give the same tables."""

import importlib.metadata
import os
import platform
import re
from typing import Any

import numpy as np

from gpu_impls.libraries import cuda_devices
from oracles.arithmetics import ARITHMETICS, BEST, VECTORISED
from reports import __version__

PACKAGES = (
    "numpy", "ml_dtypes", "mpmath", "gmpy2", "python-flint", "crival", "pandas", "hypothesis", "bokeh",
    "scipy", "torch", "triton", "jax", "jaxlib", "jax-cuda13-plugin", "cupy-cuda13x", "onnxruntime", "onnx",
    "transformers", "liger-kernel",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """Versions, machine and probes."""
    return {
        "trueulp": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "gpus": list(cuda_devices()),
        "nvidia_driver": driver(),
        "packages": {name: version(name) for name in PACKAGES},
        "arithmetics": sorted({*ARITHMETICS, *([VECTORISED.name] if VECTORISED else [])}),
        "transcendental_ground": str(BEST.ground),
        "probes": probes(),
    }


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def processor() -> str:
    """The model's name where Linux tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def driver() -> str | None:
    """The version of NVIDIA's kernel module, where there is one."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            found = re.search(r"\d+\.\d+(\.\d+)?", file.readline())
    except OSError:
        return None
    return found[0] if found else None


def probes() -> dict[str, bool]:
    """What a library does with float32 is measured, not assumed."""
    tiny = np.full(8, 2.0**-140, np.float32)
    return {
        "numpy_keeps_float32_subnormals": bool((tiny * np.float32(0.5) > 0).all()),
        "numpy_exp_keeps_float32_subnormals": bool((np.exp(np.full(8, -100, np.float32)) > 0).all()),
    }
