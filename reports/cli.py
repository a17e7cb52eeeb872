"""The entry point. The command line is imported within, as that takes a second in which Ctrl-C may come."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

INTERRUPTED = 130
_TOLD = "trueulp: interrupted"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of :mod:`reports.command_line`; returns the exit code."""
    with _leaving_on_ctrl_c():
        from reports.command_line import run
    try:
        return run(arguments)
    except KeyboardInterrupt:
        print(_TOLD, file=sys.stderr)
        return INTERRUPTED


@contextmanager
def _leaving_on_ctrl_c() -> Iterator[None]:
    """At once, and not by an exception: an extension module that is just imported makes an ImportError of it."""

    def leave(*_: object) -> None:
        os.write(2, f"{_TOLD}\n".encode())
        os._exit(INTERRUPTED)

    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    sys.exit(main())
