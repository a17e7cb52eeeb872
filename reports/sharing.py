"""Work shared by processes, each with a runner of its own."""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

from gpu_impls.call import Runner

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def shared(
    work: Callable[[Item, Runner], Result], items: Sequence[Item], runner: Runner, jobs: int
) -> Iterator[Iterator[tuple[Item, Result]]]:
    """``work(item, runner)`` for every item: in their order by one job, as they are done by several.

    Workers are forked, for kernels cannot be sent to them; one that dies ends it all with an error.
    """
    if jobs <= 1:
        yield ((item, work(item, runner)) for item in items)
        return
    with ProcessPoolExecutor(jobs, get_context("fork"), _begin, (work, items, runner)) as pool:
        begun = {pool.submit(_one, index): item for index, item in enumerate(items)}
        try:
            yield ((begun.pop(done), done.result()) for done in as_completed(list(begun)))
        finally:
            pool.shutdown(cancel_futures=True)


_inherited: tuple[Callable[[Any, Runner], Any], Sequence[Any], Runner]


def _begin(*inherited: Any) -> None:
    """In a worker: what it has from its parent. Ctrl-C is the parent's to handle."""
    global _inherited
    _inherited = inherited  # type: ignore[assignment]
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(index: int) -> Any:
    work, items, runner = _inherited
    return work(items[index], runner)
