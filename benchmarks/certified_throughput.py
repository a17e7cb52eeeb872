"""How fast results are certified on the GPU: ``python benchmarks/certified_throughput.py [--out FILE]``.

Standard normal rows on the device, a CUDA kernel's results, and the statistics of their errors against enclosures and
against what the kernel's contract allows (oracles/arithmetics/fused.py). Kernel and oracle are timed with events,
interleaved; the median counts. The last columns say what was found. Needs CuPy and a GPU.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cupy
import numpy as np

from gpu_impls.registry import Implementation, implementations
from oracles.arithmetics.fused import STATISTICS, certify, generate
from oracles.catalogue import operator_named
from oracles.formats import format_named
from properties.case import DEFAULT_EPS
from properties.screen import allowed

ELEMENTS = 2**26  # 8,192 x 8,192
LENGTHS = (1024, 8192, 131072)
KERNELS = {
    "softmax": "cuda_three_pass",
    "layer_norm": "cuda_welford",
    "rms_norm": "cuda_two_read",
    "logsumexp": "cuda_shifted",
}
ROUNDS = 7


def kernel_named(op: str, pattern: str) -> Implementation:
    return next(i for i in implementations((op,), (pattern,)) if not i.contract.known_faulty)


def drawn(rows: int, n: int, dtype: str) -> Any:
    """Standard normal numbers in the storage format; bfloat16 rounded to nearest in its bits."""
    x = cupy.random.default_rng(7).standard_normal((rows, n), dtype=cupy.float32)
    if dtype != "bfloat16":
        return x.astype(dtype)
    bits = x.view(cupy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(cupy.uint16)


def milliseconds(call: Callable[[], object]) -> float:
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    call()
    stop.record()
    stop.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, stop))


def measure(op: str, dtype: str, n: int) -> str:
    """One row of the table."""
    rows, operator, fmt = ELEMENTS // n, operator_named(op), format_named(dtype)
    parameters = dict.fromkeys(operator.parameters, DEFAULT_EPS.get(op, 0.0))
    bits = drawn(rows, n, dtype)
    x = bits if dtype != "bfloat16" else bits.view(fmt.dtype)
    implementation = kernel_named(op, KERNELS[op])
    function, allowance = implementation.function, partial(allowed, operator, implementation.contract)
    stored = function(x, **parameters)
    kernel: Callable[[], object] = lambda: function(x, **parameters)  # noqa: E731
    certifier = generate(operator, fmt, n, parameters, (), allowance)
    oracle: Callable[[], Any] = lambda: certify(certifier, x, stored)  # noqa: E731
    times = [(milliseconds(kernel), milliseconds(oracle)) for _ in range(ROUNDS + 1)][1:]
    ran, certified = (float(np.median(column)) for column in zip(*times, strict=True))
    found = oracle()[0].get().view(STATISTICS)
    numbers = [f"{ELEMENTS / certified / 1e6:.1f}", f"{certified / ran:.1f}", f"{found['error'].max():.4g}"]
    shares = [f"{found[name].sum() / found['compared'].sum():.4%}" for name in ("misrounded", "misrounded_high")]
    left = f"{(found['unsettled'] > 0).sum()} of {rows}"
    return " | ".join([op, dtype, str(n), *numbers, *shares, f"{(found['spent'] / found['granted']).max():.3g}", left])


def report(lengths: list[int]) -> Iterator[str]:
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    yield f"{name}, CuPy {cupy.__version__}, {ELEMENTS:,} elements each; ratio: oracle over kernel, in time."
    yield ""
    numbers = "G elements/s | ratio | max ULP | misrounded, at least | at most | bound used | rows left"
    yield f"| operator | dtype | n | {numbers} |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for op in KERNELS:
        for dtype in ("float32", "bfloat16"):
            for n in lengths:
                yield f"| {measure(op, dtype, n)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Throughput of certified statistics on the GPU.")
    parser.add_argument("--length", type=int, action="append", metavar="N", help=f"row length (default {LENGTHS})")
    parser.add_argument("--out", type=argparse.FileType("w"), default=sys.stdout, metavar="FILE", help="in Markdown")
    options = parser.parse_args()
    for line in report(options.length or list(LENGTHS)):
        print(line, file=options.out, flush=True)


if __name__ == "__main__":
    main()
