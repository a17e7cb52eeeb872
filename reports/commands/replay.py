"""``trueulp replay``: one case again, digit by digit."""

import argparse

from rich.console import Console

from reports.commands import OK, Action
from reports.commands.options import add_data, add_selection, blocks, running, select
from reports.replay import parse_place, print_replay

SUMMARY = "one case again, digit by digit"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", help="an ID from a report or a failure, with @row.element or without")
    add_selection(parser)
    add_data(parser, "the rows of a user_rows case")


def prepare(options: argparse.Namespace) -> Action:
    blocks(options)
    case, index = parse_place(options.case)
    options.op = options.op or [case.op]
    chosen = [i for i in select(options) if i.op == case.op]
    takers = [i for i in chosen if case.dtype in i.contract.dtypes]
    if not takers:
        known = ", ".join(f"{i.name} ({', '.join(i.contract.dtypes)})" for i in chosen) or "none"
        raise ValueError(f"no implementation of {case.op} takes {case.dtype} here: there are {known}")

    def show(console: Console) -> int:
        with running(options) as runner:
            print_replay(console, case, index, takers, runner)
        return OK

    return show
