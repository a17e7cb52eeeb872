"""``trueulp gate`` from end to end: planted regressions are caught, reorderings and reruns are not."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from reporting import run

from gpu_impls.registry import implementations, isolated
from reports import run as running
from reports.baseline import default_baseline, read_baseline
from reports.rerun import of_numpy_and_scipy

KERNEL = """
import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import load, store
from gpu_impls.numpy.shifting import exponentials, nonzero, row_maximum
from gpu_impls.numpy.summation import pairwise_sum


@implementation("softmax", dtypes=("float32", "bfloat16"), name="[mine] *")
def mine(x, mask=None):
    values = load(x, mask, hidden=-np.inf)
    weights = exponentials(values, row_maximum(values))
    total = nonzero(pairwise_sum(weights))[:, None]
    return store(weights / total, like=x)
"""
EDITS = {
    "unchanged": ("", ""),
    "reordered": ("pairwise_sum(weights)", "pairwise_sum(weights[:, ::-1])"),
    "rounded once more": ("weights / total", "weights * (1 / total)"),
    "half-precision exp": ("row_maximum(values))", "row_maximum(values)).astype(np.float16).astype(values.dtype)"),
    "epsilon in the denominator": ("weights / total", "weights / (total + np.float32(2e-6))"),
    "raises": ("return", "raise RuntimeError\n    return"),
    "fewer dtypes": (', "bfloat16"', ","),
    "narrower domain": ('name="', 'domain=(1e-3, 1e3), name="'),
}
FEW = ("--regime", "near_ties", "--regime", "standard_normal")


def edited(folder: Path, edit: str) -> Path:
    file = folder / "mine.py"
    file.write_text(KERNEL.replace(*EDITS[edit]) if EDITS[edit][0] else KERNEL)
    return file


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    return edited(tmp_path, "unchanged")


def gate(kernel: Path, *arguments: object) -> int:
    return run("gate", "--in-process", "--impls", kernel, "--baseline", kernel.parent / "b.json", *arguments)


def counted(printed: str) -> dict[str, int]:
    """The last line's counts."""
    counts = re.findall(r"(\d+) ([a-z ]+)", printed.strip().splitlines()[-1].rpartition(": ")[2])
    return {verdict: int(number) for number, verdict in counts}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline of the unchanged kernel: all regimes, short rows."""
    file = edited(tmp_path_factory.mktemp("gate"), "unchanged")
    assert gate(file, "--update", "--quick") == 0
    return file.parent / "b.json"


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ("unchanged", 0),
        ("reordered", 0),
        ("rounded once more", 1),
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
    assert (counts.get("changed within", 0) > 10) == (edit in ("reordered",))
    if edit == "unchanged":
        assert set(counts) == {"same bits"}


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
    assert "new: softmax three_pass (2 rows)" in printed
    assert counted(printed) == {"missing": 1, "new": 2, "same bits": 1}
    assert gate(kernel, "--impl", "three_pass", "--update") == 0
    capsys.readouterr()
    absent = ("gate", "--in-process", "--baseline", kernel.parent / "b.json")
    assert run(*absent) == 0
    assert counted(capsys.readouterr().out) == {"not run here": 2, "same bits": 2}
    assert run(*absent, "--require-all") == 1
    assert run(*absent, "--dtype", "bfloat16", "--require-all") == 1
    assert run(*absent, "--impl", "three_pass", "--require-all") == 0


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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--seed", "1"), "was made with seed 0, quick: expected no --seed 1"),
        (("--dtype", "float16"), "dtype float16 is not in the baseline's plan: expected some of float32"),
        (("--regime", "absorbed"), "regime absorbed is not in the baseline's plan"),
        (("--op", "sum"), "nothing of"),
        (("--op", "some"), "unknown operator"),
        (("--impl", "none*"), "no implementation matches"),
        (("--impl", "three_pass"), "nothing was compared: no row of"),
        (("--tolerance", "much"), "cannot read --tolerance 'much'"),
        (("--data", "none.npz"), "no such file: none.npz"),
        (("--no-worse-than", "scipy"), "expected no --baseline"),
        (("--update", "--baseline", "/proc/b.json"), "cannot write baseline /proc/b.json"),
        (("--baseline", ""), "--baseline is empty"),
        (("--baseline", "/none.json"), "cannot read baseline /none.json"),
    ],
)
def test_bad_input_is_one_line(kernel: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str):
    gate(kernel, "--update", "--quick", "--regime", "near_ties")
    before = (kernel.parent / "b.json").read_bytes()
    capsys.readouterr()
    assert gate(kernel, *arguments) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert told in line
    assert printed.out.strip() == ""
    assert (kernel.parent / "b.json").read_bytes() == before


@pytest.mark.parametrize("update", [(), ("--update",)])
def test_an_unusable_baseline_is_left_alone(kernel: Path, update: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    (kernel.parent / "b.json").write_text("")
    assert gate(kernel, *update) == 2
    assert "unusable" in capsys.readouterr().err
    assert (kernel.parent / "b.json").read_text() == ""


@pytest.mark.parametrize("update", [(), ("--update",)])
def test_ctrl_c(
    kernel: Path, update: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Pressed in the 12th of many cases: finished rows are told, none is taken for missing or different."""
    gate(kernel, "--update", "--quick")
    before = (kernel.parent / "b.json").read_bytes()
    calls = []

    def interrupting(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return judged(*arguments)

    judged = running.verdict
    monkeypatch.setattr(running, "verdict", interrupting)
    capsys.readouterr()
    assert gate(edited(kernel.parent, "half-precision exp"), *update) == 130
    printed = capsys.readouterr()
    assert "Ended early" in printed.out
    counts = counted(printed.out.partition("Ended early")[0])
    assert set(counts) <= {"worse", "same bits", "changed within"}
    assert counts["worse"] > 3
    assert printed.err.splitlines() == ["trueulp: interrupted"]
    assert (kernel.parent / "b.json").read_bytes() == before


def test_user_rows_come_back_with_their_file(kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    np.savez(tmp_path / "rows.npz", mine=np.arange(12.0).reshape(3, 4))
    np.savez(tmp_path / "other.npz", mine=np.arange(12.0).reshape(3, 4) + 1)
    gate(kernel, "--update", "--quick", *FEW, "--regime", "user_rows", "--data", tmp_path / "rows.npz")
    assert gate(kernel, "--data", tmp_path / "rows.npz") == 0
    assert counted(capsys.readouterr().out) == {"same bits": 3}
    assert gate(kernel) == 0
    assert counted(capsys.readouterr().out) == {"not run here": 1, "same bits": 2}
    assert gate(kernel, "--data", tmp_path / "other.npz") == 2
    assert gate(kernel, "--regime", "user_rows") == 2
    assert "--data" in capsys.readouterr().err


def test_candidate_and_incumbent(kernel: Path, capsys: pytest.CaptureFixture[str]):
    duel = ("gate", "--in-process", "--quick", *FEW, "--impls", kernel, "--no-worse-than")
    assert run(*duel, "three_pass") == 0
    assert counted(capsys.readouterr().out) == {"same bits": 2}
    edited(kernel.parent, "half-precision exp")
    assert run(*duel, "three_pass") == 1
    ours = ("gate", "--in-process", "--quick", "--impl", "three_pass", "--no-worse-than", "unshifted")
    assert run(*ours, "--regime", "near_ties") == 0
    assert run(*ours, "--regime", "standard_normal") == 1  # rows about 0 need no shift, which rounds
    capsys.readouterr()
    for wrong, told in (
        (("nobody",), "no incumbent 'nobody' for softmax"),
        (("three_pass", "--update"), "no --update"),
    ):
        assert run(*duel, *wrong) == 2
        assert told in capsys.readouterr().err
    assert run("gate", "--no-worse-than", "three_pass") == 2
    assert "needs a candidate" in capsys.readouterr().err


def test_dtypes_that_a_candidate_does_not_take_are_not_run(kernel: Path, capsys: pytest.CaptureFixture[str]):
    duel = ("gate", "--in-process", "--quick", "--regime", "near_ties", "--impls", kernel, "--no-worse-than")
    dtypes = ("--dtype", "float32", "--dtype", "float16")
    assert run(*duel, "three_pass", *dtypes) == 0
    assert counted(capsys.readouterr().out) == {"not run here": 1, "same bits": 1}
    assert run(*duel, "three_pass", *dtypes, "--require-all") == 1


def test_the_default_baseline_is_numpys_and_scipys(kernel: Path, capsys: pytest.CaptureFixture[str]):
    with isolated():
        allowed = {(i.op, i.name) for i in implementations() if of_numpy_and_scipy(i)}
    assert {key[:2] for key in read_baseline(default_baseline()).rows} <= allowed
    before = default_baseline().read_bytes()
    assert run("gate", "--update", "--impls", kernel) == 2
    assert "for NumPy and SciPy, not softmax-[mine] *" in capsys.readouterr().err
    assert default_baseline().read_bytes() == before


def test_the_default_baseline_without_a_name(capsys: pytest.CaptureFixture[str]):
    """Bits depend on NumPy's version and the processor, inputs do not."""
    assert run("gate", "--in-process", "--op", "max", "--regime", "near_ties", "--regime", "absorbed") == 0
    counts = counted(capsys.readouterr().out)
    assert set(counts) <= {"same bits", "changed within"}
