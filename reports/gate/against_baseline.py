"""``trueulp gate --baseline FILE``: every row against what it was."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from gpu_impls.registry import Implementation
from reports.commands import OK, Action
from reports.commands.options import blocks, brought, running, select
from reports.environment import environment
from reports.gate.baseline import default_baseline, is_shipped, read_baseline, require_writable, write_baseline
from reports.gate.compare import Compared, Verdict, compare
from reports.gate.moved import exit_code, files_again, print_environment, print_moved
from reports.gate.rerun import Scope, empty_baseline, finished, of_numpy_and_scipy, planned, updated
from reports.gate.scatter import Tolerance
from reports.gate.schema import Baseline, Row
from reports.plan import Plan
from reports.run import measure

UNUSABLE = 2


def prepare(options: argparse.Namespace, tolerance: Tolerance) -> Action:
    path = default_baseline() if options.baseline is None else Path(options.baseline)
    if not path.name:
        raise ValueError("--baseline is empty: give a file")
    if options.update and options.baseline is None and is_shipped(path):
        raise ValueError("the default baseline belongs to the installed package: give --baseline FILE to --update")
    if options.update:
        require_writable(path)
    given = brought(options)
    ops = tuple(options.op) or tuple(dict.fromkeys(i.op for i in given))
    scope = Scope(ops, tuple(options.impl), tuple(options.dtype), tuple(options.regime))
    fresh = options.update and not path.exists()
    baseline = _fresh(path, options, scope) if fresh else _existing(path, options)
    plan = planned(baseline.recipe, _rerun(path, baseline, options, given), scope, blocks(options))
    if not any(True for _ in plan.units()):
        raise ValueError(f"nothing of {path} can run here: no implementation, dtype and regime of it is left")
    return Gate(path, baseline, scope, plan, tolerance, options).run


def _existing(path: Path, options: argparse.Namespace) -> Baseline:
    baseline = read_baseline(path)
    recipe = baseline.recipe
    if options.seed not in (None, recipe.seed) or (options.quick and not recipe.quick):
        asked = f"--seed {options.seed}" if options.seed not in (None, recipe.seed) else "--quick"
        kind = "quick" if recipe.quick else "not quick"
        raise ValueError(f"{path} was made with seed {recipe.seed}, {kind}: expected no {asked}, or another --baseline")
    return baseline


def _fresh(path: Path, options: argparse.Namespace, scope: Scope) -> Baseline:
    if path.is_symlink():
        raise ValueError(f"cannot write baseline {path}: it is a link to nothing")
    return empty_baseline(scope, options.seed or 0, bool(options.quick))


def _rerun(
    path: Path, baseline: Baseline, options: argparse.Namespace, given: list[Implementation]
) -> list[Implementation]:
    """Those of the baseline's rows, and those asked for by name or file.

    A new baseline takes all that are not known to be faulty; the default one never any but NumPy's and SciPy's.
    """
    ours = path.resolve() == default_baseline().resolve()
    rows = {(row.op, row.impl) for row in baseline.rows.values()}
    chosen = select(options)
    asked = chosen if options.impl else given
    if ours and options.update and (others := [i.id for i in asked if not of_numpy_and_scipy(i)]):
        raise ValueError(f"the default baseline is for NumPy and SciPy, not {', '.join(others)}: give --baseline FILE")
    if not rows and not asked:
        return [i for i in chosen if not i.contract.known_faulty and (not ours or of_numpy_and_scipy(i))]
    return [i for i in chosen if i in asked or (i.op, i.name) in rows]


@dataclass(frozen=True)
class Gate:
    """One run against a baseline; everything the user gave is checked."""

    path: Path
    baseline: Baseline
    scope: Scope
    plan: Plan
    tolerance: Tolerance
    options: argparse.Namespace

    def run(self, console: Console) -> int:
        with running(self.options) as runner:
            measurements, ended_by = measure(self.plan, runner, console, jobs=self.options.jobs)
        new = [Row.of(m) for m in measurements]
        old = [row for row in self.baseline.rows.values() if self.scope.holds(row)]
        if ended_by is not None:
            old, new = finished(old, new)
        compared = compare(old, new, self.tolerance, self._here)
        problem = "" if self.options.update or ended_by is not None else self._problem(compared)
        if problem:
            print(f"trueulp: {problem}", file=sys.stderr)
            return UNUSABLE
        print_moved(console, compared, str(self.path), files_again(self.options))
        if any(c.verdict in (Verdict.WORSE, Verdict.CHANGED, Verdict.BETTER) for c in compared):
            print_environment(console, self.baseline.environment, environment())
        if ended_by is not None:
            console.print("[yellow]Ended early: this is what was compared until then. Nothing was written.[/]")
            raise ended_by
        return self._update(console, compared) if self.options.update else exit_code(compared, self.options.require_all)

    def _here(self, row: Row) -> bool:
        """Whether a row that did not come out should have."""
        ids = {(i.op, i.name) for i in self.plan.implementations}
        return (row.op, row.impl) in ids and (row.regime != "user_rows" or bool(self.plan.blocks))

    def _problem(self, compared: list[Compared]) -> str:
        """Why this run says nothing about the baseline."""
        if other := [c.row.name for c in compared if c.verdict is Verdict.DIFFERENT_INPUTS]:
            return (
                f"{self.path} was made from other inputs: {other[0]}, {len(other)} rows in all "
                "(if they were meant to change, or --data is another file now: make it again with --update)"
            )
        if all(c.old is None or c.new is None for c in compared):
            return f"nothing was compared: no row of {self.path} came out here, {len(compared)} are new or not run"
        return ""

    def _update(self, console: Console, compared: list[Compared]) -> int:
        after = updated(self.baseline, compared)
        write_baseline(self.path, after)
        console.print(f"Written to {escape(str(self.path))}: {len(after.rows)} rows", highlight=False)
        return OK
