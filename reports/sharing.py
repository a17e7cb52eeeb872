"""Work shared by processes, each with a runner of its own."""

import contextlib
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from gpu_impls.call import Runner

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Worker:
    """A process, and the parent's end of its own pipe: with one for all, a worker that is killed while it answers would
    leave half an answer there, and the parent waiting for the rest."""

    process: BaseProcess
    connection: Connection


@contextmanager
def shared(
    work: Callable[[Item, Runner], Result], items: Sequence[Item], runner: Runner, jobs: int
) -> Iterator[Iterator[tuple[Item, Result]]]:
    """``work(item, runner)`` for every item: in their order by one job, as they are done by several.

    Workers are forked, for kernels cannot be sent to them. What has begun when all is ended early is given up.

    Raises:
        ChildProcessError: a worker died, and all ends with it.
    """
    if jobs <= 1:
        yield ((item, work(item, runner)) for item in items)
        return
    workers: list[Worker] = []
    try:
        for _ in range(min(jobs, len(items))):
            workers.append(_start(work, items, runner, workers))
        yield _as_done(workers, items)
    finally:
        _end(workers)


def _start(work: Callable[..., Any], items: Sequence[Any], runner: Runner, siblings: list[Worker]) -> Worker:
    context = get_context("fork")
    ours, theirs = context.Pipe()
    inherited = [ours, *(sibling.connection for sibling in siblings)]
    process = context.Process(target=_serve, args=(theirs, inherited, work, items, runner), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours)


def _as_done(workers: list[Worker], items: Sequence[Item]) -> Iterator[tuple[Item, Any]]:
    """Each worker has one item at a time, and gets the next when it has answered."""
    todo = iter(range(len(items)))
    has: dict[Connection, int] = {}

    def give(connection: Connection) -> None:
        index = next(todo, None)
        if index is not None:
            connection.send(index)
            has[connection] = index

    with _deaths_told():
        for worker in workers:
            give(worker.connection)
    while has:
        wait(list(has))
        for connection in [c for c in has if c.poll()]:
            with _deaths_told():
                result, error = connection.recv()
                item = items[has.pop(connection)]
                give(connection)
            if error is not None:
                raise error
            yield item, result


@contextmanager
def _deaths_told() -> Iterator[None]:
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise ChildProcessError(
            "a process of --jobs died, for want of memory or by a kernel that was run --in-process: run fewer, or "
            "kernels in processes of their own"
        ) from error


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
    for other in inherited:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            item = items[connection.recv()]
            try:
                answer = work(item, runner), None
            except BaseException as error:
                error.add_note(traceback.format_exc())
                answer = None, error
            connection.send(answer)
