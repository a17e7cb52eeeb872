"""Isolation: kernels run in a child process with a deadline, because a kernel may hang, crash or take everything down.

The parent sends (implementation, inputs) over a pipe and waits. No answer in time: ``hung``. The pipe closed, or the
child grown beyond its share of memory: ``crashed``. Either way the child's whole process group is killed, a new child
serves the next call, and nothing measured is lost. An implementation that did so three times is not run again: each
such call costs a deadline.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Self

import numpy as np

from gpu_impls.backends import BACKENDS
from gpu_impls.call import Run, call
from gpu_impls.libraries import load_libraries
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation, find
from oracles.formats import Array
from oracles.operator import Inputs

# Importing PyTorch or JAX, and a first compilation, are not the kernel's time.
START_DEADLINE = 120.0
DEADLINE = 30.0
PATIENCE = 3
# Share of the machine's memory that a child may hold.
MEMORY_SHARE = 0.5
_LOOK_EVERY = 0.05


class Isolated:
    """Runs implementations in a child process; has the signature of :func:`gpu_impls.call.call`.

    Implementations that no file or module of ours registered (in a notebook, within a test) cannot be found by a child
    and run in this process.
    """

    def __init__(self, deadline: float = DEADLINE, memory: int | None = None) -> None:
        self.deadline = deadline
        self.memory = memory or int(MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        self._child: Child | None = None
        self._failures: Counter[str] = Counter()

    def __call__(
        self,
        implementation: Implementation,
        inputs: Inputs,
        arrange: Callable[[Array], Array] = np.array,
        with_out: bool = False,
    ) -> Run:
        if implementation.origin is None:
            return call(implementation, inputs, arrange, with_out)
        if self._failures[implementation.id] >= PATIENCE:
            return Run(reason=Reason.NOT_RUN, detail=f"it hung or crashed {PATIENCE} times before")
        run = self._ask(implementation, inputs, arrange, with_out)
        if run.reason in (Reason.HUNG, Reason.CRASHED):
            self._failures[implementation.id] += 1
            self.close()
        return run

    def _ask(self, implementation: Implementation, *arguments: Any) -> Run:
        if self._child is None or self._child.parent != os.getpid():  # a fork of this process needs one of its own
            self._child = Child()
        where = (implementation.origin, implementation.op, implementation.name)
        if implementation.id not in self._child.loaded:
            loaded = self._child.ask(("load", *where), START_DEADLINE, self.memory)
            if loaded.reason:
                return loaded
            self._child.loaded.add(implementation.id)
        return self._child.ask(("call", *where, *arguments), self.deadline, self.memory)

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Child:
    """One child process and the parent's end of its pipe."""

    def __init__(self) -> None:
        self.parent = os.getpid()
        self.loaded: set[str] = set()
        self._ours, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpu_impls.worker", str(theirs.fileno()), str(self.parent)],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a kernel that prints gigabytes prints them nowhere
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that what it forks dies with it, and Ctrl-C is ours to handle
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        theirs.close()

    def ask(self, request: tuple[Any, ...], deadline: float, memory: int) -> Run:
        """The child's answer, or how it failed to give one."""
        started = time.monotonic()
        try:
            self._ours.send(request)
            while not self._ours.poll(_LOOK_EVERY):
                if time.monotonic() - started > deadline:
                    return Run(reason=Reason.HUNG, detail=f"no answer within {deadline:g} s")
                if resident(self._process.pid) > memory:
                    return Run(reason=Reason.CRASHED, detail=f"took more than {memory / 2**30:.1f} GiB of memory")
            answer = self._ours.recv()
        except Exception as error:  # the pipe broke, or what came through it is no answer: the child is of no use now
            return Run(reason=Reason.CRASHED, detail=self._ending(error))
        if not isinstance(answer, Run):
            return Run(reason=Reason.CRASHED, detail=f"its process answered with a {type(answer).__name__}")
        return answer

    def _ending(self, error: Exception) -> str:
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return f"its process closed the pipe ({type(error).__name__})"
        return f"its process was killed by {signal_name(-code)}" if code < 0 else f"its process exited with code {code}"

    def kill(self) -> None:
        """End the child and whatever it started."""
        self._ours.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def resident(pid: int) -> int:
    """Bytes a process holds in memory; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def load_what_it_needs(implementation: Implementation) -> None:
    """Import the libraries of its backend and its module now: that is not the kernel's time."""
    backend = BACKENDS[implementation.contract.backend]
    if backend.available():
        backend.load()
    module = sys.modules.get(getattr(implementation.function, "__module__", None) or "")
    if module is not None:
        load_libraries(module)


def serve(connection: Connection) -> None:
    """The child's loop: load what is asked for, call it, answer. Ends when the parent closes the pipe."""
    pid = os.getpid()
    while True:
        try:
            kind, origin, op, name, *arguments = connection.recv()
        except EOFError:
            return
        try:
            implementation = find(origin, op, name)
            if kind == "load":
                load_what_it_needs(implementation)
        except (ValueError, ImportError, OSError) as error:
            answer = Run(reason=Reason.RAISED, detail=f"{type(error).__name__}: {error}")
        else:
            answer = call(implementation, *arguments) if kind == "call" else Run()
        if os.getpid() != pid:
            os._exit(0)  # a copy of this process that the kernel forked: one answer is enough
        connection.send(answer)
