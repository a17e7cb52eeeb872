"""The device's double words, compiled for this processor or launched on a GPU, behind the audit's interface."""

import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oracles.arithmetics import double_word
from oracles.arithmetics.fused import BLOCK, SOURCES, STATISTICS, Kernel, bins, defines, flags
from oracles.device import module
from oracles.formats import Format

NOTHING = double_word.NOTHING
OPERATIONS = ("add", "subtract", "multiply", "divide", "square_root", "exponential", "log_of", "log1p_of")
UNARY = OPERATIONS[4:]
ELEMENTWISE = """
extern "C" __global__ void k_{name}(const Words *a, const Words *b, Words *out, int n) {{
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = {name}({arguments});
}}
"""
TOTAL = """
extern "C" __global__ void k_total(const Words *a, const Words *b, Words *out, int n) {
  Words total = exact(0.0);
  for (int i = 0; i < n; ++i) total = add(total, a[i]);
  out[0] = total;
}
"""
KERNELS = '#include "words.cuh"\n' + TOTAL
for _name in OPERATIONS:
    KERNELS += ELEMENTWISE.format(name=_name, arguments="a[i]" if _name in UNARY else "a[i], b[i]")


def compiled_for_host(source: str, *options: str) -> ctypes.CDLL:
    """A shared library of device code; the options say where its headers are, and what stands in for CUDA's words."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed, and device code is audited through it where there is no GPU")
    folder = Path(tempfile.mkdtemp())
    (folder / "source.cpp").write_text(source)
    apart = ["-fno-gnu-unique", "-Wl,-Bsymbolic"]  # or libraries would share what is shared memory on a device
    told = ["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", *apart, *options]
    command = [compiler, *told, str(folder / "source.cpp"), "-o", str(folder / "library.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "library.so"))


class Host:
    """Runs the kernels of a source on this processor, one thread a block."""

    def __init__(self, source: str, defines: tuple[str, ...] = (), headers: Path = SOURCES) -> None:
        words = ("-include", str(SOURCES / "host.h"))
        self.library = compiled_for_host(source, *words, f"-I{headers}", *defines)

    def launch(self, name: str, rows: int, *arguments: Any) -> None:
        """Arrays are written in place."""
        for row in range(rows):
            self.library.block(ctypes.c_longlong(row))
            getattr(self.library, name)(*(_native(a) for a in arguments))


class Threads(Host):
    """Runs the one kernel of a source on this processor, a block of 64 threads a row."""

    def __init__(self, source: str, defines: tuple[str, ...] = (), headers: Path = SOURCES) -> None:
        name, parameters = re.search(r"(\w+)\(([^)]*)\) {$", source, re.MULTILINE).groups()
        names = ", ".join(p.split()[-1].lstrip("*") for p in parameters.split(","))
        words = ("-include", str(Path(__file__).parent / "threads.h"), "-include", str(SOURCES / "host.h"), "-pthread")
        source += START.format(name=name, parameters=parameters, names=names)
        self.library = compiled_for_host(source, *words, f"-I{headers}", *defines)

    def launch(self, name: str, rows: int, *arguments: Any) -> None:
        super().launch("start", rows, *arguments)


START = """
#include <thread>
#include <vector>
extern "C" void start({parameters}) {{
  std::vector<std::thread> threads;
  for (int k = 0; k < BLOCK; ++k)
    threads.emplace_back([=] {{
      threadIdx.x = k;
      {name}({names});
    }});
  for (auto &thread : threads) thread.join();
}}
"""


def _native(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_double(argument) if isinstance(argument, float) else ctypes.c_int(argument)


class Device:
    """Runs them on a GPU."""

    def __init__(self, source: str, defines: tuple[str, ...] = (), headers: Path = SOURCES) -> None:
        cupy = pytest.importorskip("cupy", reason="CuPy is not installed, and this needs a GPU")
        if not cupy.cuda.is_available():
            pytest.skip("no CUDA device")
        self.cupy = cupy
        self.module = module(source, (*flags(headers), *defines), headers)

    def launch(self, name: str, rows: int, *arguments: Any) -> None:
        """As on the host: what is not read-only is written back."""
        there = [self.cupy.asarray(a.view(np.uint8).ravel()) if isinstance(a, np.ndarray) else a for a in arguments]
        told = [np.int32(a) if isinstance(a, int) else np.float64(a) if isinstance(a, float) else a for a in there]
        self.module.get_function(name)((rows,), (BLOCK,), tuple(told))
        for here, native in zip(arguments, there, strict=True):
            if isinstance(here, np.ndarray) and here.flags.writeable:
                here.view(np.uint8).ravel()[:] = native.get()


@functools.cache
def compiled(runner: type, source: str, fmt: Format, headers: Path) -> Any:
    return runner(source, defines(fmt), headers)


def statistics_of(
    kernel: Kernel, x: Any, stored: Any, others: Mapping[str, Any], runner: type = Host, headers: Path = SOURCES
) -> tuple[np.ndarray, np.ndarray]:
    """What a generated kernel says of each row, and its histogram."""
    out, histogram = np.zeros(len(x), STATISTICS), np.zeros(len(bins()), np.uint32)
    given = [np.ascontiguousarray(a) for a in (x, stored, *(others[name] for name in kernel.names))]
    launch = compiled(runner, kernel.source, kernel.fmt, headers).launch
    launch("statistics", len(x), *given, *kernel.numbers, kernel.n, out, histogram)
    return out, histogram


@dataclass(frozen=True)
class Words:
    """An array of double words; one error each, so that ``relative`` is 0 in results."""

    runner: Any
    hi: Any
    lo: Any
    relative: Any
    absolute: Any
    precise: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return self.hi.shape

    @property
    def radius(self) -> Any:
        return np.broadcast_to(self.absolute, self.hi.shape)

    def __add__(self, other: "Words") -> "Words":
        return self.run("add", other)

    def __sub__(self, other: "Words") -> "Words":
        return self.run("subtract", other)

    def __mul__(self, other: "Words") -> "Words":
        return self.run("multiply", other)

    def __truediv__(self, other: "Words") -> "Words":
        return self.run("divide", other)

    def packed(self) -> Any:
        """As the device holds them, (n, 3)."""
        error = (self.relative * np.abs(self.hi) + self.absolute) * double_word.OUTWARD
        parts = (np.broadcast_to(part, self.hi.shape)[0] for part in (self.hi, self.lo, error))
        return np.ascontiguousarray(np.stack(list(parts), axis=-1))

    def run(self, operation: str, other: "Words | None" = None) -> "Words":
        a, b = self.packed(), (other or self).packed()
        out = np.zeros_like(a[:1] if operation == "total" else a)
        self.runner.launch(f"k_{operation}", 1, a, b, out, len(a))
        hi, lo, error = (part[None, :] for part in out.T)
        return Words(self.runner, hi, lo, NOTHING, error)


def audited(runner: Any) -> Any:
    """What the audit takes in the place of the module of vectorised double words."""

    def words(hi: Any, lo: Any, relative: Any, absolute: Any, precise: bool) -> Words:
        return Words(runner, hi, lo, relative, absolute, precise)

    def of(kind: Any) -> Any:
        return lambda *arguments: _like(runner, kind(*arguments))

    words.exact = of(double_word.DoubleWords.exact)
    words.sum_of = of(double_word.DoubleWords.sum_of)
    functions = {"exp": "exponential", "log": "log_of", "log1p": "log1p_of"}
    return SimpleNamespace(
        DoubleWords=words,
        NOTHING=NOTHING,
        square_root=lambda a: a.run("square_root"),
        total=lambda a: a.run("total"),
        VECTORISED=SimpleNamespace(**{name: functools.partial(_run, device) for name, device in functions.items()}),
    )


def _run(operation: str, a: Words) -> Words:
    return a.run(operation)


def _like(runner: Any, w: double_word.DoubleWords) -> Words:
    return Words(runner, w.hi, w.lo, w.relative, w.absolute, w.precise)
