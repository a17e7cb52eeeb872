"""Definitions as CUDA kernels: evaluated in double words, compared and reduced to error statistics in one launch.

A definition is run once with nodes in the place of numbers; what it does to them is written out as device code over
``cuda/words.cuh``. A kernel is a block a row: one loop over the row for every reduction that others wait for, and a
last one that encloses each result, compares it with what a kernel under test stored, and keeps the row's statistics.
No enclosure is written to memory. Ground: documented (NVIDIA's maximum errors of exp, log and log1p, doubled).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from oracles.device import module
from oracles.formats import Format
from oracles.operator import Operator
from oracles.truth import SHARP

SOURCES = Path(__file__).parent / "cuda"
BLOCK = 256  # threads a row
# What a kernel writes of each row, in the order of ``struct Statistics``.
STATISTICS = [
    ("error", "f8"), ("error_sum", "f8"), ("distance", "f8"), ("magnitude", "f8"),
    ("compared", "i4"), ("worst", "i4"), ("misrounded", "i4"), ("misrounded_high", "i4"),
    ("special", "i4"), ("open", "i4"),
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Node:
    """One value of a traced definition.

    Attributes:
        code: C++ with ``{0}``, ``{1}`` for the arguments.
        arguments: what it is computed from.
        reduction: "sum" or "max" of its only argument over the row, or "".
        varies: it has a value for every element, not one for the row.
    """

    code: str
    arguments: "tuple[Node, ...]" = ()
    reduction: str = ""
    varies: bool = False

    @property
    def shape(self) -> "tuple[None, Node]":
        """Rows are told apart nowhere; their length is a number like others."""
        return None, Node("exact(n)")

    @cached_property
    def text(self) -> str:
        """The whole expression: nodes of the same text are the same value."""
        arguments = [a.text for a in self.arguments]
        return f"{self.reduction}({', '.join(arguments)})" if self.reduction else self.code.format(*arguments)

    @cached_property
    def stage(self) -> int:
        """After how many loops over the row it is known."""
        return max((a.stage for a in self.arguments), default=0) + bool(self.reduction)

    def __add__(self, other: Any) -> "Node":
        return call("add", self, other)

    def __radd__(self, other: Any) -> "Node":
        return call("add", other, self)

    def __sub__(self, other: Any) -> "Node":
        return call("subtract", self, other)

    def __rsub__(self, other: Any) -> "Node":
        return call("subtract", other, self)

    def __mul__(self, other: Any) -> "Node":
        return call("multiply", self, other)

    def __rmul__(self, other: Any) -> "Node":
        return call("multiply", other, self)

    def __truediv__(self, other: Any) -> "Node":
        return call("divide", self, other)

    def __pow__(self, power: int) -> "Node":
        return self if power == 1 else self * self ** (power - 1)


def call(function: str, *arguments: Any) -> Node:
    """A device function of nodes and numbers."""
    nodes = tuple(a if isinstance(a, Node) else Node(f"exact({float(a)!r})") for a in arguments)
    places = ", ".join(f"{{{i}}}" for i in range(len(nodes)))
    return Node(f"{function}({places})", nodes, varies=any(a.varies for a in nodes))


class Tracer:
    """The operations of definitions, on nodes."""

    def exp(self, v: Node) -> Node:
        return call("exponential", v)

    def log(self, v: Node) -> Node:
        return call("log_of", v)

    def log1p(self, v: Node) -> Node:
        return call("log1p_of", v)

    def sqrt(self, v: Node) -> Node:
        return call("square_root", v)

    def sum(self, v: Node) -> Node:
        return Node("exact(0.0)", (v,), reduction="sum")

    def max(self, v: Node) -> Node:
        return Node("exact(-INFINITY)", (v,), reduction="max")

    def is_max(self, v: Node) -> Node:
        return call("is_equal", v, self.max(v))


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
            self.lines.append(f"{indent}const Words {name} = {node.code.format(*arguments)};")
        return self.names[node.text]

    def define_for_row(self, node: Node) -> None:
        """What a value needs that is the same for every element."""
        if node.varies:
            for argument in node.arguments:
                self.define_for_row(argument)
        else:
            self.define(node)

    def loop(self, values: list[Node], then: list[str]) -> None:
        """Over the row: ``values``, then lines in which {0}, {1} stand for their names."""
        for value in values:
            self.define_for_row(value)
        outside = dict(self.names)
        self.lines.append("  for (int i = threadIdx.x; i < n; i += blockDim.x) {")
        names = [self.define(value, "    ") for value in values]
        self.lines += [f"    {line.format(*names)}" for line in then]
        self.lines.append("  }")
        self.names = outside

    def reduce(self, nodes: list[Node]) -> None:
        """Reductions that can share a loop."""
        totals = [f"r{len(self.names) + k}" for k in range(len(nodes))]
        self.lines += [f"  Words {total} = {node.code};" for total, node in zip(totals, nodes, strict=True)]
        pairs = list(enumerate(zip(totals, nodes, strict=True)))
        merges = [f"{total} = {_MERGED[node.reduction]}({total}, {{{k}}});" for k, (total, node) in pairs]
        self.loop([node.arguments[0] for node in nodes], merges)
        for total, node in zip(totals, nodes, strict=True):
            self.lines.append(f"  {total} = {node.reduction}_over_block({total});")
            self.names[node.text] = total


def reductions(outputs: tuple[Node, ...]) -> list[list[Node]]:
    """All reductions that the outputs need, those of one stage together, in order."""
    found: dict[str, Node] = {}

    def visit(node: Node) -> None:
        for argument in node.arguments:
            visit(argument)
        if node.reduction:
            found.setdefault(node.text, node)

    for output in outputs:
        visit(output)
    stages = sorted({node.stage for node in found.values()})
    return [[node for node in found.values() if node.stage == stage] for stage in stages]


def source(op: Operator, names: tuple[str, ...] = ()) -> str:
    """The kernel ``statistics`` of an operator; ``names`` of its optional inputs that are there.

    Raises:
        ValueError: an operator of several results, or of several arrays of rows.
    """
    if len(op.outputs) > 1 or "residual" in op.optional:
        raise ValueError(f"{op.name}: expected an operator of one array of rows and one result")
    inputs = {"x": Node("exact(widen(x[i]))", varies=True)}
    inputs |= {name: Node(f"exact(widen({name}[i]))", varies=True) for name in names}
    inputs |= {name: Node(f"exact({name})") for name in op.parameters}
    outputs = op.define(Tracer(), **inputs)
    writer = Writer()
    for together in reductions(outputs):
        writer.reduce(together)
    per_row = op.outputs[0].per_row
    writer.lines.append("  Statistics s = nothing();")
    if per_row:
        name = writer.define(outputs[0], "  ")
        writer.lines.append(f"  if (threadIdx.x == 0) s = compare({name}, z[0], 0);")
    else:
        writer.loop([outputs[0]], ["s = merge(s, compare({0}, z[i], i));"])
    arrays = "".join(f"const Storage *{name}, " for name in names)
    parameters = "".join(f"double {name}, " for name in op.parameters)
    stride = "1" if per_row else "n"
    return "\n".join(
        [
            '#include "row.cuh"',
            "",
            'extern "C" __global__ void statistics(const Storage *x, const Storage *z, '
            f"{arrays}{parameters}int n, Statistics *out) {{",
            "  x += (long long)blockIdx.x * n;",
            f"  z += (long long)blockIdx.x * {stride};",
            *writer.lines,
            "  s = merge_over_block(s);",
            "  if (threadIdx.x == 0) out[blockIdx.x] = s;",
            "}",
            "",
        ]
    )


def defines(fmt: Format) -> tuple[str, ...]:
    """What a compiler is told of a storage format, and of how sharp an enclosure must be in it."""
    of_format = {"STORAGE_BITS": 8 * fmt.dtype.itemsize, "PRECISION": fmt.precision, "EMIN": fmt.emin}
    return tuple(f"-D{name}={value}" for name, value in {**of_format, "SHARP": SHARP}.items())


def flags(headers: Path = SOURCES) -> tuple[str, ...]:
    """Nothing that bears on a result is left to a default. Contractions are off: words.cuh fuses where it wants to."""
    exactly = ("-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=false")
    return ("--std=c++17", *exactly, f"-DBLOCK={BLOCK}", f"-I{headers}")


def certify(op: Operator, fmt: Format, x: Any, stored: Any, parameters: Mapping[str, float], **others: Any) -> Any:
    """Statistics of each row of results on the device, as a CuPy array of their bytes: ``.get().view(STATISTICS)``.

    Args:
        x, stored: CuPy arrays, contiguous, of ``fmt``'s numbers or their bits; (rows, n), or (rows,) stored by an
            operator of one result a row. No masks. Rows that are not finite come back open.
        parameters: the operator's.
        others: weight and bias (n,), where they are given.

    Raises:
        ValueError: a format of more than 32 bits.
    """
    if fmt.dtype.itemsize > 4:
        raise ValueError(f"{fmt.name}: expected a format of at most 32 bits, for double words to be far sharper")
    names = tuple(name for name in op.optional if name in others)
    function = module(source(op, names), (*flags(), *defines(fmt)), SOURCES).get_function("statistics")
    rows, n = x.shape
    out = stored.__class__((rows * np.dtype(STATISTICS).itemsize,), np.uint8)
    scalars = [np.float64(parameters[name]) for name in op.parameters]
    function((rows,), (BLOCK,), (x, stored, *(others[name] for name in names), *scalars, np.int32(n), out))
    return out
