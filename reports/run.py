"""Carrying out a plan: every case, every implementation, with progress, keeping what was measured when interrupted."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gpu_impls.call import Runner
from properties.oracle_check import verdict
from reports.evidence import Evidence
from reports.measurement import Measurement, Partial, collect, partials
from reports.plan import Plan


def measure(
    plan: Plan, runner: Runner, console: Console, evidence: Evidence | None = None
) -> tuple[list[Measurement], BaseException | None]:
    """The plan's measurements, and what ended it early, if anything did: Ctrl-C, or an error of ours.

    ``evidence``, where given, takes note of every verdict.
    """
    total = sum(1 for _ in plan.units())
    parts: list[Partial] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=total)
        try:
            for case, implementations in plan.units():  # drawn anew: inputs and truths go when their case is done
                truths = plan.truths(case)
                progress.update(task, description=f"{case.op} {case.dtype} {case.regime}"[:44].ljust(44))
                for implementation in implementations:
                    judged = verdict(implementation, case, runner, truths)
                    made = partials(judged)
                    if evidence is not None:
                        evidence.note(judged, made)
                    parts += made
                progress.advance(task)
        except BaseException as error:  # nothing measured so far is lost: the caller tells, then raises it again
            return collect(parts), error
    return collect(parts), None
