"""The sources of CUDA kernels, and the flags they are compiled under."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oracles import device

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


def module(file: str, flags: tuple[str, ...]) -> Any:
    """The ``RawModule`` of ``file``.cu under ``flags``."""
    return device.module((SOURCES / f"{file}.cu").read_text("utf-8"), flags, SOURCES)
