"""``trueulp replay``: one case again, digit by digit."""

import re

from rich.console import Console
from rich.markup import escape

from gpu_impls.call import Runner
from gpu_impls.registry import Implementation
from properties.case import Case
from properties.explain import element_lines
from properties.judge import Judgement
from properties.oracle_check import Verdict, verdict, worst_element


def parse_place(text: str) -> tuple[Case, tuple[int, ...] | None]:
    """``CASE`` or ``CASE@row.element``. Raises ``ValueError`` where either cannot be read or does not exist."""
    case_id, at, place = text.partition("@")
    case = Case.parse(case_id)
    _ = case.inputs  # bits or blocks that do not make up the case are refused here
    if not at:
        return case, None
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", place):
        raise ValueError(f"cannot read place {place!r} in {text!r}: expected CASE@row or CASE@row.element")
    index = tuple(int(part) for part in place.split("."))
    if any(i >= size for i, size in zip(index, (case.rows, case.n), strict=False)):
        raise ValueError(f"place {place!r} is outside of case {case_id}: {case.rows} rows of {case.n} elements")
    return case, index


def print_replay(
    console: Console,
    case: Case,
    index: tuple[int, ...] | None,
    implementations: list[Implementation],
    runner: Runner,
) -> None:
    """For every implementation and each of its outputs, the element asked for or its worst one."""
    console.print(f"[bold]{escape(case.id)}[/]", soft_wrap=True, highlight=False)
    for implementation in implementations:
        console.print()
        console.print(f"[bold]{escape(implementation.name)}[/]")
        for number, lines in enumerate(_sections(verdict(implementation, case, runner), index)):
            if number:
                console.print()
            for name, line in lines.items():
                console.print(f"  {name:<12} {line}", soft_wrap=True, markup=False, highlight=False)


def _sections(v: Verdict, index: tuple[int, ...] | None) -> list[dict[str, str]]:
    """One of each output, or what went wrong."""
    if v.run.reason is not None:
        return [{"verdict": f"{v.run.reason.outcome}: {v.run.reason}", "detail": v.run.detail}]
    return [
        _lines(v.case, output.name, j, index) for output, j in zip(v.case.operator.outputs, v.judgements, strict=True)
    ]


def _lines(case: Case, output: str, judgement: Judgement, index: tuple[int, ...] | None) -> dict[str, str]:
    if not judgement.computed.size:
        return {output: "empty, as it should be"}
    place = _place(index, judgement.computed.ndim) or worst_element(judgement)
    return {"element": f"{output}{list(place)}", **element_lines(case.inputs, judgement, place)}


def _place(index: tuple[int, ...] | None, dimensions: int) -> tuple[int, ...] | None:
    """The asked-for place cut or extended to the output's dimensions; None where none was asked for."""
    if index is None:
        return None
    return (*index, 0)[:dimensions] if len(index) < dimensions else index[:dimensions]
