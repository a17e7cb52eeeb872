"""Work shared by processes, each with a runner of its own."""

import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Protocol, TypeVar

from gpu_impls.call import Runner

Item = TypeVar("Item")
Result = TypeVar("Result")
Pair = TypeVar("Pair", covariant=True)

GRACE = 5.0  # seconds in which work that is broken off may say what it has come to


class Results(Protocol[Pair]):
    """Each item with its result; after an end that came early, also what had begun, as far as it came."""

    def __iter__(self) -> Iterator[Pair]: ...

    def rest(self) -> Iterator[Pair]: ...


@contextmanager
def shared(
    work: Callable[[Item, Runner], Result], items: Sequence[Item], runner: Runner, jobs: int
) -> Iterator[Results[tuple[Item, Result]]]:
    """``work(item, runner)`` for every item: in their order by one job, as they are done by several.

    Workers are forked, for kernels cannot be sent to them. Work that is broken off for ``rest()`` gets a
    KeyboardInterrupt, and what it returns all the same is its result.

    Raises:
        ChildProcessError: a worker died, and all ends with it.
    """
    if jobs <= 1:
        yield _Alone(work, items, runner)
        return
    workers: list[Worker] = []
    try:
        for _ in range(min(jobs, len(items))):
            workers.append(_start(work, items, runner, workers))
        yield _Crew(workers, items)
    finally:
        _end(workers)


@dataclass(frozen=True)
class _Alone(Generic[Item, Result]):
    work: Callable[[Item, Runner], Result]
    items: Sequence[Item]
    runner: Runner

    def __iter__(self) -> Iterator[tuple[Item, Result]]:
        return ((item, self.work(item, self.runner)) for item in self.items)

    def rest(self) -> Iterator[tuple[Item, Result]]:
        return iter(())


@dataclass(frozen=True)
class Worker:
    """A process, and the parent's end of its own pipe: with one for all, a worker that is killed while it answers would
    leave half an answer there, and the parent waiting for the rest."""

    process: BaseProcess
    connection: Connection


@dataclass
class _Crew(Generic[Item, Result]):
    """Each worker has one item at a time, and gets the next when it has answered."""

    workers: list[Worker]
    items: Sequence[Item]
    _has: dict[Connection, int] = field(default_factory=dict)
    _reading: Connection | None = None

    def __iter__(self) -> Iterator[tuple[Item, Result]]:
        todo = iter(range(len(self.items)))
        for worker in self.workers:
            self._give(worker.connection, todo)
        while self._has:
            wait(list(self._has))
            for connection in self._answered():
                item, result, error = self._take(connection)
                self._give(connection, todo)
                if error is not None:
                    raise error
                yield item, result

    def rest(self) -> Iterator[tuple[Item, Result]]:
        if self._reading is not None:
            self._has.pop(self._reading, None)  # half an answer is read: the other half is none
        for worker in self.workers:
            if worker.connection in self._has:
                worker.process.terminate()
        end = time.monotonic() + GRACE
        while self._has and wait(list(self._has), end - time.monotonic()):
            for connection in self._answered():
                try:
                    item, result, error = self._take(connection)
                except ChildProcessError:
                    del self._has[connection]
                    continue
                if error is None:
                    yield item, result

    def _answered(self) -> list[Connection]:
        return [connection for connection in self._has if connection.poll()]

    def _give(self, connection: Connection, todo: Iterator[int]) -> None:
        index = next(todo, None)
        if index is not None:
            with _deaths_told():
                connection.send(index)
            self._has[connection] = index

    def _take(self, connection: Connection) -> tuple[Item, Result, BaseException | None]:
        self._reading = connection
        with _deaths_told():
            result, error = connection.recv()
        self._reading = None
        return self.items[self._has.pop(connection)], result, error


@contextmanager
def _deaths_told() -> Iterator[None]:
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise ChildProcessError(
            "a process of --jobs died, for want of memory or by a kernel that was run --in-process: run fewer, or "
            "kernels in processes of their own"
        ) from error


def _start(work: Callable[..., Any], items: Sequence[Any], runner: Runner, siblings: list[Worker]) -> Worker:
    context = get_context("fork")
    ours, theirs = context.Pipe()
    inherited = [ours, *(sibling.connection for sibling in siblings)]
    process = context.Process(target=_serve, args=(theirs, inherited, work, items, runner), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours)


def _end(workers: list[Worker]) -> None:
    """At once, whatever they are at; a kernel's process notices that its worker is gone."""
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.join()
        worker.connection.close()


def _serve(
    connection: Connection, inherited: list[Connection], work: Callable[..., Any], items: Sequence[Any], runner: Runner
) -> None:
    """In a worker: ends when nobody is there any more to ask. Ctrl-C is the parent's to handle."""
    at_work = False

    def break_off(*_: object) -> None:
        if at_work:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, break_off)
    for other in inherited:
        other.close()
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):
        while True:
            item = items[connection.recv()]
            try:
                at_work = True
                answer = work(item, runner), None
            except BaseException as error:
                at_work = False
                error.add_note(traceback.format_exc())
                answer = None, error
            at_work = False
            connection.send(answer)
