"""``trueulp check FILE``: the property suite on the implementations of one file."""

import argparse
from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from properties.declarations import PROPERTIES, check_declarations
from properties.suite import Result, Status, check
from reports.commands import OK, Action
from reports.commands.options import add_running, brought, running

SUMMARY = "the property suite on the implementations of one file"
BROKEN = 1

_STYLE = {
    Status.HOLDS: "green",
    Status.BROKEN: "bold red",
    Status.DECLARED: "yellow",
    Status.GONE: "bold red",
    Status.NOT_CLAIMED: "dim",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a Python file that uses @implementation")
    parser.add_argument("--dtype", action="append", default=[], metavar="NAME", help="only this dtype (repeatable)")
    add_running(parser)


def prepare(options: argparse.Namespace) -> Action:
    options.impls = [options.file]
    given = brought(options)
    check_declarations(given)
    pairs = [(i, d) for i in given for d in i.contract.dtypes if not options.dtype or d in options.dtype]
    if not pairs:
        taken = ", ".join(sorted({d for i in given for d in i.contract.dtypes}))
        raise ValueError(f"nothing in {options.file} takes {', '.join(options.dtype)}: expected some of {taken}")

    def run(console: Console) -> int:
        with running(options) as runner:
            results = []
            for implementation, dtype in pairs:
                with console.status(escape(f"{implementation.id} {dtype}")):
                    for result in check(implementation, dtype, runner):
                        print_finding(console, result)
                        results.append(result)
        print_results(console, results)
        return BROKEN if any(r.status.fails for r in results) else OK

    return run


def print_finding(console: Console, result: Result) -> None:
    """The counterexample of a broken property, as soon as there is one."""
    if result.finding is not None and result.status is Status.BROKEN:
        console.print(result.finding.told_of(result.implementation), markup=False, highlight=False, soft_wrap=True)
        console.print()


def print_results(console: Console, results: list[Result]) -> None:
    """Property x dtype for each implementation: the verdict is the last thing on the screen."""
    for name, group in groupby(results, key=lambda r: r.implementation.id):
        found = {(r.property, r.dtype): r.status for r in group}
        dtypes = list(dict.fromkeys(dtype for _, dtype in found))
        table = Table(title=escape(name), title_justify="left", title_style="bold", box=None, header_style="dim")
        for heading in ("property", *dtypes):
            table.add_column(heading, overflow="fold")
        for law in PROPERTIES:
            statuses = [found[law, dtype] for dtype in dtypes]
            table.add_row(law.replace("_", " "), *(f"[{_STYLE[status]}]{status}[/]" for status in statuses))
        console.print(table)
        console.print()
    broken = sum(r.status.fails for r in results)
    pairs = len({(r.implementation.id, r.dtype) for r in results})
    console.print(f"{broken} of {len(results)} properties broken, {pairs} (implementation, dtype) pairs checked.")
    for line in dict.fromkeys(_declarations(results)):
        console.print(line, markup=False, highlight=False)


def _declarations(results: list[Result]) -> Iterator[str]:
    """What is declared, and what is declared in vain."""
    for r in results:
        reason = r.implementation.contract.expected_failures.get(r.property, "")
        if r.status is Status.DECLARED:
            yield f"declared: {r.implementation.id} {r.property}: {reason}"
        if r.status is Status.GONE:
            yield f"declared to fail, but holds: {r.implementation.id} {r.dtype} {r.property}: {reason}"
