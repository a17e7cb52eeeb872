"""The entry point. The command line is imported within, as that takes a second in which Ctrl-C may come."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

INTERRUPTED = 130
_TOLD = "trueulp: interrupted"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of :mod:`reports.command_line`; returns the exit code."""
    with _on_ctrl_c(_leave):
        from reports.command_line import run
    with _on_ctrl_c(_interrupt):
        try:
            return run(arguments)
        except KeyboardInterrupt:
            print(_TOLD, file=sys.stderr)
            return INTERRUPTED


@contextmanager
def _on_ctrl_c(handler: Callable[..., None]) -> Iterator[None]:
    """With ``handler`` in the place of Python's own, where it is that which would be called."""
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


def _leave(*_: object) -> None:
    """At once, and not by an exception: an extension module that is just imported makes an ImportError of it."""
    os.write(2, f"{_TOLD}\n".encode())
    os._exit(INTERRUPTED)


def _interrupt(*_: object) -> None:
    """Once: a second one, by timeout(1) or an impatient hand, would end the writing of what was measured."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
