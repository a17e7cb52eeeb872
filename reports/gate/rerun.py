"""What a gate reruns: the cases of a baseline's plan, for the implementations of its rows and those asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpu_impls.registry import BUILT_IN, Implementation
from oracles.formats import FORMATS
from properties.recorded import Block
from reports.environment import environment
from reports.gate.compare import Compared, Verdict
from reports.gate.schema import Baseline, Recipe, Row
from reports.plan import Plan

# Rows of each regime. Many, because one more rounding shows in many rows or not at all (reports.gate.scatter).
ROWS = 128


@dataclass(frozen=True)
class Scope:
    """Which rows of a baseline a run is about; no names are all names, ``impls`` are globs."""

    ops: tuple[str, ...] = ()
    impls: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    regimes: tuple[str, ...] = ()

    def holds(self, row: Row) -> bool:
        return (
            (not self.ops or row.op in self.ops)
            and (not self.impls or any(fnmatchcase(row.impl, glob) for glob in self.impls))
            and (not self.dtypes or row.dtype in self.dtypes)
            and (not self.regimes or row.regime in self.regimes)
        )


def of_numpy_and_scipy(implementation: Implementation) -> bool:
    """Whether it may be in the default baseline."""
    return BUILT_IN.get(implementation.origin or "") in ("numpy", "scipy")


def empty_baseline(scope: Scope, seed: int, quick: bool) -> Baseline:
    """One to be filled: its plan holds what ``trueulp report`` would measure, with the dtypes spelt out."""
    plan = Plan((), quick=quick, rows=ROWS)
    dtypes = scope.dtypes or (("float32",) if quick else tuple(FORMATS))
    return Baseline(Recipe(seed, quick, dtypes, scope.regimes, plan.lengths, plan.longest, plan.rows), {}, {})


def planned(recipe: Recipe, implementations: Sequence[Implementation], scope: Scope, blocks: tuple[Block, ...]) -> Plan:
    """The recipe's plan, narrowed. Raises ``ValueError`` where a filter names what the recipe does not hold."""
    regimes = _narrowed("regime", recipe.regimes, scope.regimes)
    if not blocks and regimes != ("user_rows",):  # by itself, the plan says that it needs --data
        regimes = tuple(r for r in regimes if r != "user_rows" or r in scope.regimes)
    return Plan(
        implementations=tuple(implementations),
        dtypes=_narrowed("dtype", recipe.dtypes, scope.dtypes),
        regimes=regimes,
        seed=recipe.seed,
        quick=recipe.quick,
        blocks=blocks,
        lengths=recipe.lengths,
        longest=recipe.longest,
        rows=recipe.rows,
    )


def updated(baseline: Baseline, compared: Sequence[Compared]) -> Baseline:
    """The baseline with what was measured; rows that were not run here or lay outside of the filters stay."""
    rows = dict(baseline.rows)
    for c in compared:
        if c.new is not None:
            rows[c.new.key] = c.new
        elif c.verdict is Verdict.MISSING:
            del rows[c.row.key]
    return Baseline(baseline.recipe, environment(), rows)


def finished(old: Sequence[Row], new: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Of a run that ended early: the rows all of whose cases were measured."""
    before = {row.key: row for row in old}
    done = [row for row in new if row.key in before and row.input_bits == before[row.key].input_bits]
    return [before[row.key] for row in done], done


def _narrowed(kind: str, held: tuple[str, ...], wanted: Sequence[str]) -> tuple[str, ...]:
    for name in wanted:
        if held and name not in held:
            raise ValueError(f"{kind} {name} is not in the baseline's plan: expected some of {', '.join(held)}")
    return tuple(wanted) or held
