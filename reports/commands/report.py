"""``trueulp report``: measure implementations, and tell."""

import argparse

from rich.console import Console
from rich.markup import escape

from reports.commands import OK, Action
from reports.commands.options import add_filters, add_selection, plan, running
from reports.console import print_summary
from reports.environment import environment
from reports.run import measure
from reports.tables import summary, table
from reports.write import FILES, writable_folder, write_report

SUMMARY = "measure implementations: tables, a summary, replay lines"


def configure(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_filters(parser)
    parser.add_argument("--out", default="results", metavar="DIR", help="where the files go (default: results)")


def prepare(options: argparse.Namespace) -> Action:
    planned = plan(options)
    if not any(True for _ in planned.units()):
        raise ValueError("nothing to measure: no implementation selected takes these dtypes, regimes and lengths")
    folder = writable_folder(options.out)

    def report(console: Console) -> int:
        with running(options) as runner:
            measurements, ended_by = measure(planned, runner, console)
        if measurements:
            measured = table(measurements)
            summed = summary(measured)
            write_report(folder, measured, summed, environment())
            faulty = {i.id for i in planned.implementations if i.contract.known_faulty}
            print_summary(console, measured, summed, faulty)
            console.print(f"Written to {escape(str(folder))}: {', '.join(FILES)}", highlight=False)
            if ended_by is not None:
                console.print("[yellow]Ended early: the tables hold what was measured until then.[/]")
        if ended_by is not None:
            raise ended_by
        return OK

    return report
