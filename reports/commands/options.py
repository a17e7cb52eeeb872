"""Options that commands share: which implementations, which of their cases."""

import argparse
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from gpu_impls.call import Runner, call
from gpu_impls.isolation import START_DEADLINE, Isolated
from gpu_impls.registry import Implementation, implementations, load_file
from properties.declarations import check_declarations
from properties.recorded import Block, load_user_rows
from reports.plan import Plan


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Which implementations."""
    parser.add_argument("--op", action="append", default=[], metavar="NAME", help="only this operator (repeatable)")
    parser.add_argument("--impl", action="append", default=[], metavar="GLOB", help="only these (repeatable)")
    parser.add_argument(
        "--impls", action="append", default=[], metavar="FILE", help="also load implementations from FILE (repeatable)"
    )
    add_running(parser)


def add_running(parser: argparse.ArgumentParser) -> None:
    """How kernels get run."""
    parser.add_argument(
        "--in-process", action="store_true", help="run kernels in this process: no deadline, for debugging"
    )


@contextmanager
def running(options: argparse.Namespace) -> Iterator[Runner]:
    """How kernels get run: in a child process that may hang or crash, unless --in-process says otherwise."""
    if options.in_process:
        yield call
        return
    with Isolated() as isolated:
        yield isolated


def brought(options: argparse.Namespace) -> list[Implementation]:
    """What the files bring. Importing them has a deadline like the kernels, unless --in-process says otherwise."""
    with nullcontext() if options.in_process else _deadline(START_DEADLINE):
        return [i for path in options.impls for i in load_file(path)]


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raises ``TimeoutError`` in the midst of what takes longer."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"no end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def select(options: argparse.Namespace) -> list[Implementation]:
    """The implementations asked for. Files without --op bring the other implementations of their operators along."""
    given = brought(options)
    ops = tuple(options.op) or tuple(dict.fromkeys(i.op for i in given))
    chosen = implementations(ops, tuple(options.impl))
    check_declarations(chosen)
    return chosen


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Which of their cases."""
    parser.add_argument("--dtype", action="append", default=[], metavar="NAME", help="only this dtype (repeatable)")
    parser.add_argument("--regime", action="append", default=[], metavar="NAME", help="only this regime (repeatable)")
    add_data(
        parser,
        "your own rows as the regime user_rows: every numeric array, its last axis the row; one-dimensional "
        "arrays named weight and bias go with rows of their length",
    )
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="draw other rows (default 0)")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="processes that share the work (default 1)")
    parser.add_argument("--quick", action="store_true", help="float32 and short rows only: about ten seconds")


def add_size(parser: argparse.ArgumentParser) -> None:
    """Production sizes."""
    parser.add_argument(
        "--length", action="append", default=[], type=count, metavar="N", help="every regime, at this length only"
    )
    parser.add_argument(
        "--rows", type=count, metavar="N", help="every regime, with so many rows; in cases that fit into memory"
    )
    parser.add_argument(
        "--no-escalation",
        action="store_true",
        help="evaluate nothing twice: faster where much is left open (float64), with ranges of misrounded results",
    )
    parser.add_argument(
        "--no-screening",
        action="store_true",
        help="compute every exact value on the host, even where a GPU settles most rows (exp and log as documented)",
    )


def add_data(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument("--data", metavar="FILE.npz", help=purpose)


def blocks(options: argparse.Namespace) -> tuple[Block, ...]:
    """The user's recorded rows, if any were given."""
    return () if options.data is None else tuple(load_user_rows(options.data).values())


def plan(options: argparse.Namespace) -> Plan:
    """What these options ask to be measured."""
    return Plan(
        lengths=tuple(options.length),
        rows=options.rows or Plan.rows,
        at_size=bool(options.length or options.rows),
        escalate=not options.no_escalation,
        screen=not options.no_screening,
        implementations=tuple(select(options)),
        dtypes=tuple(options.dtype),
        regimes=tuple(options.regime),
        seed=options.seed,
        quick=options.quick,
        blocks=blocks(options),
    )


def replay_options(options: argparse.Namespace) -> str:
    """What a replay needs beside the case and the implementation: the files, as they were given."""
    words = [word for path in options.impls for word in ("--impls", path)]
    return shlex.join(words + (["--data", options.data] if options.data is not None else []))


def _seed(text: str) -> int:
    return _whole(text, least=0)


def count(text: str) -> int:
    """A length, or a number of things."""
    return _whole(text, least=1)


def _whole(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
    return int(text)
