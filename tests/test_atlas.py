"""The atlas: every cell of the plan is there, what was not run is said, and several jobs give the same files as one."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from reporting import run
from rich.console import Console

from faulty import made, total
from gpu_impls.call import call
from gpu_impls.registry import isolated
from reports.atlas import NOT_RUN, all_bits, cells, lines, write_atlas
from reports.cli import main
from reports.environment import environment
from reports.plan import Plan
from reports.run import measure
from reports.tables import table


class Alternating:
    """A sum that is one ULP off every other time."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x, mask=None):
        self.calls += 1
        return total(x, mask) * (1 + 2.0**-23 * (self.calls % 2))


def by_batch(x, mask=None):
    """Adds from the right in batches of more than 100 rows."""
    return total(x[:, ::-1] if len(x) > 100 else x, None if mask is None else mask[:, ::-1])


def doubled(x, mask=None):
    return 2 * total(x, mask)


KERNELS = {f.__name__: f for f in (total, by_batch, doubled)}
PLAN = Plan(
    (*(made("sum", f, name=name) for name, f in KERNELS.items()), made("sum", Alternating(), name="alternating")),
    dtypes=("float32",),
    regimes=("standard_normal", "all_equal"),
    lengths=(33,),
)


@pytest.fixture(scope="module")
def whole() -> pd.DataFrame:
    measurements, _ = measure(PLAN, call, Console(quiet=True))
    return cells(PLAN, table(measurements), all_bits(PLAN, call, jobs=1)[0])


def cell(whole: pd.DataFrame, impl: str, regime: str) -> pd.Series:
    (index,) = whole.index[(whole["impl"] == impl) & (whole["regime"] == regime)]
    return whole.loc[index]


def test_every_cell_is_measured_once(whole: pd.DataFrame):
    assert len(whole) == 4 * 2
    assert (whole["elements"] == 8 * 33).all()
    assert set(whole["outcome"]) == {"pass", "fail"}
    assert cell(whole, "doubled", "all_equal")["outcome"] == "fail"
    assert cell(whole, "total", "all_equal")["max_ulp"] <= 0.5


def test_bits_are_looked_at_and_not_believed(whole: pd.DataFrame):
    said = {row.impl: (row.determinism, row.batch_invariance) for row in whole.itertuples()}
    assert said["total"] == ("same bits", "same bits")
    assert said["by_batch"] == ("same bits", "differ")
    assert said["alternating"][0] == "differ"


def test_what_was_not_run_says_so(whole: pd.DataFrame):
    measurements, _ = measure(PLAN, call, Console(quiet=True))
    some = table([m for m in measurements if (m.impl, m.regime) != ("total", "all_equal")])
    left = cells(PLAN, some, None)
    assert len(left) == len(whole)
    missing = cell(left, "total", "all_equal")
    assert (missing["outcome"], missing["elements"], missing["determinism"]) == (NOT_RUN, 0, NOT_RUN)
    text = "\n".join(lines(left, environment()))
    assert "7 of 8 cells" in text
    assert NOT_RUN in next(line for line in text.splitlines() if line.startswith("| all_equal"))


def test_files_hold_every_cell(whole: pd.DataFrame, tmp_path: Path):
    write_atlas(tmp_path, whole, environment())
    assert len(pd.read_csv(tmp_path / "atlas.csv")) == len(whole)
    text = (tmp_path / "atlas.md").read_text()
    assert "## sum" in text
    row = next(line for line in text.splitlines() if line.startswith("| standard_normal"))
    assert row.count(" !") == 1  # doubled alone is over its bound


def test_at_size_the_usual_cases_are_there_too():
    sized = Plan(PLAN.implementations, ("float32",), lengths=(33,), rows=100, at_size=True)
    both = replace(sized, usual_too=True)
    usual = {"lengths", "specials", "masks", "real_rows"}
    regimes, more = ({case.regime for case, _ in plan.units()} for plan in (sized, both))
    assert more - regimes == usual
    assert {case.id for case, _ in sized.units()} < {case.id for case, _ in both.units()}


def test_several_jobs_write_what_one_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    chosen = ("report", "--quick", "--op", "max", "--impl", "propagating", "--impl", "by_comparison", "--atlas")
    with isolated():
        for jobs in ("1", "3"):
            assert main([*chosen, "--jobs", jobs, "--out", str(tmp_path / jobs)]) == 0
    for name in ("measurements.csv", "summary.csv", "summary.md", "atlas.csv", "atlas.md", "report.html"):
        first, second = ((tmp_path / jobs / name) for jobs in ("1", "3"))
        assert first.exists() == second.exists()
        assert not first.exists() or first.read_bytes() == second.read_bytes(), name
    assert "atlas.md, atlas.csv" in " ".join(capsys.readouterr().out.split())


def test_ctrl_c_while_bits_are_compared_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen = iter(range(1))

    def interrupted(*pair: object) -> dict[str, str]:
        if next(seen, None) is None:
            raise KeyboardInterrupt
        return {"determinism": "same bits", "batch_invariance": "same bits"}

    monkeypatch.setattr("reports.atlas.bits", interrupted)
    chosen = ("--quick", "--op", "max", "--impl", "propagating", "--impl", "by_comparison", "--atlas")
    assert run("report", *chosen, "--out", tmp_path) == 130
    assert len(pd.read_csv(tmp_path / "measurements.csv")) > 10
    assert set(pd.read_csv(tmp_path / "atlas.csv")["determinism"]) == {"same bits", NOT_RUN}
