"""Every block of the documentation runs: files are written, commands give the exit code and the words they promise."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ["kernel_in_ten_minutes.md"]
COMMAND = re.compile(r"\$ trueulp (?P<arguments>.*?)(?:\s+# exit (?P<code>\d))?$")


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, content) of every fenced block, in order."""
    return re.findall(r"```(\w+)\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def run_console(block: str, folder: Path) -> None:
    """One command, then words that it prints."""
    command, *promised = block.strip().splitlines()
    told = COMMAND.fullmatch(command)
    assert told, f"not a command of ours: {command}"
    done = subprocess.run(
        [sys.executable, "-m", "reports.cli", *shlex.split(told["arguments"])],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == int(told["code"] or 0), f"{command}\n{done.stdout}\n{done.stderr}"
    assert not [line for line in promised if line not in done.stdout], f"{command}\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page: str, tmp_path: Path):
    for language, content in blocks(page):
        if language == "python":
            name = content.partition("\n")[0].removeprefix("# ")
            (tmp_path / name).write_text(content, encoding="utf-8")
        else:
            assert language == "console"
            run_console(content, tmp_path)


def test_a_promise_that_is_not_kept_is_seen(tmp_path: Path):
    with pytest.raises(AssertionError, match="no such file"):
        run_console("$ trueulp check mine.py", tmp_path)
    with pytest.raises(AssertionError, match="trueulp --version"):
        run_console("$ trueulp --version\nword that it does not print", tmp_path)


def test_every_link_of_the_documentation_leads_somewhere():
    for page in DOCS.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
