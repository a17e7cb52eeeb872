"""The property suite on one (implementation, dtype), as results in place of exceptions: what ``trueulp check`` runs.

The same checks as ``properties/test_*.py``: the battery and drawn cases against the oracle, then every law claimed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import NoSuchExample

from gpu_impls.call import Runner
from gpu_impls.registry import Implementation
from properties.battery import battery
from properties.case import Case
from properties.declarations import PROPERTIES
from properties.finding import Finding
from properties.laws import LAWS
from properties.oracle_check import ORACLE_PROPERTIES, verdict
from properties.strategies import cases, short_cases

DRAWN, SEARCHED = 60, 300
SETTINGS = settings(
    deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)


class Status(StrEnum):
    """GONE: declared to fail, and does not any more."""

    HOLDS = "holds"
    BROKEN = "BROKEN"
    DECLARED = "declared"
    GONE = "GONE"
    NOT_CLAIMED = "not claimed"

    @property
    def fails(self) -> bool:
        return self in (Status.BROKEN, Status.GONE)


@dataclass(frozen=True)
class Result:
    """One property of one (implementation, dtype), and the shortest counterexample found."""

    implementation: Implementation
    dtype: str
    property: str
    status: Status
    finding: Finding | None = None


def check(implementation: Implementation, dtype: str, runner: Runner) -> Iterator[Result]:
    """A result for every property, in the order of ``PROPERTIES``."""
    found = oracle_findings(implementation, dtype, runner)
    for name in PROPERTIES:
        law = LAWS.get(name)
        if law is not None and not law.applies(implementation):
            yield Result(implementation, dtype, name, Status.NOT_CLAIMED)
            continue
        findings = found.get(name, []) + (list(law.check(implementation, dtype, runner)) if law else [])
        yield _result(implementation, dtype, name, findings, runner)


def oracle_findings(implementation: Implementation, dtype: str, runner: Runner) -> dict[str, list[Finding]]:
    """What the battery and drawn cases find, by property."""
    found: dict[str, list[Finding]] = {}
    for case in (*battery(implementation.op, dtype), *drawn_cases(implementation, dtype)):
        for finding in verdict(implementation, case, runner).findings():
            found.setdefault(finding.property, []).append(finding)
    return found


def drawn_cases(implementation: Implementation, dtype: str) -> list[Case]:
    """The cases hypothesis draws, always the same."""
    kept: list[Case] = []

    @settings(SETTINGS, max_examples=DRAWN)
    @hypothesis.given(cases(implementation, dtype))
    def keep(case: Case) -> None:
        kept.append(case)

    keep()
    return kept


def _result(implementation: Implementation, dtype: str, name: str, findings: list[Finding], runner: Runner) -> Result:
    expected = implementation.contract.expected_failures
    undeclared = [f for f in findings if f.property not in expected and f.case.regime not in expected]
    if undeclared:
        return Result(implementation, dtype, name, Status.BROKEN, shortest(implementation, name, undeclared, runner))
    if findings:
        return Result(implementation, dtype, name, Status.DECLARED, smallest(findings))
    return Result(implementation, dtype, name, Status.GONE if name in expected else Status.HOLDS)


def shortest(implementation: Implementation, name: str, findings: list[Finding], runner: Runner) -> Finding:
    """A short row drawn for the purpose, shrunk to its core, where one shows the same; else the smallest case."""
    if name not in ORACLE_PROPERTIES:
        return smallest(findings)

    def shows_it(case: Case) -> bool:
        return any(f.property == name for f in verdict(implementation, case, runner).findings())

    searching = settings(SETTINGS, max_examples=SEARCHED, phases=[Phase.generate, Phase.shrink])
    try:
        strategy = short_cases(implementation, findings[0].case.dtype)
        case = hypothesis.find(strategy, shows_it, settings=searching)
    except (NoSuchExample, ValueError):  # ValueError: it takes no short rows
        return smallest(findings)
    return smallest(f for f in verdict(implementation, case, runner).findings() if f.property == name)


def smallest(findings: Iterable[Finding]) -> Finding:
    return min(findings, key=lambda f: (f.case.rows * f.case.n, f.case.id))
