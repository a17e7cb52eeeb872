"""Carrying out a plan: every case, every implementation, with progress, keeping what was measured when interrupted."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from properties.oracle_check import verdict
from reports.measurement import Measurement, Partial, collect, partials
from reports.plan import Plan


def measure(plan: Plan, console: Console) -> tuple[list[Measurement], bool]:
    """The plan's measurements, and whether it was carried out to the end (Ctrl-C ends it early)."""
    units = list(plan.units())
    parts: list[Partial] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=len(units))
        try:
            for case, implementations in units:
                progress.update(task, description=f"{case.op} {case.dtype} {case.regime}"[:44].ljust(44))
                for implementation in implementations:
                    parts += partials(verdict(implementation, case))
                progress.advance(task)
        except KeyboardInterrupt:
            return collect(parts), False
    return collect(parts), True
