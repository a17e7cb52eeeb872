"""Findings: what a check reports when a property does not hold, and what is expected of a contract's deviations."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation
from properties.case import Case


@dataclass(frozen=True)
class Finding:
    """One property that did not hold: on which case, why, and the whole story."""

    property: str
    case: Case
    reason: Reason
    story: str

    def told_of(self, implementation: Implementation) -> str:
        """The whole finding, with a command that shows it again."""
        origin = implementation.origin or ""
        file = f" --impls {origin}" if os.path.isabs(origin) else ""
        replay = f"trueulp replay {self.case.id} --impl {implementation.name}{file}"
        return f"{implementation.id} {self.property}: {self.reason}\n{self.story}\n  replay: {replay}"


class PropertyFailure(AssertionError):
    """A property does not hold, or a declared deviation no longer happens."""


@dataclass
class Ledger:
    """Weighs findings against what the contract declares. A declared deviation must happen; nothing else may.

    ``scope`` names what is being checked: a law, or the oracle's properties with all regimes.
    """

    implementation: Implementation
    scope: frozenset[str]
    seen: set[str] = field(default_factory=set)

    def note(self, findings: Iterable[Finding]) -> None:
        """Raise :class:`PropertyFailure` at the first finding that the contract does not declare."""
        __tracebackhide__ = True
        expected = self.implementation.contract.expected_failures
        for finding in findings:
            # A law has cases of its own: a regime that is declared to fail excuses the oracle's checks alone.
            declared = ({finding.property} | ({finding.case.regime} & self.scope)) & expected.keys()
            if not declared:
                raise PropertyFailure(finding.told_of(self.implementation))
            self.seen |= declared

    def close(self) -> None:
        """Raise :class:`PropertyFailure` if something declared within the scope did not happen."""
        __tracebackhide__ = True
        expected = self.implementation.contract.expected_failures
        missing = sorted((expected.keys() & self.scope) - self.seen)
        if missing:
            told = "; ".join(f"{name} ({expected[name]})" for name in missing)
            raise PropertyFailure(
                f"{self.implementation.id}: declared to fail and does not: {told}. Remove it from deviates or "
                "known_faulty, or register the dtypes that do fail apart."
            )
