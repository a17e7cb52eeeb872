"""``trueulp gate --no-worse-than IMPL``: candidates against an incumbent, row by row, in the same run.

A row that the incumbent does not support is the candidate's alone, and new.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.markup import escape

from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation, implementations
from reports.commands import Action
from reports.commands.options import blocks, brought, running, select
from reports.gate.compare import Compared, compare
from reports.gate.moved import exit_code, files_again, print_moved
from reports.gate.rerun import ROWS, finished
from reports.gate.scatter import Tolerance
from reports.gate.schema import Row
from reports.plan import Plan
from reports.run import measure


def prepare(options: argparse.Namespace, tolerance: Tolerance) -> Action:
    if options.baseline is not None or options.update:
        raise ValueError("--no-worse-than compares within one run: expected no --baseline and no --update beside it")
    pairs, alone = _pairs(options)
    plan = Plan(
        implementations=tuple({i.id: i for pair in pairs for i in pair}.values()),
        dtypes=tuple(options.dtype),
        regimes=tuple(options.regime),
        seed=options.seed or 0,
        quick=bool(options.quick),
        blocks=blocks(options),
        rows=ROWS,
    )
    if not any(len(takers) > 1 for _, takers in plan.units()):
        raise ValueError(f"no dtype and regime is left that {options.no_worse_than} and a candidate both take")
    return Duel(pairs, alone, plan, tolerance, options).run


def _pairs(options: argparse.Namespace) -> tuple[list[tuple[Implementation, Implementation]], list[str]]:
    """(incumbent, candidate): candidates are those asked for by name or file. And those that have no incumbent."""
    given = brought(options)
    chosen = select(options)
    asked = chosen if options.impl else [i for i in chosen if i in given]
    if not asked:
        raise ValueError("--no-worse-than needs a candidate: name it with --impl, or its file with --impls")
    incumbents = {i.op: i for i in implementations() if i.name == options.no_worse_than}
    candidates = [i for i in asked if i.op in incumbents and i != incumbents[i.op]]
    if not candidates:
        ops = {i.op for i in asked}
        known = sorted({i.name for i in implementations() if i.op in ops})
        raise ValueError(
            f"no incumbent {options.no_worse_than!r} for {', '.join(sorted(ops))}: expected another one of "
            f"{', '.join(known)}"
        )
    return [(incumbents[i.op], i) for i in candidates], [i.id for i in asked if i.op not in incumbents]


@dataclass(frozen=True)
class Duel:
    """One run of incumbents and candidates; everything the user gave is checked."""

    pairs: Sequence[tuple[Implementation, Implementation]]
    alone: Sequence[str]
    plan: Plan
    tolerance: Tolerance
    options: argparse.Namespace

    def run(self, console: Console) -> int:
        with running(self.options) as runner:
            measurements, ended_by = measure(self.plan, runner, console, jobs=self.options.jobs)
        rows = [Row.of(m) for m in measurements]
        compared = [c for pair in self.pairs for c in self._compared(*pair, rows, ended_by is not None)]
        compared.sort(key=lambda c: c.urgency)
        if self.alone:
            told = f"Not compared: {self.options.no_worse_than} is no incumbent for {', '.join(self.alone)}."
            console.print(escape(told), highlight=False)
        if other := [candidate.id for pair in self.pairs if not _same_promises(*pair) for candidate in pair[1:]]:
            told = f"Bound used was not compared: its contract promises other bounds for {', '.join(other)}."
            console.print(escape(told), highlight=False)
        print_moved(console, compared, self.options.no_worse_than, files_again(self.options))
        if ended_by is not None:
            console.print("[yellow]Ended early: this is what was compared until then.[/]")
            raise ended_by
        return exit_code(compared, self.options.require_all)

    def _compared(
        self, incumbent: Implementation, candidate: Implementation, rows: Sequence[Row], early: bool
    ) -> list[Compared]:
        theirs = [r for r in rows if (r.op, r.impl) == (incumbent.op, incumbent.name)]
        old = [replace(r, impl=candidate.name) for r in theirs if r.reason is not Reason.NOT_SUPPORTED]
        new = [r for r in rows if (r.op, r.impl) == (candidate.op, candidate.name)]
        if early:
            old, new = finished(old, new)

        def offered(row: Row) -> bool:
            return row.dtype in candidate.contract.dtypes

        def same_bounds(row: Row) -> bool:
            return promised(incumbent, row.dtype) == promised(candidate, row.dtype)

        return compare(old, new, self.tolerance, offered, same_bounds)


def _same_promises(one: Implementation, other: Implementation) -> bool:
    common = set(one.contract.dtypes) & set(other.contract.dtypes)
    return all(promised(one, dtype) == promised(other, dtype) for dtype in common)


def promised(implementation: Implementation, dtype: str) -> tuple[object, ...]:
    """What ``bound_used`` is a share of: shares of different promises do not compare."""
    agreed = implementation.contract
    return agreed.error_model(dtype), agreed.max_ulp.get(dtype)
