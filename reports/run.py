"""Carrying out a plan: every case, every implementation, with progress, keeping what was measured when interrupted."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gpu_impls.call import Runner
from gpu_impls.registry import Implementation
from oracles.truth import RowTruths
from properties.case import Case
from properties.oracle_check import judged
from properties.screen import screened
from reports.evidence import Evidence
from reports.measurement import Measurement, Partial, collect, partials
from reports.plan import Plan
from reports.sharing import shared


def measure(
    plan: Plan, runner: Runner, console: Console, evidence: Evidence | None = None, jobs: int = 1
) -> tuple[list[Measurement], BaseException | None]:
    """The plan's measurements, and what ended it early, if anything did: Ctrl-C, or an error of ours.

    Args:
        evidence: takes note of every verdict, where given.
        jobs: processes that share the cases; any number gives the same measurements.
    """
    units = list(plan.units())
    parts: list[Partial] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        shared(partial(_stand, plan, evidence is not None), units, runner, jobs) as results,
        Progress(*columns, console=console, transient=True) as progress,
    ):
        task = progress.add_task("measuring".ljust(44), total=len(units))

        def take(case: Case, made: list[Partial], noted: Evidence) -> None:
            progress.update(task, description=f"{case.op} {case.dtype} {case.regime}"[:44].ljust(44), advance=1)
            parts.extend(made)
            if evidence is not None:
                evidence.add(noted)

        try:
            for (case, _), (made, noted, ended_by) in results:
                take(case, made, noted)
                if ended_by is not None:
                    raise ended_by
        except BaseException as error:  # nothing measured so far is lost: the caller tells, then raises it again
            with suppress(KeyboardInterrupt):
                for (case, _), (made, noted, _) in results.rest():
                    take(case, made, noted)
            return collect(parts), error
    return collect(parts), None


def _stand(
    plan: Plan, noting: bool, unit: tuple[Case, list[Implementation]], runner: Runner
) -> tuple[list[Partial], Evidence, BaseException | None]:
    """Everybody who stands the case, judged, and evidence where somebody asks for it; what ended it early comes with
    what was judged until then."""
    case, implementations = unit
    case = replace(case)  # inputs and truths are kept with this one, and go with it
    parts, evidence = [], Evidence()
    try:
        rows = RowTruths(case.operator, case.inputs, partial(plan.truths, case), plan.escalate)
        for implementation in implementations:
            run = runner(implementation, case.inputs)
            found = screened(implementation, case, run, rows) if plan.screen else None
            found = found or judged(implementation, case, run, runner, rows.all)
            made = partials(found)
            if noting:
                evidence.note(found, made)
            parts += made
    except BaseException as error:
        return parts, evidence, error
    return parts, evidence, None
