"""What the gate prints: what moved, worst first, how to look at it, and a count of every verdict."""

import argparse
import glob
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from reports.gate.compare import Compared, Verdict, counts

# How many rows of each verdict are shown. New and absent rows have nothing to show but their names.
SHOWN = {Verdict.WORSE: 20, Verdict.MISSING: 10, Verdict.BETTER: 10, Verdict.CHANGED: 5}
_COLOUR = {Verdict.WORSE: "red", Verdict.MISSING: "red", Verdict.BETTER: "green", Verdict.NOT_RUN: "yellow"}
_NAMED = (Verdict.NOT_RUN, Verdict.NEW)
_HEADINGS = ("", "verdict", "operator", "implementation", "dtype", "output", "regime", "n", "what moved")


def print_moved(console: Console, compared: Sequence[Compared], against: str, again: str = "") -> None:
    """The table, its replay lines (ending in ``again``: the files to give once more) and the counts."""
    moved = [c for c in compared if c.verdict in SHOWN]
    shown = [c for verdict, most in SHOWN.items() for c in [m for m in moved if m.verdict is verdict][:most]]
    if shown:
        _print_table(console, shown)
        if len(shown) < len(moved):
            console.print(f"  and {len(moved) - len(shown)} more like these")
        console.print("\n[bold]See them again[/]")
        for number, c in enumerate(shown, 1):
            line = f"  {number:>2}  {replay_line(c)}{again}"
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        console.print()
    for verdict in _NAMED:
        if named := _by_implementation(c for c in compared if c.verdict is verdict):
            console.print(escape(f"{verdict}: {named}"), highlight=False)
    if better := sum(c.verdict is Verdict.BETTER for c in compared):
        console.print(f"[green]Better than before: {better} rows[/]", highlight=False)
    if failing := sum(c.fails_then_and_now for c in compared):
        console.print(f"[red]Failing then and now: {failing} rows[/]", highlight=False)
    console.print(f"[bold]{len(compared)} rows[/] against {escape(against)}: {told(compared)}", highlight=False)


def _print_table(console: Console, shown: Sequence[Compared]) -> None:
    table = Table(box=None, header_style="dim")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right" if heading in ("", "n") else "left", overflow="fold")
    for number, c in enumerate(shown, 1):
        row, colour = c.row, _COLOUR.get(c.verdict, "default")
        words = (row.op, row.impl, row.dtype, row.output, row.regime, str(row.n), _moves(c))
        table.add_row(str(number), f"[{colour}]{c.verdict}[/]", *map(escape, words))
    console.print(table)


def _moves(c: Compared) -> str:
    if c.verdict is Verdict.MISSING:
        return "it was there, and did not come out"
    bits = " (the bits are the same: contract or judge changed)" if _same_bits(c) and c.moves else ""
    return (", ".join(c.moves) or "bits only") + bits


def _same_bits(c: Compared) -> bool:
    return c.old is not None and c.new is not None and c.old.output_bits == c.new.output_bits


def replay_line(c: Compared) -> str:
    return f"trueulp replay {c.row.worst_case} --impl {shlex.quote(glob.escape(c.row.impl))}"


def told(compared: Iterable[Compared]) -> str:
    """How many rows of each verdict, those that occur."""
    return ", ".join(f"{count} {verdict}" for verdict, count in counts(compared).items() if count) or "none"


def _by_implementation(compared: Iterable[Compared]) -> str:
    dtypes: dict[str, Counter[str]] = {}
    for c in compared:
        dtypes.setdefault(f"{c.row.op} {c.row.impl}", Counter())[c.row.dtype] += 1
    counted = {name: ", ".join(f"{n} {dtype}" for dtype, n in sorted(d.items())) for name, d in dtypes.items()}
    return ", ".join(f"{name} ({counted[name]} rows)" for name in sorted(counted))


def exit_code(compared: Iterable[Compared], require_all: bool) -> int:
    """1 where a row is worse or missing; with ``require_all`` also where one was not run here."""
    failing = {Verdict.WORSE, Verdict.MISSING} | ({Verdict.NOT_RUN} if require_all else set())
    return int(any(c.verdict in failing for c in compared))


def files_again(options: argparse.Namespace) -> str:
    """The files that a replay line has to give once more."""
    files = [("--impls", file) for file in options.impls] + ([("--data", options.data)] if options.data else [])
    return "".join(f" {option} {shlex.quote(file)}" for option, file in files)


def print_environment(console: Console, there: dict[str, Any], here: dict[str, Any]) -> None:
    """In what the machines differ that made the two sets of numbers."""
    old, new = _relevant(there), _relevant(here)
    told = [f"{name} {old.get(name)} -> {new[name]}" for name in new if old.get(name) != new[name]]
    if told:
        console.print(f"[yellow]The baseline was made elsewhere[/]: {escape('; '.join(told))}", highlight=False)


def _relevant(environment: dict[str, Any]) -> dict[str, Any]:
    packages = environment.get("packages")
    versions = packages if isinstance(packages, dict) else {}
    names = ("numpy", "scipy", "ml_dtypes")
    return {"processor": environment.get("processor")} | {name: versions.get(name) for name in names}
