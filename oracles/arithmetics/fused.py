"""Definitions as CUDA kernels: evaluated in double words, compared, judged and reduced to statistics in one launch.

A definition is run once with nodes in the place of numbers (:mod:`oracles.arithmetics.tracing`), and so is what a
result is allowed; what that does to them is written out as device code over ``cuda/words.cuh``. A kernel is a block a
row: a loop over the row for the reductions that others wait for, and one that encloses each result, compares it with
what a kernel under test stored, and keeps the row's statistics. No enclosure is written to memory. Ground: documented
(NVIDIA's maximum errors of exp, log and log1p, doubled).

What lies so near a limit that the device does not settle it makes its row unsettled: such rows are for the host.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oracles.arithmetics.tracing import Enclosed, Node, Plain, Trace, Tracer
from oracles.device import module
from oracles.enclosure import Ground
from oracles.formats import Format
from oracles.logsumexp import rescalings
from oracles.operator import Inputs, Operator
from oracles.truth import SHARP
from oracles.ulp import BINS, CAP, UNIT_BITS

NAME, GROUND = "cuda_double_words", Ground.DOCUMENTED
SOURCES = Path(__file__).parent / "cuda"
BLOCK, BLOCKS = 256, 4  # threads a row, and rows at a time on a multiprocessor
# What a kernel writes of each row, in the order of ``struct Statistics``.
STATISTICS = [
    ("error", "f8"), ("distance", "f8"), ("spent", "f8"), ("granted", "f8"), ("units", "i8"), ("capped", "i8"),
    ("unit", "i4"), ("compared", "i4"), ("worst", "i4"), ("misrounded", "i4"), ("misrounded_high", "i4"),
    ("special", "i4"), ("open", "i4"), ("unsettled", "i4"),
]  # fmt: skip
# The histogram reaches from 2**-43 to 2**25 ULP; larger and smaller errors are not settled. Its first bin counts zeros.
LOWEST, HIGHEST = -42, 25

# What a result is allowed, given its inputs and the exact outputs: the bound, half an ulp of storage, all together, and
# whether its row is not to be judged (properties.screen).
Allowance = Callable[[Inputs, tuple[Any, ...]], tuple[Any, Any, Any, Any]]

rescalings.register(Plain, Plain.rescaled)

_MERGED = {"sum": "add", "max": "larger"}


class Writer:
    """Writes values out, each once for the row or once in a loop."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, str] = {}

    def define(self, node: Node, indent: str = "  ") -> str:
        """The name of a value; what it is computed from comes first. Reductions have theirs already."""
        if node.text not in self.names:
            arguments = [self.define(a, indent) for a in node.arguments]
            name = self.names[node.text] = f"v{len(self.names)}"
            self.lines.append(f"{indent}const {node.type} {name} = {node.code.format(*arguments)};")
        return self.names[node.text]

    def define_for_row(self, node: Node) -> None:
        """What a value needs that is the same for every element."""
        if node.varies:
            for argument in node.arguments:
                self.define_for_row(argument)
        else:
            self.define(node)

    def body(self, opening: str, values: list[Node], then: list[str], closing: str) -> None:
        """What is done for an element ``i``: ``values``, then lines in which {0}, {1} stand for their names."""
        for value in values:
            self.define_for_row(value)
        outside = dict(self.names)
        self.lines.append(opening)
        names = [self.define(value, "    ") for value in values]
        self.lines += [f"    {line.format(*names)}" for line in then]
        self.lines.append(closing)
        self.names = outside

    def loop(self, values: list[Node], then: list[str]) -> None:
        """Over the row."""
        if values:
            self.body("  for (int i = threadIdx.x; i < n; i += blockDim.x) {", values, then, "  }")

    def reduce(self, nodes: list[Node], values: list[Node], then: list[str]) -> None:
        """Reductions in one loop, with what else is to be done in it; those in the row's order apart."""
        totals = {node.text: f"r{len(self.names) + k}" for k, node in enumerate(nodes)}
        merged = [node for node in nodes if node.reduction in _MERGED]
        merges = []
        for k, node in enumerate(merged, start=len(values)):
            total = totals[node.text]
            self.lines.append(f"  {node.type} {total} = {node.code};")
            merges.append(f"{total} = {_MERGED[node.reduction]}({total}, {{{k}}});")
        self.loop([*values, *(node.arguments[0] for node in merged)], [*then, *merges])
        for node in nodes:
            total = totals[node.text]
            if node.reduction in _MERGED:
                self.lines.append(f"  {total} = {node.reduction}_over_block({total});")
            else:
                opening = f"  const {node.type} {total} = {node.reduction}_over_row(n, [&](int i) {{"
                self.body(opening, list(node.arguments), ["return Weighted{{{0}, {1}}};"], "  });")
        self.names |= totals


def reductions(outputs: tuple[Node, ...]) -> dict[int, list[Node]]:
    """All reductions that the outputs need, by stage."""
    seen: dict[str, Node] = {}  # arguments come before what is computed from them

    def visit(node: Node) -> None:
        if node.text not in seen:
            for argument in node.arguments:
                visit(argument)
            seen[node.text] = node

    for output in outputs:
        visit(output)
    found = [node for node in seen.values() if node.reduction]
    return {stage: [node for node in found if node.stage == stage] for stage in sorted({node.stage for node in found})}


@dataclass(frozen=True)
class Kernel:
    """A source, the names of its arrays beside x and the results, and the numbers it is given: the operator's
    parameters, those of the allowance, and the claim."""

    fmt: Format
    n: int
    source: str
    names: tuple[str, ...]
    numbers: tuple[float, ...]


def generate(
    op: Operator,
    fmt: Format,
    n: int,
    parameters: Mapping[str, float],
    names: tuple[str, ...],
    allowance: Allowance,
    claim: float = 0.0,
) -> Kernel:
    """The kernel ``statistics`` of an operator on rows of n elements.

    Args:
        names: of its optional inputs that are there.
        allowance: what a result is allowed.
        claim: what it is allowed instead, in ULPs; 0 for none.

    Raises:
        ValueError: a format of more than 32 bits, an operator of several results, or of several arrays of rows.
        TypeError: an allowance that NumPy's code asks more of than :class:`Plain` knows.
    """
    if fmt.dtype.itemsize > 4:
        raise ValueError(f"{fmt.name}: expected a format of at most 32 bits, for double words to be far sharper")
    if len(op.outputs) > 1 or "residual" in op.optional:
        raise ValueError(f"{op.name}: expected an operator of one array of rows and one result")
    per_row = op.outputs[0].per_row
    trace = Trace(n)
    rows: dict[str, Any] = {name: trace.row(f"widen({name}[i])") for name in ("x", *names)}
    told = Inputs(fmt, rows, parameters)
    inputs = {name: Enclosed(f"exact(widen({name}[i]))", varies=True) for name in ("x", *names)}
    scalars = {name: Enclosed(f"exact({name})") for name in op.parameters}
    (y,) = op.define(Tracer(), **inputs, **scalars)
    allowed = allowance(told, (Plain("{0}.hi", (y,), varies=not per_row, trace=trace),))
    *limits, unjudged = (trace.node(value) for value in allowed)
    compared = [y, *limits]
    writer = Writer()
    compare = "compare({0}, z[i], i, {1}, {2}, {3}, claim)"
    writer.lines += ["  empty_bins();", "  Statistics s = nothing();"]
    by_stage, last = reductions((*compared, unjudged)), max(node.stage for node in compared)
    for stage in range(1, max(last + 1, *by_stage, 0) + 1):
        now = not per_row and stage == last + 1  # with the loop for what comes after y and its limits are known
        together = [f"s = merge(s, {compare});"] if now else []
        writer.reduce(by_stage.get(stage, []), compared if now else [], together)
    if per_row:
        named = [writer.define(value) for value in compared]
        writer.lines.append(f"  if (threadIdx.x == 0) s = {compare.replace('[i], i', '[0], 0').format(*named)};")
    writer.lines += [f"  if (threadIdx.x == 0 && {writer.define(unjudged)} != 0) s.unsettled += 1;"]
    arrays = "".join(f"const Storage *{name}, " for name in names)
    given = "".join(
        f"double {name}, " for name in (*op.parameters, *(f"number_{k}" for k in range(len(trace.numbers))))
    )
    source = "\n".join(
        [
            '#include "row.cuh"',
            "",
            'extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)',
            "statistics(const Storage *x, const Storage *z, "
            f"{arrays}{given}double claim, int n, Statistics *out, unsigned *histogram) {{",
            "  x += (long long)blockIdx.x * n;",
            f"  z += (long long)blockIdx.x * {'1' if per_row else 'n'};",
            *writer.lines,
            "  s = merge_over_block(s);",
            "  if (threadIdx.x == 0) out[blockIdx.x] = s;",
            "  if (s.unsettled == 0) add_bins(histogram);",
            "}",
            "",
        ]
    )
    numbers = (*(float(parameters[name]) for name in op.parameters), *trace.numbers, claim)
    return Kernel(fmt, n, source, names, numbers)


def defines(fmt: Format) -> tuple[str, ...]:
    """What a compiler is told of a storage format, of how sharp an enclosure must be in it, and of how to count."""
    of_format = {"STORAGE_BITS": 8 * fmt.dtype.itemsize, "PRECISION": fmt.precision, "EMIN": fmt.emin}
    counting = {"UNIT_BITS": UNIT_BITS, "CAP": CAP, "BINS": BINS, "LOWEST": LOWEST, "HIGHEST": HIGHEST}
    return tuple(f"-D{name}={value}" for name, value in {**of_format, "SHARP": SHARP, **counting}.items())


def flags(headers: Path = SOURCES) -> tuple[str, ...]:
    """Nothing that bears on a result is left to a default. Contractions are off: words.cuh fuses where it wants to."""
    exactly = ("-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=false")
    return ("--std=c++17", *exactly, f"-DBLOCK={BLOCK}", f"-DBLOCKS={BLOCKS}", f"-I{headers}")


def certify(kernel: Kernel, x: Any, stored: Any, **others: Any) -> tuple[Any, Any]:
    """Statistics of each row of results on the device, and the histogram of the settled rows' errors.

    Args:
        x, stored: CuPy arrays, contiguous, of the format's numbers or their bits; (rows, n), or (rows,) stored by an
            operator of one result a row. No masks. Rows that are not finite come back open.
        others: weight and bias (n,), where they are given.

    Returns:
        CuPy arrays: of bytes, to be read by ``.get().view(STATISTICS)``, and of counts (:func:`bins`).
    """
    cupy = importlib.import_module("cupy")
    function = module(kernel.source, (*flags(), *defines(kernel.fmt)), SOURCES).get_function("statistics")
    out = cupy.empty(len(x) * np.dtype(STATISTICS).itemsize, np.uint8)
    histogram = cupy.zeros(len(bins()), np.uint32)
    arguments = [x, stored, *(others[name] for name in kernel.names), *map(np.float64, kernel.numbers)]
    function((len(x),), (BLOCK,), (*arguments, np.int32(kernel.n), out, histogram))
    return out, histogram


def bins() -> list[float]:
    """The bins of a histogram as properties.tally names them: 0 first, then upwards."""
    return [-np.inf, *map(float, range(LOWEST * BINS, (HIGHEST + 1) * BINS))]
