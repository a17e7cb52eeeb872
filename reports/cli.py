"""The command line.

Exit codes: 0 done (whatever the outcomes), 2 bad input with one line that says what was expected, 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from rich.console import Console

from reports import __version__
from reports.commands import list as listing
from reports.commands import replay, report

COMMANDS = {"list": listing, "report": report, "replay": replay}
BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. What the user gave is checked before anything is measured."""
    options = parser().parse_args(arguments)
    # One line per row also where the output is a file or a pipe.
    console = Console(width=None if sys.stdout.isatty() else 160, soft_wrap=False)
    try:
        action = options.prepare(options)
    except ValueError as error:
        return _refused(error)
    except KeyboardInterrupt:
        return _interrupted()
    try:
        return int(action(console))
    except OSError as error:  # a disk that is full, say
        return _refused(error)
    except KeyboardInterrupt:
        return _interrupted()


def _refused(error: Exception) -> int:
    print(f"trueulp: {' '.join(str(error).splitlines())}", file=sys.stderr)
    return BAD_INPUT


def _interrupted() -> int:
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
    below = top.add_subparsers(metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        sub = below.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
        command.configure(sub)
        sub.set_defaults(prepare=command.prepare)
    return top


if __name__ == "__main__":
    sys.exit(main())
