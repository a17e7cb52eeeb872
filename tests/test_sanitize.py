"""``trueulp sanitize`` without a GPU: what compute-sanitizer 2025.3.1 printed on an H200, and a program in its place
that prints likewise around a child that computes on the CPU. On a GPU: tests/test_sanitize_device.py."""

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faulty import registered
from gpu_impls.outcome import Outcome, Reason
from oracles.catalogue import operator_named
from properties.case import Case
from reports.cli import main
from reports.measurement import collect
from reports.sanitizer.log import BEGINS, ENDS, Log, read
from reports.sanitizer.run import sanitize
from reports.sanitizer.tools import Tool, command, program

MEMCHECK = """\
========= Invalid __global__ read of size 4 bytes
=========     at reads_past_its_end+0x340
=========     by thread (0,0,0) in block (1,0,0)
=========     Access to 0x7f02aa800008 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f02aa800000 of size 8 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: _hand_over in call.py:108
========= 
"""  # noqa: W291
RACECHECK = """\
========= Error: Race reported between Read access at missing_barrier+0xab0
=========     and Write access at missing_barrier+0x10b0 [12 hazards]
========= 
"""  # noqa: W291
INITCHECK = """\
========= Uninitialized __global__ memory read of size 4 bytes
=========     at adds_to_what_was_there+0x330
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f7262800200
========= 
"""  # noqa: W291
API_ERROR = """\
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call.
=========     Saved host backtrace up to driver entry point at error
========= 
"""  # noqa: W291
BANNER = "========= COMPUTE-SANITIZER\n"
SUMMARIES = {
    Tool.MEMCHECK: "========= ERROR SUMMARY: 18 errors\n",
    Tool.RACECHECK: "========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)\n",
}


def printed(*cases: tuple[str, str], summary: str = "========= ERROR SUMMARY: 0 errors\n") -> Log:
    """The log of cases that all ended."""
    within = "".join(f"{BEGINS}{case}\n{found}a line of the kernel's own\n{ENDS}{case}\t\n" for case, found in cases)
    return read((BANNER + within + summary).splitlines())


@pytest.mark.parametrize(
    ("found", "count", "told"),
    [
        (MEMCHECK, 1, "Invalid __global__ read of size 4 bytes at reads_past_its_end"),
        (RACECHECK, 1, "Error: Race reported between Read access at missing_barrier"),
        (INITCHECK, 1, "Uninitialized __global__ memory read of size 4 bytes at adds_to_what_was_there"),
        (MEMCHECK * 3, 3, "Invalid __global__ read of size 4 bytes at reads_past_its_end, and 2 more"),
    ],
    ids=["memcheck", "racecheck", "initcheck", "several"],
)
def test_findings_belong_to_the_case_that_had_begun(found: str, count: int, told: str):
    log = printed(("first", ""), ("second", found), ("third", ""))
    assert [case.count for case in log.cases.values()] == [0, count, 0]
    assert log.cases["second"].told == told
    assert log.last == "third"
    assert all(case.ended for case in log.cases.values())
    assert log.trouble == []


@pytest.mark.parametrize("summary", SUMMARIES.values(), ids=SUMMARIES)
def test_a_log_without_its_summary_is_no_log(summary: str):
    assert printed(("only", ""), summary=summary).trouble == []
    assert printed(("only", ""), summary="").trouble == ["it printed no summary"]


def test_errors_of_calls_are_no_findings():
    assert printed(("only", API_ERROR)).cases["only"].count == 0
    assert printed(("only", MEMCHECK + API_ERROR)).cases["only"].count == 1


def test_what_is_found_outside_of_all_cases_is_not_lost():
    log = read((BANNER + INITCHECK + SUMMARIES[Tool.MEMCHECK]).splitlines())
    assert log.trouble == ["Uninitialized __global__ memory read of size 4 bytes"]


def test_an_answer_of_the_child_is_kept():
    log = read([f"{BEGINS}only", f"{ENDS}only\traised: ValueError: no", "========= ERROR SUMMARY: 0 errors"])
    assert log.cases["only"].answer == "raised: ValueError: no"


FAKE = """#!{python}
import subprocess, sys, time
arguments = sys.argv[1:]
while arguments[0].startswith("--"):
    arguments = arguments[2:]
print("========= COMPUTE-SANITIZER", flush=True)
child = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
code = 0
for line in child.stdout:
    print(line, end="", flush=True)
    if line.startswith({begins!r}) and {at!r} in line:
{what}
print("========= ERROR SUMMARY: 0 errors", flush=True)
sys.exit(code or child.wait())
"""
FINDS = 'print("========= Invalid read\\n=========     at kernel+0x10\\n========= ", flush=True); code = 99'


def fake(folder: Path, what: str = "pass", at: str = "") -> str:
    """A program in the place of compute-sanitizer that does ``what`` when a case begins whose ID holds ``at``."""
    path = folder / "fake-sanitizer"
    path.write_text(FAKE.format(python=sys.executable, begins=BEGINS, at=at, what=f"        {what}"))
    path.chmod(0o755)
    return str(path)


CASES = [Case("softmax", "float32", "standard_normal", rows=3, n=n) for n in (1, 33, 64)]


def measured(path: str, tool: Tool = Tool.MEMCHECK, deadline: float = 60) -> list[Any]:
    return collect(sanitize(registered("softmax", "online"), CASES, tool, path, deadline))


def test_a_clean_run_passes_case_by_case(tmp_path: Path):
    found = measured(fake(tmp_path))
    assert [(m.n, m.regime, m.reason, m.outcome) for m in found] == [
        (n, "memcheck", str(Reason.CLEAN), Outcome.PASS) for n in (1, 33, 64)
    ]
    assert [m.worst_case for m in found] == [case.id for case in CASES]


@pytest.mark.parametrize("tool", Tool)
def test_a_finding_has_the_reason_of_its_tool(tmp_path: Path, tool: Tool):
    found = measured(fake(tmp_path, FINDS, at="3x33:"), tool)
    assert [m.reason for m in found] == [str(Reason.CLEAN), str(tool.reason), str(Reason.CLEAN)]
    assert found[1].outcome is Outcome.FAIL
    assert found[1].detail == "Invalid read at kernel"


def test_a_hang_is_a_finding_and_the_cases_after_it_were_not_run(tmp_path: Path):
    found = measured(fake(tmp_path, "time.sleep(600)", at="3x33:"), deadline=15)
    assert [m.reason for m in found] == [str(r) for r in (Reason.CLEAN, Reason.HUNG, Reason.NOT_RUN)]
    assert found[1].detail == "no answer within 15 s"
    assert found[2].detail == f"after {CASES[1].id}: no answer within 15 s"


def test_a_crash_is_the_case_that_had_begun(tmp_path: Path):
    crash = 'child.kill(); print("what it said last", flush=True); sys.exit(3)'
    found = measured(fake(tmp_path, crash, at="3x33:"))
    assert [m.reason for m in found] == [str(r) for r in (Reason.CLEAN, Reason.CRASHED, Reason.NOT_RUN)]
    assert found[1].detail == "its process ended with 3: what it said last"


def test_a_sanitizer_that_runs_nothing_finds_nothing_clean(tmp_path: Path):
    """The device it refuses, for one: no case begins, none passes."""
    path = tmp_path / "refuses"
    path.write_text("#!/bin/sh\necho '========= COMPUTE-SANITIZER'\necho '========= Error: Device not supported'\n")
    path.chmod(0o755)
    found = measured(str(path))
    assert {m.reason for m in found} == {str(Reason.CRASHED)}
    assert found[0].detail == "Error: Device not supported; it printed no summary"


def test_how_each_tool_is_called():
    assert command("/x", Tool.RACECHECK)[:3] == ["/x", "--tool", "racecheck"]
    assert "--destroy-on-device-error" in command("/x", Tool.MEMCHECK)
    assert len({tool.reason for tool in Tool}) == len(Tool)


def test_where_it_is_missing_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert main(["sanitize", "--impl", "online"]) == 2
    told = capsys.readouterr().err
    assert "compute-sanitizer is not on the PATH: it comes with NVIDIA's CUDA toolkit" in told
    assert told.count("\n") == 1
    with pytest.raises(ValueError, match="--sanitizer /nowhere: expected the path of a program"):
        program("/nowhere")


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.commands.sanitize._on_a_gpu", lambda implementation: True)


def sanitized(path: str, *more: str) -> int:
    return main(["sanitize", "--sanitizer", path, "--op", "softmax", "--dtype", "float32", "--tool", "memcheck", *more])


def test_implementations_that_run_on_no_gpu_are_refused(tmp_path: Path, capsys):
    assert sanitized(fake(tmp_path), "--impl", "online") == 2
    assert "no implementation selected runs on a CUDA device" in capsys.readouterr().err


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--deadline", "0"), "--deadline 0: expected a number of seconds above 0"),
        (("--impl", "online", "--length", "16777217"), "rows of 16777217 elements: expected at most 16,777,216"),
        (("--impl", "online", "--dtype", "float8_e4m3fn"), "unknown dtype 'float8_e4m3fn': expected one of float16"),
    ],
    ids=["deadline", "length", "dtype"],
)
def test_bad_options_are_refused_in_words(tmp_path: Path, options: tuple[str, ...], told: str, capsys):
    assert sanitized(fake(tmp_path), *options) == 2
    assert told in capsys.readouterr().err


def test_lengths_are_whole_numbers(tmp_path: Path, capsys):
    with pytest.raises(SystemExit) as ended:
        sanitized(fake(tmp_path), "--length", "-1")
    assert ended.value.code == 2
    assert "'-1' is not a whole number from 1 on" in capsys.readouterr().err


@pytest.mark.usefixtures("on_the_cpu")
def test_findings_are_told_written_and_end_with_1(tmp_path: Path, capsys):
    out = tmp_path / "out"
    assert sanitized(fake(tmp_path, FINDS, at="3x33:"), "--impl", "online", "--out", str(out)) == 1
    told = capsys.readouterr().out
    assert (
        "softmax-online float32 memcheck, n = 33: accesses memory that is not its own (Invalid read at kernel)" in told
    )
    table = pd.read_csv(out / "measurements.csv")
    assert table.groupby("n")["reason"].first()[33] == str(Reason.MEMORY)
    assert list(table["n"]) == [1, 33, 257, 1025]
    assert (out / "environment.json").exists()


@pytest.mark.usefixtures("on_the_cpu")
def test_clean_implementations_and_those_known_to_be_faulty_end_with_0(tmp_path: Path, capsys):
    assert sanitized(fake(tmp_path), "--impl", "online", "--length", "33") == 0
    assert "clean" in capsys.readouterr().out
    assert registered("softmax", "unshifted").contract.known_faulty
    assert sanitized(fake(tmp_path, FINDS), "--impl", "unshifted", "--length", "33") == 0
    assert "accesses memory that is not its own" in capsys.readouterr().out


@pytest.mark.usefixtures("on_the_cpu")
def test_norms_get_weight_and_bias(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[Case] = []

    def note(implementation: Any, cases: Any, *rest: Any) -> list[Any]:
        seen.extend(cases)
        return []

    monkeypatch.setattr("reports.commands.sanitize.sanitize", note)
    assert (
        main(
            [
                "sanitize",
                "--sanitizer",
                fake(tmp_path),
                "--op",
                "layer_norm",
                "--impl",
                "two_pass",
                "--dtype",
                "float32",
            ]
        )
        == 0
    )
    assert all(case.weight and case.bias for case in seen)
    assert {"weight", "bias"} <= set(operator_named("layer_norm").optional)
