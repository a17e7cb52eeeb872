"""``trueulp report``: measure implementations, and tell."""

import argparse
from dataclasses import replace

from rich.console import Console
from rich.markup import escape

from reports.atlas import all_bits, cells, write_atlas
from reports.commands import OK, Action
from reports.commands.options import add_filters, add_selection, add_size, plan, replay_options, running
from reports.console import print_summary
from reports.environment import environment
from reports.evidence import Evidence
from reports.page.render import Page, write_page
from reports.run import measure
from reports.tables import summary, table
from reports.write import ATLAS, FILES, PAGE, writable_folder, write_report

SUMMARY = "measure implementations: tables, a summary, replay lines"


def configure(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_filters(parser)
    add_size(parser)
    parser.add_argument(
        "--atlas", action="store_true", help="also atlas.md and atlas.csv: every cell, and whose bits hold"
    )
    parser.add_argument("--out", default="results", metavar="DIR", help="where the files go (default: results)")


def prepare(options: argparse.Namespace) -> Action:
    planned = replace(plan(options), usual_too=options.atlas)
    if not any(True for _ in planned.units()):
        raise ValueError("nothing to measure: no implementation selected takes these dtypes, regimes and lengths")
    folder = writable_folder(options.out)

    def report(console: Console) -> int:
        evidence = Evidence()
        with running(options) as runner:
            measurements, ended_by = measure(planned, runner, console, evidence, options.jobs)
            told = None
            if options.atlas and ended_by is None:
                told, ended_by = all_bits(planned, runner, options.jobs)
        if measurements:
            measured = table(measurements)
            summed = summary(measured)
            here = environment()
            faulty = frozenset(i.id for i in planned.implementations if i.contract.known_faulty)
            write_report(folder, measured, summed, here)
            why_not = write_page(folder, Page(measured, summed, evidence, here, faulty, replay_options(options)))
            if options.atlas:
                write_atlas(folder, cells(planned, measured, told), here)
            print_summary(console, measured, summed, set(faulty))
            written = ", ".join((*FILES, *([] if why_not else [PAGE]), *(ATLAS if options.atlas else ())))
            console.print(f"Written to {escape(str(folder))}: {written}", highlight=False)
            if why_not:
                console.print(f"[yellow]{escape(why_not)}[/]", highlight=False)
            if ended_by is not None:
                console.print("[yellow]Ended early: the tables hold what was measured until then.[/]")
        if ended_by is not None:
            raise ended_by
        return OK

    return report
