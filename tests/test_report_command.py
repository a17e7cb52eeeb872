"""``trueulp report`` from end to end: every outcome is a row, and every row and line can be had again."""

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import ml_dtypes
import numpy as np
import pandas as pd
import pytest
from reporting import KERNELS, SMALL, read, report, run

from reports import __version__
from reports.cli import main
from reports.measurement import COLUMNS
from reports.write import FILES, PAGE

# What the kernels of the file come to on rows that are not hostile.
EXPECTED = {
    "right": "within the bound",
    "a|b [red]*`<i>": "within the bound",
    "without_mask": "within the bound",
    "narrow": "outside its domain",
    "never_so_short": "not supported",
    "known_zeros": "over the bound",
    "raises": "raised",
    "raises_unusual": "raised",
    "exits": "raised",
    "as_list": "wrong shape or dtype",
    "as_nothing": "wrong shape or dtype",
    "wider": "wrong shape or dtype",
    "as_column": "wrong shape or dtype",
    "writes_input": "wrote into its input",
    "all_nan": "special value wrong",
}
MINE = (*(word for name in EXPECTED for word in ("--impl", name.replace("[", "[[]"))), "--impls", KERNELS)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of every kernel on one case; what it prints is of no interest here."""
    folder = tmp_path_factory.mktemp("report")
    assert run("report", *SMALL, *MINE, "--out", folder) == 0
    return folder


def test_every_misbehaviour_is_a_row_and_every_other_row_survives(everything: Path):
    measured = read(everything)
    assert dict(zip(measured["impl"], measured["reason"], strict=True)) == EXPECTED
    assert set(measured["elements"]) == {8}
    assert (measured["worst_case"].str.startswith("sum:float32:absorbed:8x33:s0")).all()


def test_details_say_what_happened(everything: Path):
    details = read(everything).set_index("impl")["detail"]
    assert details["raises"] == "RuntimeError: two\nlines, a | and half a pair \\ud800"
    assert details["raises_unusual"] == "Unusual: bye"
    assert details["exits"] == "SystemExit: 0"
    assert details["as_nothing"] == "returned a NoneType, expected float32 (8,)"
    assert details["right"] == ""


def test_columns_and_files_are_those_promised(everything: Path):
    assert sorted(p.name for p in everything.iterdir()) == sorted((*FILES, PAGE))
    assert tuple(read(everything).columns) == COLUMNS
    assert read(everything, "summary.csv")["impl"].tolist() == sorted(EXPECTED)


def test_replay_lines_of_the_page_are_accepted(everything: Path, capsys: pytest.CaptureFixture[str]):
    page = (everything / "summary.md").read_text()
    told = r"^- sum (\S+) float32: ([^(\n]*)(?: \((.*)\))? in absorbed: `trueulp replay (\S+)`$"
    lines = re.findall(told, page, re.MULTILINE)
    failing = {name for name, reason in EXPECTED.items() if reason not in ("not supported", "outside its domain")}
    assert {name: reason for name, reason, _, _ in lines} == {
        name: EXPECTED[name] for name in failing if EXPECTED[name] != "within the bound"
    }
    assert {name: detail for name, _, detail, _ in lines}["raises_unusual"] == "Unusual: bye"
    for name, reason, _, case in lines:
        assert run("replay", case, "--impls", KERNELS, "--impl", name) == 0
        assert f"fail: {reason}" in capsys.readouterr().out


def test_the_environment_is_beside_the_numbers(everything: Path):
    told = json.loads((everything / "environment.json").read_text())
    assert told["trueulp"] == __version__
    assert told["python"] == sys.version.split()[0]
    assert told["packages"]["numpy"] == np.__version__
    assert told["transcendental_ground"] in ("proved", "mpmath")
    assert set(told["probes"].values()) <= {True, False}
    assert {"platform", "processor", "cores", "arithmetics"} <= set(told)


@pytest.mark.parametrize("name", [*FILES, PAGE])
def test_two_runs_give_the_same_bytes(everything: Path, tmp_path: Path, name: str):
    report(tmp_path, *SMALL, *MINE)
    assert (tmp_path / name).read_bytes() == (everything / name).read_bytes()


def test_a_process_of_its_own_gives_the_same_bytes(everything: Path, tmp_path: Path):
    command = [sys.executable, "-m", "reports.cli", "report", *SMALL, *MINE, "--out", "here"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Written to here: measurements.csv, summary.csv, summary.md, environment.json" in done.stdout
    for name in (*FILES[:3], PAGE):
        assert (tmp_path / "here" / name).read_bytes() == (everything / name).read_bytes()


def test_the_console_script_is_this_command():
    (script,) = entry_points(group="console_scripts", name="trueulp")
    assert script.load() is main


def test_what_is_known_to_be_faulty_is_no_news(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    report(tmp_path, *SMALL, *MINE)
    printed = capsys.readouterr().out
    assert "known_zeros (known faulty)" in printed
    assert "sum all_nan float32: special value wrong in absorbed (1 measurements)" in printed
    assert "sum known_zeros" not in printed
    assert "Not judged: 1 not supported, 1 outside its domain." in printed
    assert "15 measurements of 120 results: 3 pass, 10 fail." in printed


def test_a_seed_changes_the_inputs(tmp_path: Path):
    bits = {
        seed: report(tmp_path / seed, *SMALL, "--impl", "kahan", "--seed", seed)["input_bits"][0] for seed in "0123"
    }
    assert len(set(bits.values())) == 4


def test_a_file_brings_the_other_implementations_of_its_operator_along(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from gpu_impls import implementation\n"
        "@implementation('max', dtypes=('float16',))\n"
        "def mine(x, mask=None):\n    return x.max(axis=-1)\n"
    )
    measured = report(tmp_path / "out", "--impls", path, "--regime", "near_ties", "--dtype", "float16", "--quick")
    assert set(measured["op"]) == {"max"}
    assert {"mine", "propagating", "numpy"} <= set(measured["impl"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--op", "sum", "--op", "max", "--impl", "numpy*"), {"op": {"sum", "max"}}),
        (("--op", "sum", "--impl", "k*", "--impl", "pair*"), {"impl": {"kahan", "pairwise"}, "dtype": {"float32"}}),
        (("--impl", "kahan", "--dtype", "float64", "--dtype", "bfloat16"), {"dtype": {"float64", "bfloat16"}}),
        (("--impl", "kahan", "--regime", "near_ties"), {"regime": {"near_ties"}, "n": {33}}),
    ],
    ids=["operators and a glob", "two globs", "dtypes", "regime"],
)
def test_selections(tmp_path: Path, arguments: tuple[str, ...], expected: dict[str, set]):
    regime = () if "--regime" in arguments else ("--regime", "all_equal")
    measured = report(tmp_path, "--quick", *regime, *arguments)
    assert {column: set(measured[column]) for column in expected} == expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16, np.uint8, ml_dtypes.bfloat16])
def test_rows_of_a_file_are_measured(tmp_path: Path, dtype: type, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "rows.npz"
    np.savez(path, cube=np.arange(24).reshape(2, 3, 4).astype(dtype), line=np.arange(1, 6).astype(dtype))
    measured = report(tmp_path, "--op", "sum", "--impl", "kahan", "--quick", "--regime", "user_rows", "--data", path)
    assert measured[["regime", "n", "rows", "outcome"]].to_numpy().tolist() == [
        ["user_rows", 4, 6, "pass"],
        ["user_rows", 5, 1, "pass"],
    ]
    capsys.readouterr()
    assert run("replay", "sum:float32:user_rows:1x5:s0:block=line", "--impl", "kahan", "--data", path) == 0
    assert "got          15.0 (0x41700000)" in capsys.readouterr().out


def test_weight_and_bias_of_a_file_go_with_its_rows(tmp_path: Path):
    path = tmp_path / "rows.npz"
    np.savez(path, x=np.array([[1.0, 2, 3]]), other=np.ones((2, 2)), weight=np.full(3, 2.0), bias=np.zeros(3))
    measured = report(tmp_path, "--op", "rms_norm", "--impl", "plain", "--data", path, "--quick")
    cases = measured[measured["regime"] == "user_rows"]["worst_case"].str.partition("@")[0].tolist()
    assert cases == [
        "rms_norm:float32:user_rows:2x2:s0:eps=1e-06:block=other",
        "rms_norm:float32:user_rows:1x3:s0:weight:bias:eps=1e-06:block=x",
    ]


def test_user_rows_stand_beside_the_other_regimes_unless_one_is_asked_for(tmp_path: Path):
    path = tmp_path / "rows.npz"
    np.savez(path, x=np.ones((1, 3)))
    chosen = ("--op", "sum", "--impl", "kahan", "--quick", "--data", path)
    assert {"user_rows", "absorbed", "real_rows"} < set(report(tmp_path / "all", *chosen)["regime"])
    assert set(report(tmp_path / "one", *chosen, "--regime", "absorbed")["regime"]) == {"absorbed"}


def test_the_summary_adds_up(everything: Path):
    measured, summed = read(everything), read(everything, "summary.csv")
    assert summed["measurements"].sum() == len(measured)
    counts = summed[["fails", "passes", "not_judged"]].sum()
    assert counts.tolist() == [10, 3, 2]
    assert pd.api.types.is_float_dtype(summed["max_ulp"])
