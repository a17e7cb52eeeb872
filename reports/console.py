"""What people see on the terminal: the summary, what failed and how to look at it, what was not judged, the list."""

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpu_impls.outcome import Outcome
from gpu_impls.registry import Implementation
from oracles.arithmetics import BEST, VECTORISED
from oracles.enclosure import Ground
from reports.tables import not_judged, shown
from reports.write import format_cell

_COLOUR = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.NOT_JUDGED: "yellow"}
_HEADINGS = {
    "impl": "implementation",
    "dtype": "dtype",
    "max_ulp": "max ULP",
    "max_row_ulp": "max row ULP",
    "misrounded_share": "misrounded",
    "bound_used": "bound used",
    "outcome": "outcome",
    "reason": "reason",
    "worst_regime": "worst in",
}
FAILURES_SHOWN = 12


def print_summary(console: Console, measured: pd.DataFrame, summed: pd.DataFrame, known_faulty: set[str]) -> None:
    """A table per operator, then the failures of implementations that are not known to be faulty, then the rest."""
    for op, group in summed.groupby("op", sort=False):
        table = Table(title=str(op), title_justify="left", title_style="bold", header_style="dim", box=None)
        columns = shown(group, list(_HEADINGS))
        for column in columns:
            heading = _HEADINGS.get(column, column)
            numbers = group[column].dtype.kind == "f"
            table.add_column(heading, justify="right" if numbers else "left", overflow="fold")
        for row in group.itertuples():
            table.add_row(*(_cell(row, column, known_faulty) for column in columns))
        console.print(table)
        console.print()
    _print_failures(console, summed, known_faulty)
    undone = not_judged(measured)
    if len(undone):
        told = ", ".join(f"{row.measurements} {row.reason}" for row in undone.itertuples())
        console.print(f"Not judged: {told}.")
    passed, failed = ((measured["outcome"] == o).sum() for o in (Outcome.PASS, Outcome.FAIL))
    elements = int(measured["elements"].sum())
    console.print(f"{len(measured)} measurements of {elements:,} results: {passed} pass, {failed} fail.")
    arithmetics = measured.loc[measured["arithmetic"] != "", "arithmetic"].value_counts()
    told = ", ".join(f"{str(name).replace(' ', ' and ')} ({count})" for name, count in arithmetics.items())
    console.print(f"Exact values by {told or 'nobody'}.", highlight=False)
    print_ground(console)


def _cell(row: object, column: str, known_faulty: set[str]) -> str:
    value = getattr(row, column)
    if column == "misrounded_share":
        return f"{value:.1%}"
    if column == "outcome":
        return f"[{_COLOUR[Outcome(value)]}]{value}[/]"
    text = escape(format_cell(value))
    faulty = column == "impl" and f"{getattr(row, 'op')}-{value}" in known_faulty  # noqa: B009
    return f"{text} [dim](known faulty)[/]" if faulty else text


def _print_failures(console: Console, summed: pd.DataFrame, known_faulty: set[str]) -> None:
    failing = [row for row in summed.itertuples() if row.fails and f"{row.op}-{row.impl}" not in known_faulty]
    if failing:
        console.print("[bold]Failures[/] (implementations known to be faulty are left out here)")
    for row in failing[:FAILURES_SHOWN]:
        where = f"{row.op} {row.impl} {row.dtype}: {row.reason} in {row.worst_regime} ({row.fails} measurements)"
        console.print(f"  [red]{escape(where)}[/]")
        console.print(f"    trueulp replay {row.worst_case}", soft_wrap=True, markup=False, highlight=False)
    if len(failing) > FAILURES_SHOWN:
        console.print(f"  and {len(failing) - FAILURES_SHOWN} more: see summary.md")
    if failing:
        console.print()


def print_ground(console: Console) -> None:
    """Says so where exact values take long or are not proved, for want of a library."""
    if VECTORISED is None:
        console.print("[yellow]crival is not installed: every row goes the slow way. pip install crival[/]")
    if BEST.ground is not Ground.PROVED:
        console.print(
            "[yellow]python-flint is not installed: exp, log and sqrt come from mpmath at two precisions "
            "(ground: mpmath, not proved, and slower). pip install python-flint[/]"
        )


def print_list(console: Console, implementations: list[Implementation], absent: dict[str, str]) -> None:
    """Everything that can run here, and why the rest cannot."""
    table = Table(box=None, header_style="dim")
    for heading in ("operator", "implementation", "backend", "dtypes", "contract"):
        table.add_column(heading, overflow="fold")
    for i in sorted(implementations, key=lambda i: (i.op, i.name)):
        table.add_row(i.op, escape(i.name), i.contract.backend, ", ".join(i.contract.dtypes), escape(_terms(i)))
    console.print(table)
    for module, reason in absent.items():
        console.print(f"not here: {module}: {escape(reason)}", highlight=False)
    print_ground(console)


def _terms(implementation: Implementation) -> str:
    """What a contract says beside its dtypes, in one line."""
    agreed = implementation.contract
    terms = [
        f"domain {agreed.domain[0]:g} to {agreed.domain[1]:g}" if agreed.domain else "",
        f"n >= {agreed.min_length}" if agreed.min_length else "",
        f"n <= {agreed.max_length}" if agreed.max_length is not None else "",
        f"summation {agreed.summation}" if agreed.summation else "",
        f"accumulates in {agreed.accumulate}" if agreed.accumulate else "",
        f"max_ulp {', '.join(f'{v:g} {k}' for k, v in agreed.max_ulp.items())}" if agreed.max_ulp else "",
        f"masked rows {agreed.masked_row}" if agreed.masked_row != "zero" else "",
        f"deviates in {', '.join(agreed.deviates)}" if agreed.deviates else "",
        f"known faulty: {', '.join(agreed.known_faulty)}" if agreed.known_faulty else "",
    ]
    return "; ".join(filter(None, terms))
