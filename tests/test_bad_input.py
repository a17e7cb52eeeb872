"""Bad input: exit code 2 and one line that names the value and says what was expected, before anything is measured."""

import os
import signal
import stat
from pathlib import Path

import numpy as np
import pytest
from reporting import run

from reports.cli import main

HEAD = "from gpu_impls import implementation\n"
SUM = "sum:float32:standard_normal:8x33:s0"


@pytest.fixture(autouse=True)
def _nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("an implementation was run before the input was checked")

    for judging in ("run.judged", "replay.verdict"):
        monkeypatch.setattr(f"reports.{judging}", refuse)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a command that must be refused; gives the line."""
    monkeypatch.chdir(tmp_path)

    def refuse(*arguments: object) -> str:
        assert run(*arguments) == 2
        printed = capsys.readouterr()
        (line,) = printed.err.splitlines()
        assert (line.partition(" ")[0].rstrip(":"), printed.out.strip()) == ("trueulp", "")
        return line

    return refuse


SELECTION = {
    ("--op", "softmin"): "unknown operator 'softmin': expected one of sum, mean, ",
    ("--op", ""): "unknown operator '': expected one of sum, mean, ",
    ("--impl", "nobody"): "no implementation matches 'nobody': expected one of bfloat16_accumulator, ",
    ("--op", "max", "--impl", "kahan"): "no implementation matches 'kahan': expected one of by_comparison, ",
    ("--impls", "absent.py"): "no such file: absent.py (expected a Python file that uses @implementation)",
    ("--impls", "."): ". is a folder: expected a Python file that uses @implementation",
}
REPORT = {
    ("--dtype", "float8"): "unknown dtype 'float8': expected one of float16, bfloat16, float32, float64",
    ("--regime", "gaps"): "unknown regime 'gaps': expected one of standard_normal, ",
    ("--regime", "user_rows"): "regime user_rows needs rows: give an .npz file with --data",
    ("--op", "sum", "--regime", "gap"): "nothing to measure: no implementation selected takes these dtypes, regimes",
    ("--out", ""): "--out is empty: give a folder",
    ("--data", ""): "no such file",
    ("--data", "absent.npz"): "no such file: absent.npz (expected an .npz written by numpy.savez)",
    ("--data", "."): ". is not a readable .npz file (write it with numpy.savez)",
    **{("--seed", s): f"argument --seed: {s!r} is not a whole number from 0 on" for s in ("-1", "x", "1.5", "²", "")},
    ("--seed",): "argument --seed: expected one argument",
    ("--bogus",): "unrecognized arguments: --bogus",
}


@pytest.mark.parametrize("command", [("list",), ("report",), ("replay", SUM)], ids=lambda c: c[0])
@pytest.mark.parametrize(("arguments", "message"), SELECTION.items(), ids=map(" ".join, SELECTION))
def test_selections_that_do_not_exist(refused, command: tuple[str, ...], arguments: tuple[str, ...], message: str):
    assert message in refused(*command, *arguments)


@pytest.mark.parametrize(("arguments", "message"), REPORT.items(), ids=map(" ".join, REPORT))
def test_reports_that_cannot_be_made(refused, arguments: tuple[str, ...], message: str):
    assert message in refused("report", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("gauge",), "invalid choice: 'gauge' (choose from"),
        (("replay",), "the following arguments are required: CASE"),
        (("list", "extra"), "unrecognized arguments: extra"),
    ],
    ids=["no command", "unknown command", "no case", "one too many"],
)
def test_commands_that_do_not_exist(refused, arguments: tuple[str, ...], message: str):
    assert message in refused(*arguments)


FILES = {
    "x = = 1": "does not import: SyntaxError",
    "import no_such_module": "does not import: ModuleNotFoundError: No module named 'no_such_module'",
    "raise SystemExit(3)": "does not import: SystemExit: 3",
    "raise ValueError('two\\nlines')": "does not import: ValueError: two lines",
    "": "registers no implementation: decorate a function with @implementation(op, dtypes=...)",
    HEAD + "@implementation('sum', dtypes=('float32',))\ndef kahan(x): ...": "sum already has an implementation named",
    HEAD + "@implementation('sum', dtypes=('float8',))\ndef f(x): ...": "unknown dtype 'float8': expected one of",
    HEAD + "@implementation('softmin', dtypes=('float32',))\ndef f(x): ...": "unknown operator 'softmin'",
    HEAD + "@implementation('sum', dtypes=('float32',), sumation='x')\ndef f(x): ...": "unknown keyword sumation",
}


@pytest.mark.parametrize(("content", "message"), FILES.items(), ids=[v.split(":")[-1][:30] for v in FILES.values()])
def test_files_that_bring_nothing(refused, tmp_path: Path, content: str, message: str):
    path = tmp_path / "mine.py"
    path.write_text(content)
    line = refused("report", "--impls", path)
    assert str(path) in line
    assert message in line


@pytest.mark.parametrize("command", [("report", "--impls"), ("gate", "--impls"), ("check",)], ids=lambda c: c[0])
def test_a_file_whose_import_does_not_end(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("reports.commands.options.START_DEADLINE", 0.2)
    (tmp_path / "mine.py").write_text("while True:\n    pass\n")
    assert main([*command, str(tmp_path / "mine.py")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("mine.py does not import: TimeoutError: no end within 0.2 s")
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize("out", ["plain", "plain/below", "blocked"])
def test_folders_that_cannot_be_written(refused, tmp_path: Path, out: str):
    (tmp_path / "plain").touch()
    (tmp_path / "blocked" / "summary.csv").mkdir(parents=True)
    assert f"cannot write to --out {out}: " in refused("report", "--out", out)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_folder_of_somebody_else(refused, tmp_path: Path):
    (tmp_path / "theirs").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    assert "cannot write to --out theirs: Permission denied" in refused("report", "--out", "theirs")


ARRAYS = {
    "nothing": ({}, "holds no numeric array with rows (found nothing)"),
    "words": ({"a": np.array(["x"])}, "holds no numeric array with rows (found a: <U1 (1,))"),
    "objects": ({"a": np.array([{}], object)}, "is not a readable .npz file"),
    "one number": ({"a": np.array(3.0)}, "holds no numeric array with rows (found a: float64 ())"),
    "no rows": ({"a": np.ones((0, 3))}, "holds no numeric array with rows (found a: float64 (0, 3))"),
    "weight alone": ({"weight": np.ones(3)}, "holds no numeric array with rows (found weight: float64 (3,))"),
    "one name twice": ({"a b": np.ones(3), "a:b": np.ones(4)}, "holds two arrays that"),
}


@pytest.mark.parametrize(("arrays", "message"), ARRAYS.values(), ids=ARRAYS)
def test_archives_without_rows(refused, arrays: dict[str, np.ndarray], message: str):
    np.savez("rows.npz", **arrays)
    line = refused("report", "--data", "rows.npz")
    assert line.startswith("trueulp: rows.npz ")
    assert message in line


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04", b"\x80\x04."], ids=["empty", "text", "zip", "pickle"]
)
def test_files_that_are_no_archives(refused, tmp_path: Path, content: bytes):
    (tmp_path / "rows.npz").write_bytes(content)
    line = refused("report", "--data", "rows.npz")
    assert line.startswith("trueulp: rows.npz is not a readable .npz file (write it with numpy.savez): ")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "deflated"])
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.99])
def test_archives_that_were_cut_off(refused, tmp_path: Path, save, keep: float):
    save("rows.npz", a=np.arange(99.0))
    whole = (tmp_path / "rows.npz").read_bytes()
    (tmp_path / "rows.npz").write_bytes(whole[: int(keep * len(whole))])
    assert "rows.npz is not a readable .npz file" in refused("report", "--data", "rows.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "deflated"])
def test_archives_with_a_wrong_byte_are_read_or_refused(refused, tmp_path: Path, save):
    """Whatever byte it is; a few stand where nobody looks, and then it is --out that is refused."""
    save("rows.npz", a=np.arange(9.0))
    whole = (tmp_path / "rows.npz").read_bytes()
    for place in range(0, len(whole), 5):
        spoilt = bytearray(whole)
        spoilt[place] ^= 0xFF
        (tmp_path / "rows.npz").write_bytes(spoilt)
        line = refused("report", "--data", "rows.npz", "--regime", "user_rows", "--op", "sum", "--out", "rows.npz")
        assert "rows.npz" in line
