"""Work shared by processes: nothing is lost or done twice, every worker has its own child, a dead one is noticed."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from reporting import run

from faulty import comes_true, processes, row_case
from gpu_impls.call import Run, Runner, call
from gpu_impls.isolation import Isolated
from gpu_impls.registry import implementations, isolated, load_file
from reports.cli import main
from reports.sharing import shared

# Of JAX, where another test has imported it. A report's parent imports no kernel's library: children do.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
ITEMS = list(range(20))
MISBEHAVING = str(Path(__file__).with_name("misbehaving_kernels.py"))


def squared(item: int, runner: Runner) -> tuple[int, int]:
    return item * item, os.getpid()


@pytest.mark.parametrize("jobs", [0, 1, 3])
def test_every_item_is_done_once(jobs: int):
    with shared(squared, ITEMS, call, jobs) as results:
        done = list(results)
    assert sorted((item, square) for item, (square, _) in done) == [(item, item * item) for item in ITEMS]
    assert (os.getpid() in {pid for _, (_, pid) in done}) == (jobs < 2)


def test_what_cannot_be_sent_is_inherited():
    by = 3
    with shared(lambda item, runner: item * by, ITEMS, call, 2) as results:
        assert sum(result for _, result in results) == by * sum(ITEMS)


def dies_at_seven(item: int, runner: Runner) -> int:
    if item == 7:
        os._exit(1)
    return item


@pytest.mark.parametrize("first", [0, 7])
def test_a_worker_that_dies_ends_it_with_an_error(first: int):
    with (
        shared(dies_at_seven, [first, *range(2000)], call, 2) as results,
        pytest.raises(ChildProcessError, match="a process of --jobs died"),
    ):
        list(results)


def test_a_report_says_what_ended_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    chosen = ("--impls", MISBEHAVING, "--impl", "exits", "--op", "sum", "--quick")
    assert run("report", *chosen, "--jobs", "2", "--out", tmp_path) == 2
    assert "trueulp: a process of --jobs died" in capsys.readouterr().err


def deaf(item: int, runner: Runner) -> None:
    """Done at once with 0; otherwise at work for an hour, whatever it is told."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600 * item)


def large(item: int, runner: Runner) -> bytes:
    return bytes(50_000_000)


@pytest.mark.parametrize("work", [deaf, large])
def test_what_has_begun_is_given_up_when_all_is_ended_early(work: Callable[[int, Runner], object]):
    """In the midst of work, and of handing over what is larger than a pipe holds."""
    begun = time.monotonic()
    with shared(work, [0, *[1] * 20], call, 4) as results:
        next(iter(results))
    assert time.monotonic() - begun < 30


def counts_until_broken_off(item: int, runner: Runner) -> str:
    """0 is done at once; 3 fails when it is broken off; 4 hears nothing."""
    try:
        while item:
            time.sleep(0.01)
            with contextlib.suppress(KeyboardInterrupt if item == 4 else ZeroDivisionError):
                time.sleep(0.01)
    except KeyboardInterrupt:
        return f"{item} so far" if item < 3 else str(1 // 0)
    return "done"


def test_what_had_begun_comes_as_far_as_it_came(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("reports.sharing.GRACE", 1.0)
    with shared(counts_until_broken_off, [0, 1, 2, 3, 4, 5, 6], call, 5) as results:
        assert next(iter(results)) == (0, "done")
        time.sleep(0.5)
        assert sorted(results.rest()) == [(1, "1 so far"), (2, "2 so far")]


def test_half_an_answer_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    """An interrupt while an answer is read leaves the rest of it in the pipe."""
    monkeypatch.setattr("reports.sharing.GRACE", 1.0)
    received = Connection.recv

    def interrupted(connection: Connection) -> object:
        os.read(connection.fileno(), 1)
        monkeypatch.setattr(Connection, "recv", received)
        raise KeyboardInterrupt

    with shared(large, [1, 1], call, 2) as results:
        monkeypatch.setattr(Connection, "recv", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(results)
        assert [len(answer) for _, answer in results.rest()] == [50_000_000]


def test_what_kernels_started_ends_with_them(monkeypatch: pytest.MonkeyPatch):
    mark = f"left-behind-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("LEFT_BEHIND", mark)
    inputs = row_case("sum", [[1.0]]).inputs
    with isolated(), Isolated() as runner:
        kernels = {i.name: i for i in load_file(MISBEHAVING)}
        order = [kernels["leaves_a_process_behind"], kernels["well_behaved"]]
        with shared(lambda kernel, runner: runner(kernel, inputs).reason, order, runner, 2) as results:
            assert next(iter(results)) == (order[1], None)
            assert comes_true(lambda: mark in processes())
    assert comes_true(lambda: mark not in processes())


def test_every_worker_has_a_child_of_its_own():
    """A runner whose child was there before the fork would read its siblings' answers."""
    (kernel,) = implementations(("sum",), ("pairwise",))
    cases = [row_case("sum", [[float(k), 1.0]]) for k in ITEMS]

    def total(item: int, runner: Runner) -> float:
        run: Run = runner(kernel, cases[item].inputs)
        return float(run.outputs[0][0])

    with Isolated() as runner:
        assert total(3, runner) == 4.0
        with shared(total, ITEMS, runner, 3) as results:
            assert dict(results) == {item: item + 1.0 for item in ITEMS}
        assert total(5, runner) == 6.0


def test_a_baseline_is_the_same_by_one_job_and_by_several(tmp_path: Path):
    chosen = ("gate", "--update", "--quick", "--op", "max", "--impl", "propagating")
    for jobs in ("1", "2"):
        assert main([*chosen, "--baseline", str(tmp_path / jobs), "--jobs", jobs]) == 0
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_jobs_have_to_be_a_number_of_them(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["report", "--jobs", "0"])
    assert ended.value.code == 2
    assert "'0' is not a whole number from 1 on" in capsys.readouterr().err
