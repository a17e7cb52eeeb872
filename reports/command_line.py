"""The command line.

Exit codes: 0 done (report: whatever the outcomes; check and gate: all is well), 1 a property does not hold or something
got worse, 2 bad input with one line that says what was expected, 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from rich.console import Console

from reports import __version__
from reports.commands import check, gate, replay, report, sanitize
from reports.commands import list as listing

COMMANDS = {"list": listing, "check": check, "report": report, "gate": gate, "replay": replay, "sanitize": sanitize}
BAD_INPUT = 2
EXIT_CODES = (
    "exit codes: 0 done (list, report, replay: whatever the outcomes), 1 a property does not hold (check), something "
    "is worse or missing (gate) or was found (sanitize), 2 bad input, 130 interrupted"
)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. What the user gave is checked before anything is measured.

    Raises:
        KeyboardInterrupt: after what was measured until then is written.
    """
    options = parser().parse_args(arguments)
    # One line per row also where the output is a file or a pipe.
    terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Output(width=None if terminal else 160, soft_wrap=False)
    try:
        action = options.prepare(options)
    except ValueError as error:
        return _refused(error)
    try:
        return int(action(console))
    except OSError as error:  # a disk that is full, say
        return _refused(error)


class Output(Console):
    """A console that goes quiet when nobody reads it any more (``trueulp report | head``): the work is done and the
    files are written all the same, and the exit code says how it went."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refused(error: Exception) -> int:
    print(f"trueulp: {' '.join(str(error).splitlines())}", file=sys.stderr)
    return BAD_INPUT


class Parser(argparse.ArgumentParser):
    """Answers bad options in one line; ``--help`` tells the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="trueulp",
        description="The true numerical error of GPU kernels, in ULPs, against certified values.",
        epilog=EXIT_CODES,
    )
    top.add_argument("--version", action="version", version=f"trueulp {__version__}")
    below = top.add_subparsers(metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        sub = below.add_parser(name, help=command.SUMMARY, description=command.SUMMARY, epilog=EXIT_CODES)
        command.configure(sub)
        sub.set_defaults(prepare=command.prepare)
    return top
