"""How near kernels come to a copy: ``python benchmarks/kernel_bandwidth.py [--out FILE]``, on a GPU.

softmax, rms_norm (with weight) and layer_norm (with weight and bias) in float32 and bfloat16, ours beside PyTorch,
torch.compile, Triton and Liger-Kernel. An operator has to read x and write y, as a copy does, so its bandwidth is
their size over its time, and the ceiling is that of a device-to-device copy of x to y. x and y together take at least
1 GB, many times the L2 cache. Copy and kernels take turns, round after round, and the median of each counts; the ratios
are what to read. Each is first compared with float64 on a few rows.

torch.compile makes a program for every shape, at some seconds each: ``--compile`` says for which n.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from gpu_impls.adapters import torch as eager
from gpu_impls.backends import CUPY as cupy
from gpu_impls.backends import TORCH as torch
from gpu_impls.cuda.layer_norm import accurate, accurate_two_floats
from gpu_impls.cuda.rms_norm import one_read as rms_norm_one_read
from gpu_impls.cuda.softmax import one_read as softmax_one_read
from gpu_impls.libraries import Library, absent

LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
COMPILED = (4096, 8192)
DTYPES = ("float32", "bfloat16")
WORKING_SET = 2**30  # bytes of x and y together
HEAD_START = 4_000_000  # cycles the device waits, so that all calls of a round are queued before it begins
CHECKED_ROWS = 4

Tensor = Any
Call = Callable[[], Any]

triton: dict[str, Any] = {
    "softmax": Library("gpu_impls.triton.softmax"),
    "rms_norm": Library("gpu_impls.triton.rms_norm"),
    "layer_norm": Library("gpu_impls.triton.layer_norm"),
}
dynamo: Any = Library("torch._dynamo")
liger: Any = Library("gpu_impls.adapters.liger")


@dataclass(frozen=True)
class Work:
    """One operator on rows of one length: its inputs, and what computes it."""

    op: str
    x: Tensor
    y: Tensor
    parameters: dict[str, Tensor]

    @property
    def bytes(self) -> int:
        return 2 * int(self.x.numel()) * int(self.x.element_size())

    def copy(self) -> None:
        self.y.copy_(self.x)

    def contenders(self, compiled: bool) -> dict[str, Call]:
        """Ours write into y, as the copy does; the others return what their allocator has at hand."""
        x, y, told = self.x, self.y, self.parameters
        ours = {"softmax": softmax_one_read, "rms_norm": rms_norm_one_read, "layer_norm": accurate}[self.op]
        plain = {"softmax": eager.torch_softmax, "rms_norm": eager.torch_rms_norm, "layer_norm": eager.torch_layer_norm}
        calls: dict[str, Call] = {"ours": lambda: ours(x, **told, out=y)}
        if self.op == "layer_norm":
            calls["ours, two floats"] = lambda: accurate_two_floats(x, **told, out=y)
        calls["PyTorch"] = lambda: plain[self.op](x, **told)
        if compiled:
            dynamo.reset()
            program = torch.compile(plain[self.op], dynamic=False, fullgraph=True)
            calls["torch.compile"] = lambda: program(x, **told)
        if not absent("triton"):
            calls["Triton"] = lambda: getattr(triton[self.op], self.op)(x, **told, out=y)
        if not absent("liger") and x.shape[1] <= 65_536:
            calls["Liger"] = lambda: getattr(liger, f"liger_{self.op}")(x, **told)
        return calls


def work(op: str, dtype: str, n: int, size: int = WORKING_SET) -> Work:
    """Standard normal rows, weights and biases."""
    rows = -(-size // (2 * n * getattr(torch, dtype).itemsize))
    generator = torch.Generator("cuda").manual_seed(n)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32).to(getattr(torch, dtype))

    x = drawn(rows, n)
    names = {"softmax": (), "rms_norm": ("weight",), "layer_norm": ("weight", "bias")}[op]
    return Work(op, x, torch.empty_like(x), {name: drawn(n) for name in names})


def in_float64(todo: Work) -> Tensor:
    x, told = todo.x[:CHECKED_ROWS].double(), {name: value.double() for name, value in todo.parameters.items()}
    if todo.op == "softmax":
        return torch.softmax(x, -1)
    if todo.op == "rms_norm":
        return torch.nn.functional.rms_norm(x, x.shape[1:], told["weight"], 1e-6)
    return torch.nn.functional.layer_norm(x, x.shape[1:], told["weight"], told["bias"], 1e-5)


def check(todo: Work, calls: dict[str, Call]) -> None:
    """Every contender against float64: by norm, as this is no test of accuracy."""
    expected = in_float64(todo)
    limit = 1e-6 if todo.x.dtype == torch.float32 else 1e-2
    for name, call in calls.items():
        todo.y.fill_(float("nan"))
        result = call()
        result = todo.y if isinstance(result, cupy.ndarray) else result
        off = float((result[:CHECKED_ROWS].double() - expected).norm() / expected.norm())
        unwritten = bool(torch.isnan(result).any())
        if unwritten or not off < limit:
            told = f"{todo.op}, {todo.x.dtype}, n = {todo.x.shape[1]}: {name} is off by {off:.1e}"
            raise SystemExit(f"{told}, expected below {limit:.0e}{', and leaves elements unwritten' * unwritten}")


def seconds(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """The median of each, taking turns; a round that came before does not count."""
    events: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        torch.cuda._sleep(HEAD_START)
        for name, call in calls.items():
            begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begun.record()
            call()
            ended.record()
            events[name].append((begun, ended))
    torch.cuda.synchronize()
    return {
        name: statistics.median(begun.elapsed_time(ended) for begun, ended in pairs[1:]) / 1e3
        for name, pairs in events.items()
    }


def measured(op: str, dtype: str, n: int, compiled: bool, rounds: int) -> tuple[int, dict[str, float]]:
    """Bytes, and seconds of the copy and of every contender."""
    todo = work(op, dtype, n)
    calls = todo.contenders(compiled)
    check(todo, calls)
    return todo.bytes, seconds({"copy": todo.copy, **calls}, rounds)


HEADINGS = ("ours", "ours, two floats", "PyTorch", "torch.compile", "Triton", "Liger")


def report(lengths: list[int], compiled: list[int], rounds: int) -> Iterator[str]:
    """A page in Markdown."""
    packages = ("torch", "triton", "cupy-cuda13x", *(() if absent("liger") else ("liger-kernel",)))
    libraries = ", ".join(f"{name} {version(name)}" for name in packages)
    yield f"{torch.cuda.get_device_name()}; {libraries}; median of {rounds} rounds."
    yield "Copy in TB/s read and written; the others as shares of the copy's bandwidth in the same rounds."
    yield ""
    yield f"| operator | dtype | n | copy | {' | '.join(HEADINGS)} |"
    yield "|---|---|" + "---:|" * (len(HEADINGS) + 2)
    times: dict[tuple[str, str, str], float] = {}
    for op in ("softmax", "rms_norm", "layer_norm"):
        for dtype in DTYPES:
            for n in lengths:
                size, found = measured(op, dtype, n, n in compiled, rounds)
                shares = " | ".join(f"{found['copy'] / found[h]:.3f}" if h in found else "" for h in HEADINGS)
                yield f"| {op} | {dtype} | {n} | {size / found['copy'] / 1e12:.2f} | {shares} |"
                times |= {(op, dtype, name): found[name] for name in found if n == 8192}
    if times:
        yield ""
        yield "Time of rms_norm over that of layer_norm at n = 8192, each the same bytes read and written:"
        yield ""
        yield f"| dtype | {' | '.join(HEADINGS)} |"
        yield "|---|" + "---:|" * len(HEADINGS)
        for dtype in DTYPES:
            ratios = [_ratio(times, dtype, name) for name in HEADINGS]
            yield f"| {dtype} | {' | '.join(ratios)} |"


def _ratio(times: dict[tuple[str, str, str], float], dtype: str, name: str) -> str:
    below, above = (times.get((op, dtype, name)) for op in ("layer_norm", "rms_norm"))
    return f"{above / below:.3f}" if above and below else ""


def arguments(description: str, lengths: tuple[int, ...], rounds: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--length", type=int, action="append", metavar="N", help=f"row length (default {lengths})")
    parser.add_argument("--rounds", type=int, default=rounds, metavar="N", help=f"interleaved rounds ({rounds})")
    parser.add_argument("--out", type=argparse.FileType("w"), default=sys.stdout, metavar="FILE", help="in Markdown")
    return parser


def need_a_gpu() -> None:
    missing = absent("torch+cuda") or absent("cupy+cuda")
    if missing:
        raise SystemExit(missing)


def main() -> None:
    parser = arguments("Bandwidth of kernels beside a copy's.", LENGTHS, rounds=20)
    parser.add_argument("--compile", type=int, action="append", metavar="N", help=f"for torch.compile ({COMPILED})")
    options = parser.parse_args()
    need_a_gpu()
    for line in report(options.length or list(LENGTHS), options.compile or list(COMPILED), options.rounds):
        print(line, file=options.out, flush=True)


if __name__ == "__main__":
    main()
