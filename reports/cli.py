"""The entry point. The command line is imported within, as that takes a second in which Ctrl-C may come."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

INTERRUPTED = 130
_TOLD = "trueulp: interrupted"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of :mod:`reports.command_line`; returns the exit code."""
    with _on_ctrl_c(_leave):
        from reports.command_line import run
    with _on_ctrl_c(_Interrupt()):
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


class _Interrupt:
    """KeyboardInterrupt, but not for the second signal of two that come at once, as timeout(1) sends them: it would end
    the writing of what was measured."""

    AT_ONCE = 1.0  # seconds

    def __init__(self) -> None:
        self._heeded = -math.inf

    def __call__(self, *_: object) -> None:
        now = time.monotonic()
        if now - self._heeded >= self.AT_ONCE:
            self._heeded = now
            raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
