"""Nobody reads what is printed: the work is done all the same, and the exit code says how it went."""

import subprocess
import sys
from pathlib import Path

import pytest

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
