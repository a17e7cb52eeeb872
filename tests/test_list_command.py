"""``trueulp list``, ``--version`` and ``--help``: what there is, and what can be said about it."""

import pytest
from reporting import KERNELS, run

from gpu_impls import registry
from gpu_impls.registry import implementations
from reports import __version__

HEAD = ["operator", "implementation", "backend", "dtypes", "contract"]


def listed(rows: list[str]) -> list[tuple[str, ...]]:
    """(operator, implementation) of every row; folded lines and what is not here are none."""
    return [tuple(row.split()[:2]) for row in rows if not row.startswith(("   ", "not here:", "python-flint"))]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]):
    def listing(*arguments: str) -> list[str]:
        assert run(*arguments) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out.splitlines()

    return listing


def test_everything_that_can_run_is_listed(printed):
    head, *rows = printed("list")
    assert head.split() == HEAD
    assert listed(rows) == sorted((i.op, i.name) for i in implementations())


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("known_zeros", "known faulty: accuracy"),
        ("narrow", "domain 0.001 to 1000"),
        ("never_so_short", "n >= 100000"),
        ("right", "float32, float64, float16"),
        ("a|b [red]*`<i>", "float32"),
    ],
)
def test_contracts_and_odd_names_are_told(printed, name: str, claim: str):
    (row,) = (line for line in printed("list", "--op", "sum", "--impls", KERNELS) if f" {name} " in line)
    assert row.split()[0] == "sum"
    assert claim in row


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--op", "max"), {"max"}),
        (("--op", "max", "--op", "var"), {"max", "var"}),
        (("--impl", "kahan"), {"sum"}),
        (("--impls", KERNELS), {"sum"}),
    ],
    ids=["op", "ops", "impl", "file"],
)
def test_selections(printed, arguments: tuple[str, ...], expected: set[str]):
    _, *rows = printed("list", *arguments)
    assert {op for op, _ in listed(rows)} == expected


def test_what_is_not_here_says_how_to_get_it(printed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(registry.BUILT_IN, "gpu_impls.adapters.wanting", "no_such_library")
    assert printed("list")[-1] == (
        "not here: gpu_impls.adapters.wanting: no_such_library is not installed: pip install 'trueulp[no_such_library]'"
    )


def test_a_file_is_forgotten_after_the_command(printed):
    printed("list", "--impls", KERNELS)
    assert not any("known_zeros" in line for line in printed("list"))


def test_version(printed):
    assert printed("--version") == [f"trueulp {__version__}"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((), ["list", "report", "replay", "--version"]),
        (("list",), ["--op", "--impl", "--impls"]),
        (("report",), ["--op", "--impl", "--impls", "--dtype", "--regime", "--data", "--seed", "--quick", "--out"]),
        (("replay",), ["CASE", "--op", "--impl", "--impls", "--data"]),
    ],
    ids=["trueulp", "list", "report", "replay"],
)
def test_help(printed, command: tuple[str, ...], words: list[str]):
    text = "\n".join(printed(*command, "--help"))
    assert text.startswith(" ".join(("usage: trueulp", *command)))
    for word in words:
        assert word in text
