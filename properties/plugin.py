"""The pytest plugin: options, and one parameter per (implementation, dtype).

conftest.py loads it in a checkout; from an installed wheel: ``pytest -p properties.plugin --pyargs properties``.
"""

from collections.abc import Iterator

import pytest

from gpu_impls.call import Runner, call
from gpu_impls.isolation import Isolated
from gpu_impls.registry import Implementation, implementations, load_file
from properties.declarations import check_declarations
from properties.laws import LAWS


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("trueulp", "implementations under test")
    group.addoption("--impls", action="append", default=[], metavar="FILE", help="also load implementations from FILE")
    group.addoption("--impl", action="append", default=[], metavar="GLOB", help="only implementations so named")
    group.addoption("--op", action="append", default=[], metavar="NAME", help="only this operator")
    group.addoption("--in-process", action="store_true", help="run kernels in this process: no deadline, for debugging")


@pytest.fixture(scope="session")
def runner(pytestconfig: pytest.Config) -> Iterator[Runner]:
    """Runs kernels in a child process, so that one that hangs or crashes is a failure like others."""
    if pytestconfig.getoption("--in-process"):
        yield call
        return
    with Isolated() as isolated:
        yield isolated


def selected(config: pytest.Config) -> list[Implementation]:
    """The implementations the options ask for; with --impls alone, those of the files."""
    ops, patterns = tuple(config.getoption("--op")), tuple(config.getoption("--impl"))
    try:
        files = [i for path in config.getoption("--impls") for i in load_file(path)]
        chosen = implementations(ops, patterns)
        check_declarations(chosen)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    return [i for i in chosen if i in files] if files and not patterns else chosen


def pairs(config: pytest.Config) -> Iterator[tuple[Implementation, str]]:
    for implementation in selected(config):
        for dtype in implementation.contract.dtypes:
            yield implementation, dtype


def pytest_sessionstart(session: pytest.Session) -> None:
    """Wrong options are refused in one line here; while tests are collected they would be errors of each module."""
    selected(session.config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``pair`` is every (implementation, dtype); ``law_case`` every law that such a pair claims."""
    if "pair" in metafunc.fixturenames:
        params = [pytest.param((i, d), id=f"{i.id}-{d}") for i, d in pairs(metafunc.config)]
        metafunc.parametrize("pair", params)
    if "law_case" in metafunc.fixturenames:
        claimed = [(law, i, d) for i, d in pairs(metafunc.config) for law in LAWS.values() if law.applies(i)]
        params = [pytest.param(c, id=f"{c[1].id}-{c[2]}-{c[0].name}") for c in claimed]
        metafunc.parametrize("law_case", params)
