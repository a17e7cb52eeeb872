"""``trueulp sanitize``: implementations beneath compute-sanitizer."""

import argparse
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpu_impls.backends import BACKENDS
from gpu_impls.outcome import Outcome, Reason
from gpu_impls.registry import Implementation
from oracles.catalogue import operator_named
from properties.case import Case
from reports.commands import OK, Action
from reports.commands.options import add_selection, count, select
from reports.environment import environment
from reports.measurement import Measurement, Partial, collect
from reports.plan import Plan
from reports.sanitizer.run import sanitize
from reports.sanitizer.tools import Tool, program
from reports.tables import summary, table
from reports.write import writable_folder, write_report

SUMMARY = "CUDA implementations beneath compute-sanitizer: memory, races, barriers, uninitialised reads"
FOUND = 1
# Short rows, for a tool slows a kernel down a hundredfold: less than a warp, a warp and one, several warps.
LENGTHS = (1, 33, 257, 1025)
ROWS = 3
DEADLINE = 120.0


def configure(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    parser.add_argument("--dtype", action="append", default=[], metavar="NAME", help="only this dtype (repeatable)")
    parser.add_argument(
        "--tool", action="append", default=[], choices=[str(t) for t in Tool], help="only this tool (repeatable)"
    )
    parser.add_argument(
        "--length", type=count, action="append", default=[], metavar="N", help=f"row length (default {LENGTHS})"
    )
    parser.add_argument(
        "--deadline", type=float, default=DEADLINE, metavar="S", help="seconds for all rows beneath one tool (120)"
    )
    parser.add_argument("--sanitizer", metavar="PATH", help="compute-sanitizer, where it is not on the PATH")
    parser.add_argument("--out", metavar="DIR", help="also write the measurements there")


def prepare(options: argparse.Namespace) -> Action:
    if not options.deadline > 0:
        raise ValueError(f"--deadline {options.deadline:g}: expected a number of seconds above 0")
    # Dtypes and lengths are refused as a report refuses them.
    planned = Plan(tuple(select(options)), dtypes=tuple(options.dtype), lengths=tuple(options.length) or LENGTHS)
    path = program(options.sanitizer)
    chosen = [i for i in planned.implementations if _on_a_gpu(i)]
    if not chosen:
        raise ValueError("nothing to run: no implementation selected runs on a CUDA device (see trueulp list)")
    tools = [Tool(name) for name in options.tool] or list(Tool)
    units = [(i, d, list(_cases(i, d, planned.lengths))) for i in chosen for d in i.contract.dtypes]
    units = [(i, d, cases) for i, d, cases in units if cases and (not planned.dtypes or d in planned.dtypes)]
    if not units:
        raise ValueError("nothing to run: no implementation selected takes these dtypes and lengths")
    folder = writable_folder(options.out) if options.out else None

    def run(console: Console) -> int:
        parts: list[Partial] = []
        try:
            for implementation, dtype, cases in units:
                for tool in tools:
                    with console.status(f"{implementation.id} {dtype} {tool}"):
                        parts += sanitize(implementation, cases, tool, path, options.deadline)
        finally:
            measurements = collect(parts)
            if measurements:
                print_findings(console, measurements, tools)
            if measurements and folder is not None:
                measured = table(measurements)
                write_report(folder, measured, summary(measured), environment())
        faulty = {(i.op, i.name) for i in chosen if i.contract.known_faulty}
        fails = {(m.op, m.impl) for m in measurements if m.outcome is Outcome.FAIL}
        return FOUND if fails - faulty else OK

    return run


def _on_a_gpu(implementation: Implementation) -> bool:
    needs = BACKENDS[implementation.contract.backend].needs or ""
    return needs.endswith("+cuda") and implementation.origin is not None


def _cases(implementation: Implementation, dtype: str, lengths: tuple[int, ...]) -> Iterator[Case]:
    optional = operator_named(implementation.op).optional
    affine = {name: True for name in ("weight", "bias") if name in optional and name in implementation.parameters}
    for n in lengths:
        if implementation.contract.takes_length(n):
            yield Case(implementation.op, dtype, "standard_normal", rows=ROWS, n=n, **affine)


def print_findings(console: Console, measurements: list[Measurement], tools: list[Tool]) -> None:
    """Implementation by tool, then what was found: the first of each kernel and tool."""
    shown = Table(box=None, header_style="dim")
    for heading in ("implementation", "dtype", *map(str, tools)):
        shown.add_column(heading, no_wrap=heading == "implementation")
    told: dict[str, None] = {}
    for op, impl, dtype in dict.fromkeys((m.op, m.impl, m.dtype) for m in measurements):
        cells = []
        for tool in tools:
            of_tool = [m for m in measurements if (m.op, m.impl, m.dtype, m.regime) == (op, impl, dtype, str(tool))]
            reason = Reason.worst([Reason(m.reason) for m in of_tool])
            cells.append("[green]clean[/]" if reason is Reason.CLEAN else f"[red]{reason}[/]" if of_tool else "")
            first = next((m for m in of_tool if m.reason == reason and m.outcome is not Outcome.PASS), None)
            if first is not None:
                told[f"{op}-{impl} {dtype} {tool}, n = {first.n}: {first.reason} ({first.detail})"] = None
        shown.add_row(escape(f"{op}-{impl}"), dtype, *cells)
    console.print(shown)
    for line in told:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
