"""``trueulp gate``: bad input, Ctrl-C, the user's rows, an incumbent, the default baseline."""

import re
from pathlib import Path

import numpy as np
import pytest
from gating import FEW, counted, edited, gate
from reporting import run

from gpu_impls.registry import implementations, isolated
from reports import run as running
from reports.gate.baseline import default_baseline, read_baseline
from reports.gate.rerun import of_numpy_and_scipy

PAIR = """
import numpy as np

from gpu_impls import implementation


@implementation("sum", dtypes=("float32",))
def any_length(x):
    y = x.sum(axis=-1)
    return y + 1 if x.shape[-1] < 33 else y


@implementation("sum", dtypes=("float32",), min_length=33)
def long_rows(x):
    return x.sum(axis=-1)
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    return edited(tmp_path, "unchanged")


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
        return as_before(*arguments)

    as_before = running.judged
    monkeypatch.setattr(running, "judged", interrupting)
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
    printed = capsys.readouterr().out  # three_pass promises a tree, the kernel any order
    assert "Bound used was not compared: its contract promises other bounds for softmax-[mine] *." in printed
    assert counted(printed) == {"same bits": 2}
    edited(kernel.parent, "half-precision exp")
    assert run(*duel, "three_pass", "--impl", "?mine*", "--impl", "two_pass", "--op", "softmax", "--op", "var") == 1
    assert "Not compared: three_pass is no incumbent for var-two_pass." in capsys.readouterr().out
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


def test_rows_that_an_incumbent_does_not_support_are_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Even where the candidate fails; where it is the candidate that does not support them, it is worse."""
    file = tmp_path / "mine.py"
    file.write_text(PAIR)
    duel = ("gate", "--in-process", "--quick", "--regime", "lengths", "--impls", file)
    assert run(*duel, "--impl", "any_length", "--no-worse-than", "long_rows") == 0
    printed = capsys.readouterr().out
    assert re.search(r"new: sum any_length \(\d+ float32 rows\)", printed)
    assert set(counted(printed)) == {"new", "same bits"}
    assert run(*duel, "--impl", "long_rows", "--no-worse-than", "any_length") == 1
    assert counted(printed := capsys.readouterr().out)["worse"] == 7
    assert "rows not judged 0 -> 2" in printed


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
