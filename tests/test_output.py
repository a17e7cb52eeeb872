"""Nobody reads what is printed: the work is done all the same, and the exit code says how it went."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reporting import run

from reports import command_line
from reports.write import FILES

SMALL = "--quick --op max --impl propagating --regime near_ties"


def shell(command: str, folder: Path) -> int:
    """The exit code of the first process of a pipeline."""
    script = command.replace("trueulp", f"{sys.executable} -m reports.cli") + "; exit ${PIPESTATUS[0]}"
    told = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in told.stderr
    return told.returncode


@pytest.mark.parametrize("ending", ["| true", ">&-", "| head -1"], ids=["closed-pipe", "closed-output", "head"])
def test_a_report_that_nobody_reads_is_written(ending: str, tmp_path: Path):
    assert shell(f"trueulp report {SMALL} --out here {ending}", tmp_path) == 0
    assert {path.name for path in (tmp_path / "here").iterdir()} >= set(FILES)


def test_a_baseline_that_nobody_reads_about_is_written(tmp_path: Path):
    assert shell(f"trueulp gate {SMALL} --baseline b.json --update | true", tmp_path) == 0
    assert (tmp_path / "b.json").exists()


def test_a_baseline_in_no_folder_is_refused(tmp_path: Path):
    assert shell(f"trueulp gate {SMALL} --baseline nowhere/b.json --update", tmp_path) == 2
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "command",
    ["check {file}", "list --op max --impls {file}", "report {small} --impls {file} --out {folder}", "gate {duel}"],
    ids=lambda command: command.split()[0],
)
def test_nothing_is_cut_where_the_terminal_is_narrow(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    class Narrow(command_line.Output):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options | {"width": 60})

    monkeypatch.setattr(command_line, "Output", Narrow)
    file, name = tmp_path / "mine.py", "minus_four_or_more_as_its_long_name_says"
    file.write_text(
        "import numpy as np\nfrom gpu_impls import implementation\n"
        f"@implementation('max', dtypes=('float32', 'float64'))\ndef {name}(x):\n"
        "    return np.maximum(x.max(axis=-1, initial=-np.inf), x.dtype.type(-4))\n"
    )
    small = "--quick --op max --regime far_below_zero"
    duel = f"{small} --impls {file} --impl {name} --no-worse-than propagating"
    words = command.format(file=file, folder=tmp_path / "out", small=small, duel=duel).split()
    assert run(*words) in (0, 1)
    assert "\N{HORIZONTAL ELLIPSIS}" not in capsys.readouterr().out


def test_the_baseline_of_an_installed_package_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from reports.cli import main
    from reports.gate import against_baseline, baseline

    shipped = tmp_path / baseline.SHIPPED
    monkeypatch.setattr(against_baseline, "default_baseline", lambda: shipped)
    assert main(["gate", "--update", *SMALL.split()]) == 2
    assert "give --baseline FILE to --update" in capsys.readouterr().err
    assert not shipped.exists()
