"""The README's own words: its commands are those of CI, its kernel runs, its links lead somewhere."""

import re
import subprocess
from pathlib import Path

import pytest
from reporting import run

from reports.command_line import parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str = "") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_ci_takes_its_test_command_from_here():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    extraction = next(line for line in script.splitlines() if line.startswith("command=$("))
    told = subprocess.run(
        ["bash", "-c", f'{extraction}; echo "$command"'], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() in README
    assert re.search(r"pip install .* && pytest\b", told.stdout)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_to_files(link: str):
    assert (ROOT / link).exists()


def test_the_kernel_of_the_readme_runs_and_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Half-precision exponentials: over the bound by far."""
    file = tmp_path / "mine.py"
    file.write_text(blocks("python")[0], encoding="utf-8")
    chosen = ("--impls", file, "--impl", "half_exp", "--dtype", "float32", "--regime", "moderate_logits")
    assert run("report", *chosen, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert "softmax half_exp float32: over the bound in moderate_logits" in printed


@pytest.mark.parametrize("line", re.findall(r"^(?:\$ )?trueulp (.+?)(?:\s+#.*)?$", README, flags=re.MULTILINE))
def test_the_commands_of_the_readme_are_understood(line: str):
    assert parser().parse_args(line.split()).prepare
