"""``trueulp check``: what holds, what does not, with the shortest counterexample; and the exit code."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reporting import KERNELS, run

from properties.suite import Result, Status, check

HEAD = "import numpy as np\nfrom gpu_impls import implementation\n\n"
RIGHT = """
@implementation("max", dtypes=("float32",), {claims})
def mine(x, mask=None):
    shown = x if mask is None else np.where(mask, x, -np.inf).astype(x.dtype)
    return shown.max(axis=-1, initial=-np.inf)
"""
POSITIVE = """
@implementation("max", dtypes=("float32",), {claims})
def mine(x, mask=None):
    shown = x if mask is None else np.where(mask, x, -np.inf).astype(x.dtype)
    return np.maximum(shown.max(axis=-1, initial=-np.inf), np.float32(-4))
"""


def written(folder: Path, kernel: str, claims: str = "") -> Path:
    file = folder / "mine.py"
    file.write_text(HEAD + kernel.format(claims=claims), encoding="utf-8")
    return file


def statuses(printed: str) -> dict[str, int]:
    words = ("holds", "BROKEN", "not claimed", "GONE")
    return {word: len(re.findall(word, printed)) for word in words}


def test_a_right_kernel_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run("check", written(tmp_path, RIGHT)) == 0
    printed = capsys.readouterr().out
    assert "0 of 11 properties broken, 1 (implementation, dtype) pairs checked." in printed
    assert statuses(printed) == {"holds": 7, "BROKEN": 0, "not claimed": 4, "GONE": 0}


def test_a_faulty_one_is_told_with_the_shortest_counterexample(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """One element below -4 is the shortest row on which it shows."""
    file = written(tmp_path, POSITIVE)
    assert run("check", file) == 1
    printed = capsys.readouterr().out
    assert re.search(r"max-mine accuracy: over the bound", printed)
    assert re.search(rf"replay: trueulp replay max:float32:\w+:1x1:x=\w{{8}} --impl mine --impls {file}", printed)


def test_what_was_found_before_ctrl_c_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*arguments: Any) -> Iterator[Result]:
        for result in check(*arguments):
            yield result
            if result.status is Status.BROKEN:
                raise KeyboardInterrupt

    monkeypatch.setattr("reports.commands.check.check", interrupted)
    assert run("check", written(tmp_path, POSITIVE)) == 130
    printed = capsys.readouterr()
    assert "max-mine accuracy: over the bound" in printed.out
    assert "replay: trueulp replay max:float32:" in printed.out
    assert printed.err.splitlines() == ["trueulp: interrupted"]


def test_every_dtype_has_its_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    both = RIGHT.replace('("float32",)', '("float32", "float64")')
    assert run("check", written(tmp_path, both)) == 0
    name, head, first, *_ = capsys.readouterr().out.splitlines()
    assert name.strip() == "max-mine"
    assert head.split() == ["property", "float32", "float64"]
    assert first.split() == ["accuracy", "holds", "holds"]


def test_what_is_declared_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    declared = "deviates={'accuracy': 'never below -4', 'special_values': 'likewise'}"
    assert run("check", written(tmp_path, POSITIVE, declared)) == 0
    assert "declared: max-mine accuracy: never below -4" in capsys.readouterr().out


def test_a_declared_deviation_that_is_gone_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run("check", written(tmp_path, RIGHT, "deviates={'determinism': 'atomics'}")) == 1
    printed = capsys.readouterr().out
    assert statuses(printed)["GONE"] == 1
    assert "declared to fail, but holds: max-mine float32 determinism: atomics" in printed


@pytest.mark.parametrize(
    ("claims", "complaint"),
    [
        ("deviates={'acuracy': 'a slip'}", "max-mine: unknown 'acuracy' in deviates: expected some of accuracy, "),
        ("known_faulty={'gap': 'a regime'}", "max-mine: unknown 'gap' in known_faulty: expected some of accuracy, "),
    ],
    ids=["slip", "regime"],
)
def test_names_that_nothing_checks_are_refused(
    claims: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run("check", written(tmp_path, RIGHT, claims)) == 2
    assert complaint in capsys.readouterr().err


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run("check", tmp_path / "nowhere.py") == 2
    assert run("check", written(tmp_path, RIGHT), "--dtype", "float16") == 2
    assert run("check", KERNELS, "--dtype", "foo") == 2
    lines = capsys.readouterr().err.splitlines()
    assert [re.sub(r"/\S+/", "", line) for line in lines] == [
        "trueulp: no such file: nowhere.py (expected a Python file that uses @implementation)",
        "trueulp: nothing in mine.py takes float16: expected some of float32",
        "trueulp: nothing in kernels_for_reports.py takes foo: expected some of float16, float32, float64",
    ]


def test_from_any_directory_in_a_process_of_its_own(tmp_path: Path):
    file = written(tmp_path, RIGHT)
    command = [sys.executable, "-m", "reports.cli", "check", file.name]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert "0 of 11 properties broken" in told.stdout
