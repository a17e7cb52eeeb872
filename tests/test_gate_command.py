"""``trueulp gate`` from end to end: planted regressions are caught, reorderings and reruns are not."""

import json
import re
from pathlib import Path

import pytest
from gating import FEW, counted, edited, gate
from reporting import run

from reports.gate.baseline import read_baseline


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    return edited(tmp_path, "unchanged")


@pytest.fixture(scope="module", params=[0, 4])
def made(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A baseline of the unchanged kernel: all regimes, short rows, of two draws."""
    file = edited(tmp_path_factory.mktemp("gate"), "unchanged")
    both = ("--dtype", "float32", "--dtype", "bfloat16")
    assert gate(file, "--update", "--quick", *both, "--seed", request.param) == 0
    return file.parent / "b.json"


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ("unchanged", 0),
        ("reordered", 0),
        ("rolled", 0),
        ("rounded once more", 1),
        ("exp by exp2", 1),
        ("half-precision exp", 1),
        ("epsilon in the denominator", 1),
        ("narrower domain", 1),
        ("raises", 1),
    ],
)
def test_edits(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: str, code: int):
    (tmp_path / "b.json").write_bytes(made.read_bytes())
    assert gate(edited(tmp_path, edit)) == code
    counts = counted(capsys.readouterr().out)
    assert bool(counts.get("worse")) == bool(code)
    if code == 0 and edit != "unchanged":
        assert counts["changed within"] > 10
    if edit == "unchanged":
        assert set(counts) == {"same bits"}


def test_where_no_scatter_is_forgiven_a_reordering_is_worse_too(made: Path, tmp_path: Path):
    (tmp_path / "b.json").write_bytes(made.read_bytes())
    assert gate(edited(tmp_path, "reordered"), "--tolerance", "scatter=0") == 1


def test_twenty_reruns_raise_nothing(kernel: Path, capsys: pytest.CaptureFixture[str]):
    """In child processes too, as it is by default."""
    assert gate(kernel, "--update", "--quick", *FEW, "--impl", "*") == 0
    for number in range(20):
        capsys.readouterr()
        in_process = ("--in-process",) if number % 10 else ()
        assert run("gate", *in_process, "--impls", kernel, "--baseline", kernel.parent / "b.json") == 0
        assert set(counted(capsys.readouterr().out)) == {"same bits"}


def test_what_moved_is_told_with_lines_that_can_be_run(kernel: Path, capsys: pytest.CaptureFixture[str]):
    gate(kernel, "--update", "--quick", *FEW)
    capsys.readouterr()
    assert gate(edited(kernel.parent, "half-precision exp")) == 1
    printed = capsys.readouterr().out
    assert re.search(r"1 +worse +softmax +\[mine\] \* +float32 +y .*within the bound -> over the bound", printed)
    (line, *_) = re.findall(r"^ +1  trueulp (replay .*)$", printed, re.MULTILINE)
    case, rest = re.fullmatch(r"replay (\S+) --impl '(\S+ \S+)' --impls \S+", line).groups()
    assert run("replay", case, "--impl", rest, "--impls", kernel) == 0
    assert "over the bound" in capsys.readouterr().out


def test_missing_new_and_not_run(kernel: Path, capsys: pytest.CaptureFixture[str]):
    few = ("--regime", "near_ties")
    assert gate(kernel, "--update", "--dtype", "float32", "--dtype", "bfloat16", "--quick", *few) == 0
    assert gate(edited(kernel.parent, "fewer dtypes")) == 1
    assert counted(capsys.readouterr().out) == {"missing": 1, "same bits": 1}
    assert gate(kernel, "--impl", "three_pass", "--impl", "?mine*") == 1
    printed = capsys.readouterr().out
    assert "new: softmax three_pass (1 bfloat16, 1 float32 rows)" in printed
    assert counted(printed) == {"missing": 1, "new": 2, "same bits": 1}
    assert gate(kernel, "--impl", "three_pass", "--update") == 0
    capsys.readouterr()
    absent = ("gate", "--in-process", "--baseline", kernel.parent / "b.json")
    assert run(*absent) == 0
    printed = capsys.readouterr().out
    assert "not run here: softmax [mine] * (1 bfloat16, 1 float32 rows)" in printed
    assert counted(printed) == {"not run here": 2, "same bits": 2}
    assert run(*absent, "--require-all") == 1
    assert run(*absent, "--dtype", "bfloat16", "--require-all") == 1
    assert run(*absent, "--impl", "three_pass", "--require-all") == 0


def test_rows_that_fail_as_they_did_are_counted_and_pass(kernel: Path, capsys: pytest.CaptureFixture[str]):
    assert gate(edited(kernel.parent, "half-precision exp"), "--update", "--quick", *FEW) == 0
    assert "Failing then and now" not in capsys.readouterr().out
    assert gate(kernel.parent / "mine.py") == 0
    *_, failing, last = capsys.readouterr().out.splitlines()
    assert failing == "Failing then and now: 2 rows"
    assert counted(last) == {"same bits": 2}
    assert gate(edited(kernel.parent, "unchanged")) == 0
    assert "Failing then and now" not in capsys.readouterr().out


def test_an_update_keeps_what_was_not_run_and_what_was_filtered_out(kernel: Path):
    file = kernel.parent / "b.json"
    gate(kernel, "--update", "--quick", *FEW)
    run("gate", "--in-process", "--update", "--baseline", file, "--impl", "three_pass", "--regime", "near_ties")
    before = read_baseline(file).rows
    assert len(before) == 3
    gate(edited(kernel.parent, "half-precision exp"), "--update", "--regime", "near_ties")
    after = read_baseline(file).rows
    changed = [key for key in before if before[key] != after[key]]
    assert [(key[1], key[4]) for key in changed] == [("[mine] *", "near_ties")]
    assert gate(kernel, "--regime", "near_ties") == 0
    assert gate(kernel) == 1
    gate(edited(kernel.parent, "unchanged"), "--update")
    restored = read_baseline(file).rows
    assert {key: restored[key] for key in before} == before


def test_an_update_drops_what_did_not_come_out(kernel: Path):
    gate(kernel, "--update", "--quick", "--dtype", "float32", "--dtype", "bfloat16", "--regime", "near_ties")
    gate(edited(kernel.parent, "fewer dtypes"), "--update")
    assert {key[2] for key in read_baseline(kernel.parent / "b.json").rows} == {"float32"}


def test_other_inputs(kernel: Path, capsys: pytest.CaptureFixture[str]):
    gate(kernel, "--update", "--quick", *FEW)
    file = kernel.parent / "b.json"
    document = json.loads(file.read_text())
    document["rows"][1]["input_bits"] = "0" * 16
    file.write_text(json.dumps(document))
    capsys.readouterr()
    assert gate(kernel) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "made from other inputs: softmax [mine] * float32 y standard_normal n=33, 1 rows in all" in line
    assert gate(kernel, "--update") == 0
    assert gate(kernel) == 0
