"""How fast the oracle's arithmetics are, side by side: ``python benchmarks/oracle_throughput.py [--out FILE]``.

The same rows, float32 standard normal, one thread, in mpmath (113 bits, one evaluation), python-flint (113 bits), plain
NumPy float64 (which proves nothing) and double words. Each gets what it needs and no more: mpmath and python-flint
stop at their numbers, double words go on to the enclosure. Rounds are interleaved and the best of each counts, so that
a busy machine slows all of them; the ratios are what to read. Wants gmpy2 for mpmath's sake.
"""

import argparse
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import mpmath
import numpy as np

from oracles.arithmetics import VECTORISED
from oracles.arithmetics.flint import FLINT
from oracles.arithmetics.mpmath import MPMATH
from oracles.catalogue import OPERATORS
from oracles.formats import Array
from properties.case import DEFAULT_EPS, Case
from reports.environment import processor

LENGTHS = (1024, 4096, 16384, 131072)
ELEMENTS = 2**19  # of the fast ones; mpmath and python-flint get one row
PRECISION = 113
NAMES = ("mpmath", "python-flint", "NumPy float64", "double words")


def in_float64(op: str, x: Array, eps: float = 0.0) -> Array:
    """What the field calls the truth."""
    if op in ("softmax", "logsumexp"):
        m = x.max(axis=-1, keepdims=True)
        e = np.exp(x - m)
        total = e.sum(axis=-1, keepdims=True)
        return e / total if op == "softmax" else m + np.log(total)
    centred = x - x.mean(axis=-1, keepdims=True) if op == "layer_norm" else x
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + eps)


def contenders(op: str, n: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """What to call, and how many elements that is."""
    assert VECTORISED is not None, "crival is not installed: pip install crival"
    definition = OPERATORS[op].define
    x = Case(op, "float32", "standard_normal", rows=max(1, ELEMENTS // n), n=n).inputs.x64
    parameters = {"eps": DEFAULT_EPS[op]} if op in DEFAULT_EPS else {}
    row: dict[str, Any] = {"x": x[0], **parameters}
    enclose = VECTORISED.enclose
    calls: tuple[tuple[int, Callable[[], object]], ...] = (
        (n, lambda: MPMATH.at(PRECISION, definition, row)),
        (n, lambda: FLINT.evaluate(definition, row, PRECISION)),
        (x.size, lambda: in_float64(op, x, **parameters)),
        (x.size, lambda: enclose(definition, {"x": x, **parameters}, precise=False)),
    )
    return dict(zip(NAMES, calls, strict=True))


def rates(op: str, n: int, rounds: int) -> dict[str, float]:
    """Elements per second, the best of interleaved rounds."""
    best = dict.fromkeys(NAMES, 0.0)
    for _ in range(rounds):
        for name, (elements, call) in contenders(op, n).items():
            started = time.perf_counter()
            call()
            best[name] = max(best[name], elements / (time.perf_counter() - started))
    return best


def report(lengths: list[int], rounds: int) -> Iterator[str]:
    """A page in Markdown."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "crival", "python-flint", "mpmath"))
    yield f"{processor()}, one thread; Python {platform.python_version()}, {libraries} on {mpmath.libmp.BACKEND}."
    yield "M elements/s; the last two columns are double words over mpmath, and over python-flint."
    yield ""
    yield f"| operator | n | {' | '.join(NAMES)} | ratio | ratio |"
    yield "|---|" + "---:|" * (len(NAMES) + 3)
    for op in ("softmax", "layer_norm", "rms_norm", "logsumexp"):
        for n in lengths:
            found = rates(op, n, rounds)
            numbers = " | ".join(f"{found[name] / 1e6:.3g}" for name in NAMES)
            ratios = " | ".join(f"{found['double words'] / found[name]:.0f}" for name in NAMES[:2])
            yield f"| {op} | {n} | {numbers} | {ratios} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Throughput of the oracle's arithmetics, side by side.")
    parser.add_argument("--length", type=int, action="append", metavar="N", help=f"row length (default {LENGTHS})")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="interleaved rounds, the best counts (3)")
    parser.add_argument("--out", type=argparse.FileType("w"), default=sys.stdout, metavar="FILE", help="in Markdown")
    options = parser.parse_args()
    for line in report(options.length or list(LENGTHS), options.rounds):
        print(line, file=options.out, flush=True)


if __name__ == "__main__":
    main()
