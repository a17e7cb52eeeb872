"""The command line: ``trueulp list``, ``trueulp report``, ``trueulp replay``.

Exit codes: 0 done (whatever the outcomes), 2 bad input with one line that says what was expected, 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from rich.console import Console
from rich.markup import escape

from gpu_impls.registry import Implementation, implementations, load_built_in, load_file
from properties.recorded import Block, load_user_rows
from reports import __version__
from reports.console import print_list, print_summary
from reports.environment import environment
from reports.plan import Plan
from reports.replay import replay
from reports.run import measure
from reports.tables import summary, table
from reports.write import FILES, writable_folder, write_report

OK, BAD_INPUT, INTERRUPTED = 0, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = parser().parse_args(arguments)
    # One line per row also where the output is a file or a pipe.
    console = Console(width=None if sys.stdout.isatty() else 160, soft_wrap=False)
    try:
        return int(options.run(options, console))
    except (ValueError, OSError) as error:  # OSError: a disk that is full, say
        print(f"trueulp: {' '.join(str(error).splitlines())}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("trueulp: interrupted", file=sys.stderr)
        return INTERRUPTED


class Parser(argparse.ArgumentParser):
    """Answers bad options in one line; ``--help`` tells the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="trueulp", description="The true numerical error of GPU kernels, in ULPs, against certified values."
    )
    top.add_argument("--version", action="version", version=f"trueulp {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    listing = commands.add_parser("list", help="what can run here, and why not")
    _selection(listing)
    listing.set_defaults(run=run_list)

    report = commands.add_parser("report", help="measure implementations: tables, a summary, replay lines")
    _selection(report)
    report.add_argument("--dtype", action="append", default=[], metavar="NAME", help="only this dtype (repeatable)")
    report.add_argument("--regime", action="append", default=[], metavar="NAME", help="only this regime (repeatable)")
    report.add_argument("--data", metavar="FILE.npz", help="your own rows as the regime user_rows")
    report.add_argument("--seed", type=_seed, default=0, metavar="N", help="draw other rows (default 0)")
    report.add_argument("--quick", action="store_true", help="float32 and short rows only: about ten seconds")
    report.add_argument("--out", default="results", metavar="DIR", help="where the files go (default: results)")
    report.set_defaults(run=run_report)

    again = commands.add_parser("replay", help="one case again, digit by digit")
    again.add_argument("case", metavar="CASE", help="an ID from a report or a failure, with @row.element or without")
    _selection(again)
    again.add_argument("--data", metavar="FILE.npz", help="the rows of a user_rows case")
    again.set_defaults(run=run_replay)
    return top


def _selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("--op", action="append", default=[], metavar="NAME", help="only this operator (repeatable)")
    command.add_argument("--impl", action="append", default=[], metavar="GLOB", help="only these (repeatable)")
    command.add_argument(
        "--impls", action="append", default=[], metavar="FILE", help="also load implementations from FILE (repeatable)"
    )


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def select(options: argparse.Namespace) -> list[Implementation]:
    """The implementations asked for. Files without --op bring the other implementations of their operators along."""
    brought = [i for path in options.impls for i in load_file(path)]
    ops = tuple(options.op) or tuple(dict.fromkeys(i.op for i in brought))
    return implementations(ops, tuple(options.impl))


def run_list(options: argparse.Namespace, console: Console) -> int:
    print_list(console, select(options), load_built_in())
    return OK


def run_report(options: argparse.Namespace, console: Console) -> int:
    chosen = select(options)
    plan = Plan(
        implementations=tuple(chosen),
        dtypes=tuple(options.dtype),
        regimes=tuple(options.regime),
        seed=options.seed,
        quick=options.quick,
        blocks=_blocks(options.data),
    )
    folder = writable_folder(options.out)
    measurements, finished = measure(plan, console)
    if not measurements:
        if not finished:
            raise KeyboardInterrupt
        raise ValueError("nothing to measure: no implementation selected takes these dtypes, regimes and lengths")
    measured = table(measurements)
    summed = summary(measured)
    write_report(folder, measured, summed, environment())
    print_summary(console, measured, summed, {i.id for i in chosen if i.contract.known_faulty})
    console.print(f"Written to {escape(str(folder))}: {', '.join(FILES)}", highlight=False)
    if not finished:
        console.print("[yellow]Interrupted: the tables hold what was measured until then.[/]")
    return OK if finished else INTERRUPTED


def run_replay(options: argparse.Namespace, console: Console) -> int:
    _blocks(options.data)
    replay(console, options.case, select(options))
    return OK


def _blocks(data: str | None) -> tuple[Block, ...]:
    return () if data is None else tuple(load_user_rows(data).values())


if __name__ == "__main__":
    sys.exit(main())
