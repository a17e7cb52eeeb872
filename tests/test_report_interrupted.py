"""Ctrl-C in the middle of ``trueulp report``: what was measured until then is kept and written."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from reporting import KERNELS, read, run

from faulty import comes_true
from gpu_impls.registry import Implementation
from properties.case import Case
from properties.oracle_check import Verdict, judged
from reports.cli import _Interrupt
from reports.write import FILES, PAGE

# One case per regime: kernels run one after the other on each, in the order of the file.
SELECTION = ("--op", "sum", "--dtype", "float32", "--quick", "--impls", KERNELS)
REGIMES = ("--regime", "absorbed", "--regime", "near_ties", "--regime", "standard_normal")


def test_what_was_measured_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The third call of one kernel is interrupted, after two of it and three of the one before it."""
    chosen = ("--impl", "right", "--impl", "interrupted")
    assert run("report", *SELECTION, *REGIMES, *chosen, "--out", tmp_path) == 130
    measured = read(tmp_path)
    assert measured.groupby("impl").size().to_dict() == {"right": 3, "interrupted": 2}
    assert set(measured["outcome"]) == {"pass"}
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted((*FILES, PAGE))
    assert read(tmp_path, "summary.csv")["measurements"].tolist() == [2, 3]
    assert "Ended early: the tables hold what was measured until then." in capsys.readouterr().out


def test_kept_rows_are_those_of_a_whole_run(tmp_path: Path):
    chosen = ("--impl", "right", "--impl", "interrupted")
    run("report", *SELECTION, *REGIMES, *chosen, "--out", tmp_path / "part")
    run("report", *SELECTION, *REGIMES, "--impl", "right", "--out", tmp_path / "whole")
    part, whole = read(tmp_path / "part"), read(tmp_path / "whole")
    part = part[part["impl"] == "right"].reset_index(drop=True)
    assert part.to_dict() == whole.to_dict()


def test_an_interrupt_before_anything_was_measured_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reports.run.judged", interrupt)
    assert run("report", *SELECTION, *REGIMES, "--out", tmp_path) == 130
    assert list(tmp_path.iterdir()) == []
    printed = capsys.readouterr()
    assert (printed.out.strip(), printed.err) == ("", "trueulp: interrupted\n")


def test_an_interrupt_while_files_are_read_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "mine.py").write_text("raise KeyboardInterrupt")
    assert run("report", "--impls", tmp_path / "mine.py", "--out", tmp_path) == 130
    assert capsys.readouterr().err == "trueulp: interrupted\n"


def test_an_error_of_ours_loses_nothing_and_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail_on_the_last(implementation: Implementation, case: Case, *how: object) -> Verdict:
        if case.regime == "absorbed":
            raise ZeroDivisionError("a bug")
        return judged(implementation, case, *how)

    monkeypatch.setattr("reports.run.judged", fail_on_the_last)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run("report", *SELECTION, *REGIMES, "--impl", "right", "--out", tmp_path)
    assert len(read(tmp_path)) == 2


def test_an_interrupted_replay_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reports.replay.verdict", interrupt)
    assert run("replay", "sum:float32:absorbed:8x33:s0", "--impl", "kahan") == 130
    assert capsys.readouterr().err.splitlines() == ["trueulp: interrupted"]


# A shell may have started these tests with SIGINT ignored; Ctrl-C in a terminal finds Python's own handler.
PROGRAM = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from reports.cli import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.mark.skipif(os.name != "posix", reason="signals to another process are sent the POSIX way")
@pytest.mark.parametrize(
    ("jobs", "more", "fewest"), [(1, (), 2), (2, ("--regime", "all_equal", "--regime", "lengths"), 1)]
)
def test_a_real_signal(jobs: int, more: tuple[str, ...], fewest: int, tmp_path: Path):
    """A process's third call of the kernel lasts until the signal comes, twice, as timeout(1) sends it. What another
    gave on the same case is kept."""
    marker = tmp_path / "third call"
    arguments = ("report", *SELECTION, *REGIMES, *more, "--jobs", str(jobs), "--impl", "right", "--impl", "slow")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments, "--out", str(tmp_path / "out")],
        env={**os.environ, "TRUEULP_TEST_MARKER": str(marker)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        comes_true(lambda: marker.exists() or process.poll() is not None, seconds=30)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        printed, complaints = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, complaints) == (130, "trueulp: interrupted\n")
    assert "Ended early" in printed
    measured = read(tmp_path / "out").groupby("impl").size()
    assert fewest <= measured["slow"] <= 2 * jobs
    assert measured["slow"] < measured["right"] <= 3 * jobs


def test_of_two_signals_at_once_the_second_is_passed_over_and_a_later_one_is_heeded(monkeypatch: pytest.MonkeyPatch):
    interrupt = _Interrupt()
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    interrupt()
    monkeypatch.setattr(_Interrupt, "AT_ONCE", 0.0)
    with pytest.raises(KeyboardInterrupt):
        interrupt()


@pytest.mark.parametrize("library", ["rich", "numpy", "pandas", "hypothesis"])
def test_ctrl_c_while_libraries_are_imported(library: str, tmp_path: Path):
    (tmp_path / f"{library}.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, "list"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (told.returncode, told.stdout, told.stderr) == (130, "", "trueulp: interrupted\n")
