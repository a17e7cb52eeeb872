"""Work shared by processes, each with a runner of its own."""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

from gpu_impls.call import Runner

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    with ProcessPoolExecutor(jobs, get_context("fork"), _begin, (work, items, runner)) as pool:
        begun = {pool.submit(_one, index): item for index, item in enumerate(items)}
        try:
            yield _as_done(begun)
        finally:
            for worker in active_children() if begun else ():
                worker.terminate()
            pool.shutdown(cancel_futures=True)


def _as_done(begun: dict[Future[Result], Item]) -> Iterator[tuple[Item, Result]]:
    for done in as_completed(list(begun)):
        item = begun.pop(done)
        try:
            result = done.result()
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a process of --jobs died, for want of memory or by a kernel that was run --in-process: run fewer, or "
                "kernels in processes of their own"
            ) from error
        yield item, result


_inherited: tuple[Callable[[Any, Runner], Any], Sequence[Any], Runner]


def _begin(*inherited: Any) -> None:
    """In a worker: what it has from its parent. Ctrl-C is the parent's to handle."""
    global _inherited
    _inherited = inherited  # type: ignore[assignment]
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(index: int) -> Any:
    work, items, runner = _inherited
    return work(items[index], runner)
