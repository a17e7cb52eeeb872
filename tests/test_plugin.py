"""The pytest plugin: its options in this process, and a whole run of an installed copy from an empty folder."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_impls.registry import implementations, isolated
from oracles.catalogue import OPERATORS
from properties.laws import LAWS

pytest_plugins = ["pytester"]

HERE = Path(__file__).parents[1]
SUITE = ("-p", "properties.plugin", "--pyargs", "properties", "-p", "no:cacheprovider", "-q")

MINE = '''
import numpy as np
from gpu_impls import implementation

@implementation("max", dtypes=("float32", "bfloat16"))
def mine(x, mask=None):
    """Right."""
    shown = x if mask is None else np.where(mask, x, np.array(-np.inf, x.dtype))
    return np.max(shown, axis=-1, initial=-np.inf)

@implementation("sum", dtypes=("float32",), contiguous_only=True)
def off_by_a_thousandth(x, mask=None):
    """Wrong at once."""
    shown = x if mask is None else np.where(mask, x, np.float32(0))
    return np.sum(shown, axis=-1, dtype=np.float32) * np.float32(1.001)
'''


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def mine(tmp_path: Path) -> str:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return str(file)


Collect = Callable[..., list[str]]


@pytest.fixture
def collect(pytester: pytest.Pytester) -> Collect:
    """The ids in brackets that a collection with these options gives."""

    def collected(*options: str) -> list[str]:
        result = pytester.runpytest_inprocess(*SUITE, "--collect-only", *options)
        assert result.ret in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), result.outlines
        return [line.partition("[")[2].rstrip("]") for line in result.outlines if "[" in line]

    return collected


def test_ids_hold_operator_implementation_and_format(collect: Collect):
    ids = collect("--op", "softmax", "--impl", "online")
    formats = ("float32", "float16", "bfloat16", "float64")
    laws = ("determinism", "batch_invariance", "inputs_untouched", "strides", "output_range")
    assert sorted(ids) == sorted(
        [f"softmax-online-{f}" for f in formats] + [f"softmax-online-{f}-{law}" for f in formats for law in laws]
    )


def test_without_options_everything_is_there(collect: Collect):
    pairs = [f"{i.id}-{dtype}" for i in implementations() for dtype in i.contract.dtypes]
    ids = collect()
    assert [i for i in ids if not i.endswith(tuple(LAWS))] == pairs
    assert len(set(ids)) == len(ids)


CHOSEN = {
    "an-operator": (("--op", "max"), {i.id for i in implementations(("max",))}),
    "two-operators": (("--op", "max", "--op", "var", "--impl", "[bo]*"), {"max-by_comparison", "var-one_pass"}),
    "a-glob": (("--impl", "welford*"), {"layer_norm-welford", "layer_norm-welford_warp_tree"}),
    "a-file": (("--impls", "FILE"), {"max-mine", "sum-off_by_a_thousandth"}),
    "a-file-and-an-operator": (("--impls", "FILE", "--op", "max"), {"max-mine"}),
    "a-file-and-globs": (("--impls", "FILE", "--impl", "mine", "--impl", "kahan"), {"max-mine", "sum-kahan"}),
}


@pytest.mark.parametrize(("options", "expected"), CHOSEN.values(), ids=CHOSEN)
def test_options_choose(collect: Collect, mine: str, options: tuple[str, ...], expected: set[str]):
    ids = collect(*(mine if o == "FILE" else o for o in options), "-k", "test_oracle")
    assert {i.rpartition("-")[0] for i in ids} == expected


def test_two_files_may_be_given(collect: Collect, mine: str, tmp_path: Path):
    other = tmp_path / "other.py"
    other.write_text(MINE.replace("def mine", "def yours").replace("off_by_a_thousandth", "another"))
    ids = collect("--impls", mine, "--impls", str(other), "--op", "max", "-k", "test_oracle")
    assert ids == ["max-mine-float32", "max-mine-bfloat16", "max-yours-float32", "max-yours-bfloat16"]


WRONG = {
    "operator": (("--op", "softmin"), f"unknown operator 'softmin': expected one of {', '.join(OPERATORS)}"),
    "glob": (("--op", "max", "--impl", "min*"), "no implementation matches 'min*': expected one of by_comparison, "),
    "no-file": (("--impls", "absent.py"), "no such file: absent.py (expected a Python file"),
    "broken-file": (("--impls", "BROKEN"), "does not import: ZeroDivisionError: division by zero"),
    "empty-file": (("--impls", "EMPTY"), "registers no implementation: decorate a function"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_usage_errors(pytester: pytest.Pytester, options: tuple[str, ...], message: str):
    for name, text in (("BROKEN", "1 / 0\n"), ("EMPTY", "")):
        pytester.path.joinpath(name).write_text(text)
    result = pytester.runpytest_inprocess(*SUITE, "--collect-only", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = filter(None, result.errlines)
    assert message in line


def test_the_options_are_explained(pytester: pytest.Pytester):
    text = pytester.runpytest_inprocess(*SUITE, "--help").stdout.str()
    assert all(option in text for option in ("--impls=FILE", "--impl=GLOB", "--op=NAME"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel puts into site-packages: the four packages side by side, nothing else."""
    site = tmp_path_factory.mktemp("site")
    settings = tomllib.loads((HERE / "pyproject.toml").read_text())
    for package in settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        shutil.copytree(HERE / package, site / package, ignore=shutil.ignore_patterns("__pycache__"))
    return site


@pytest.fixture(scope="module")
def whole_run(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """``python -m pytest`` with a file of two implementations, from a folder that holds nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "mine.py").write_text(MINE)
    command = [sys.executable, "-m", "pytest", *SUITE[:-1], "--impls", "mine.py", "-rA"]
    settings = {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | settings
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    return done.stdout


def test_an_installed_copy_finds_the_right_one_right_and_the_wrong_one_wrong(whole_run: str, installed: Path):
    failed = [line for line in whole_run.splitlines() if line.startswith("FAILED")]
    assert [line.partition("[")[2].partition("]")[0] for line in failed] == ["sum-off_by_a_thousandth-float32"]
    passed = [line for line in whole_run.splitlines() if line.startswith("PASSED")]
    laws = {"determinism", "batch_invariance", "inputs_untouched"}
    assert len(passed) == 2 * (1 + len(laws | {"strides"})) + len(laws)
    assert f"{installed.name}/properties/test_oracle.py" in whole_run, whole_run


LINES = {
    "operator": r"operator   sum, implementation off_by_a_thousandth, float32",
    "case": r"case       sum:float32:standard_normal:8x3:s0, element \[\d\]",
    "input": r"x          -?\d\.\d+",
    "input bits": r"x bits     [0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{8}",
    "got": r"got        -?\d\.\d+ \(0x[0-9a-f]{8}\)",
    "expected": r"expected   -?\d\.\d+ \(0x[0-9a-f]{8}\), correctly rounded \(proved\)",
    "exact": r"exact      -?\d\.\d+",
    "error": r"error      \S+ ULP \(\S+ ULP of the row's largest output\)",
    "bound": r"allowed    \S+ absolute \(bound \S+ before storage\), \S+ of it used",
    "condition": r"condition  \d+",
    "verdict": r"verdict    fail: over the bound",
    "replay": r"replay: trueulp replay sum:float32:standard_normal:8x3:s0",
}


@pytest.mark.parametrize("pattern", LINES.values(), ids=LINES)
def test_a_failure_tells_the_whole_story(whole_run: str, pattern: str):
    pytest.LineMatcher(whole_run.splitlines()).re_match_lines_random([rf"(E|>)?\s*{pattern}.*"])


def test_a_failure_shows_no_frame_of_the_harness(whole_run: str):
    assert "finding.py" not in whole_run
