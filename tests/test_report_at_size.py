"""Reports of production size: blocks of rows in bounded memory, and ranges where nothing is evaluated twice."""

import csv
import weakref
from pathlib import Path

import pytest
from reporting import run
from rich.console import Console

from gpu_impls.call import Run, call
from gpu_impls.registry import implementations
from oracles.operator import Inputs
from properties import battery
from properties.battery import sized_cases
from reports.evidence import Evidence
from reports.plan import Plan
from reports.run import measure

SOFTMAX = ("--op", "softmax", "--impl", "three_pass", "--regime", "moderate_logits")


def report(folder: Path, *arguments: object) -> list[dict[str, str]]:
    assert run("report", "--in-process", *SOFTMAX, *arguments, "--out", folder) == 0
    with (folder / "measurements.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("rows", "n"), [(1, 7), (100, 30), (8, 1000), (3, 5000)])
def test_blocks_make_up_all_rows_and_none_is_larger_than_it_may(rows: int, n: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(battery, "BLOCK", 1000)
    cases = [case for case in sized_cases("softmax", "float32", (n,), rows, seed=2) if case.regime == "gap"]
    if n > 300:
        assert cases == []  # that regime has short rows
        cases = [c for c in sized_cases("softmax", "float32", (n,), rows, seed=2) if c.regime == "standard_normal"]
    assert sum(case.rows for case in cases) == rows
    assert all(case.rows == 1 or case.rows * case.n <= 1000 for case in cases)
    assert len({case.inputs.digest() for case in cases}) == len({case.id for case in cases}) == len(cases)


def test_a_report_of_one_size_measures_that_size_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(battery, "BLOCK", 1000)
    (row,) = report(tmp_path, "--dtype", "float32", "--length", "70", "--rows", "100")
    assert (row["n"], row["rows"], row["elements"]) == ("70", "100", "7000")
    assert "double_words" in row["arithmetic"]


def test_a_gpu_helps_unless_told_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr("reports.run.screened", lambda *given: asked.append(given))
    size = ("--dtype", "float32", "--length", "70", "--rows", "10")
    told = report(tmp_path, *size)
    assert len(asked) == 1
    assert report(tmp_path, *size, "--no-screening") == told
    assert len(asked) == 1


def test_cases_that_are_done_are_forgotten():
    """Or 8,192 rows of 8,192 would fill the memory."""
    seen: list[weakref.ref[Inputs]] = []

    def noticing(implementation: object, inputs: Inputs) -> Run:
        assert sum(reference() is not None for reference in seen) <= 1, "an earlier case is still there"
        seen.append(weakref.ref(inputs))
        return call(implementation, inputs)

    plan = Plan(tuple(implementations(("softmax",), ("three_pass",))), dtypes=("float32",), rows=4, at_size=True)
    made, ended_by = measure(plan, noticing, Console(quiet=True))
    assert ended_by is None
    assert len(seen) >= len(made) > 20


def test_stories_are_written_where_somebody_reads_them(monkeypatch: pytest.MonkeyPatch):
    """A gate reads none: they would be an extra evaluation of every worst element."""
    told: list[object] = []
    monkeypatch.setattr(Evidence, "note", lambda self, judged, made: told.append(judged))
    implementation = tuple(implementations(("softmax",), ("three_pass",)))
    plan = Plan(implementation, dtypes=("float32",), regimes=("near_ties",), rows=2, lengths=(33,), at_size=True)
    measure(plan, call, Console(quiet=True))
    assert told == []
    measure(plan, call, Console(quiet=True), Evidence())
    assert len(told) == 1


def test_without_escalation_misrounded_results_are_a_range_that_holds_their_number(tmp_path: Path):
    wanted = ("--dtype", "float64", "--length", "64", "--rows", "16")
    (quick,) = report(tmp_path / "quick", *wanted, "--no-escalation")
    (full,) = report(tmp_path / "full", *wanted)
    low, exact, also, high = (
        int(row[name])
        for row, name in (
            (quick, "misrounded"),
            (full, "misrounded"),
            (full, "misrounded_high"),
            (quick, "misrounded_high"),
        )
    )
    assert 0 <= low < exact == also < high <= 1024
    assert (quick["arithmetic"], full["arithmetic"]) == ("double_words", "double_words flint")
    assert float(quick["max_ulp"]) == pytest.approx(float(full["max_ulp"]), abs=2)


def test_what_is_evaluated_by_whom_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    report(tmp_path, "--length", "33")
    assert "Exact values by double_words (3), double_words and flint (1)." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value"), [("--length", "0"), ("--length", "-3"), ("--rows", "many"), ("--rows", "1.5")]
)
def test_sizes_that_are_none(option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run("report", *SOFTMAX, option, value, "--out", tmp_path) == 2
    assert f"argument {option}: {value!r} is not a whole number from 1 on" in capsys.readouterr().err


def test_rows_of_more_elements_than_memory_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run("report", *SOFTMAX, "--length", "99999999999", "--out", tmp_path) == 2
    assert "rows of 99999999999 elements: expected at most 16,777,216" in capsys.readouterr().err
