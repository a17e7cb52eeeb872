"""Isolation: a kernel that hangs, crashes or takes its process down costs its own verdict and nothing else."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from reporting import read

from faulty import comes_true, processes, row_case
from gpu_impls.call import Run
from gpu_impls.isolation import PATIENCE, Child, Isolated, signal_name
from gpu_impls.outcome import Outcome, Reason
from gpu_impls.registry import Implementation, implementations, isolated, load_file
from oracles.formats import Array
from properties.case import Case
from properties.layouts import LAYOUTS
from properties.oracle_check import verdict
from reports.cli import main

KERNELS = str(Path(__file__).with_name("misbehaving_kernels.py"))
CASE = row_case("sum", [[1.0, 2.0], [3.0, 4.0]])
GIB = 2**30


@pytest.fixture
def kernels() -> Iterator[dict[str, Implementation]]:
    with isolated():
        yield {i.name: i for i in load_file(KERNELS)}


@pytest.fixture
def runner() -> Iterator[Isolated]:
    with Isolated(deadline=3.0, memory=GIB) as made:
        yield made


HUNG, CRASHED = Reason.HUNG, Reason.CRASHED

ENDINGS = {
    "spins": (HUNG, "no answer within 3 s"),
    "sleeps_deaf_to_signals": (HUNG, "no answer within 3 s"),
    "exits": (CRASHED, "exited with code 3"),
    "segfaults": (CRASHED, "killed by SIGSEGV"),
    "aborts": (CRASHED, "killed by SIGABRT"),
    "exhausts_memory": (CRASHED, "more than 1.0 GiB of memory"),
    "closes_file_descriptors": (CRASHED, "its process"),
    "leaves_by_system_exit": (Reason.RAISED, "SystemExit: 5"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_every_ending_is_told_and_the_next_call_works(name: str, kernels: dict[str, Implementation], runner: Isolated):
    reason, detail = ENDINGS[name]
    runner.deadline = 60.0 if name == "exhausts_memory" else 3.0
    run = runner(kernels[name], CASE.inputs)
    assert run.reason is reason
    assert detail in run.detail
    assert runner(kernels["well_behaved"], CASE.inputs).outputs[0].tolist() == [3.0, 7.0]


@pytest.mark.parametrize("name", ["forks", "prints_gigabytes"])
def test_what_harms_nobody_is_no_failure(name: str, kernels: dict[str, Implementation], runner: Isolated):
    runner.deadline = 60.0
    for _ in range(2):
        assert runner(kernels[name], CASE.inputs).outputs[0].tolist() == [3.0, 7.0]


def test_a_process_that_a_kernel_started_dies_with_it(
    kernels: dict[str, Implementation], runner: Isolated, monkeypatch: pytest.MonkeyPatch
):
    mark = f"left-behind-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("LEFT_BEHIND", mark)
    assert runner(kernels["leaves_a_process_behind"], CASE.inputs).reason is HUNG
    assert mark not in processes()


ENDED_WITHIN_A_CALL = """
import os, signal, sys, threading

from faulty import row_case
from gpu_impls.isolation import Isolated
from gpu_impls.registry import load_file

kernels = {i.name: i for i in load_file(sys.argv[1])}
inputs = row_case("sum", [[1.0]]).inputs
with Isolated() as runner:
    runner(kernels["well_behaved"], inputs)
    print(runner._child._process.pid, flush=True)
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGKILL)).start()
    runner(kernels["sleeps_deaf_to_signals"], inputs)
"""


def test_a_kernel_does_not_outlive_whoever_waits_for_it():
    command = [sys.executable, "-c", ENDED_WITHIN_A_CALL, KERNELS]
    paths = os.pathsep.join(filter(None, (str(Path(__file__).parent), *sys.path)))
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert comes_true(lambda: not alive(int(ended.stdout)), seconds=10)


def test_a_runner_serves_other_threads_too(kernels: dict[str, Implementation], runner: Isolated):
    def ask() -> None:
        assert runner(kernels["well_behaved"], CASE.inputs).reason is None

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    time.sleep(1)
    ask()


def alive(pid: int) -> bool:
    """A zombie, which nobody may wait for in a container, is not."""
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def test_an_implementation_that_keeps_failing_is_not_run_again(kernels: dict[str, Implementation], runner: Isolated):
    reasons = [runner(kernels["exits"], CASE.inputs).reason for _ in range(PATIENCE + 2)]
    assert reasons == [CRASHED] * PATIENCE + [Reason.NOT_RUN] * 2
    assert Reason.NOT_RUN.outcome is Outcome.NOT_JUDGED
    assert runner(kernels["well_behaved"], CASE.inputs).reason is None


def test_layouts_and_buffers_reach_the_child(runner: Isolated):
    (three_pass,) = implementations(("softmax",), ("three_pass",))
    case = Case("softmax", "bfloat16", "standard_normal", rows=3, n=40)
    for how in ({"arrange": LAYOUTS["reversed"]}, {"with_out": True}):
        assert not verdict(three_pass, case, runner, **how).findings()


def test_bits_are_those_of_a_call_in_this_process(runner: Isolated):
    for dtype in ("bfloat16", "float64"):
        for implementation in implementations(("softmax",), ("online*", "three_pass")):
            case = Case("softmax", dtype, "specials", rows=30, n=17)
            inside, outside = (verdict(implementation, case, *how).run.outputs[0] for how in ((), (runner,)))
            assert case.fmt.bits(inside).tolist() == case.fmt.bits(outside).tolist()


def test_what_a_child_cannot_find_runs_here(runner: Isolated):
    def local(x: Array) -> Array:
        return np.full(len(x), os.getpid(), x.dtype)

    made = Implementation("sum", "local", local, implementations(("sum",), ("kahan",))[0].contract)
    assert runner(made, CASE.inputs).outputs[0].tolist() == [os.getpid()] * 2


def test_a_file_that_no_longer_loads_is_told(tmp_path: Path, runner: Isolated):
    file = tmp_path / "gone.py"
    file.write_text(Path(KERNELS).read_text(encoding="utf-8"), encoding="utf-8")
    with isolated():
        (kernel,) = [i for i in load_file(str(file)) if i.name == "well_behaved"]
    file.unlink()
    run = runner(kernel, CASE.inputs)
    assert run.reason is Reason.RAISED
    assert "no such file" in run.detail


def test_an_answer_that_is_none_is_a_crash():
    child = Child()
    try:
        run = child.ask(("nonsense",), 20.0, GIB)
    finally:
        child.kill()
    assert run.reason is CRASHED
    assert run.outputs == Run().outputs


def test_signals_have_names():
    assert (signal_name(11), signal_name(250)) == ("SIGSEGV", "signal 250")


def test_a_report_loses_nothing(tmp_path: Path):
    """One kernel crashes on one case, which is named; every other measurement is there."""
    chosen = ("--impls", KERNELS, "--impl", "well_behaved", "--impl", "crashes_at_length_64", "--dtype", "float32")
    with isolated():
        assert main(["report", *chosen, "--regime", "lengths", "--out", str(tmp_path)]) == 0
    measured = read(tmp_path)
    failed = measured[measured["outcome"] == "fail"]
    assert failed[["impl", "n", "reason", "worst_case"]].to_numpy().tolist() == [
        ["crashes_at_length_64", 64, str(CRASHED), "sum:float32:lengths:2x64:s0"]
    ]
    assert measured.groupby("impl").size().nunique() == 1
