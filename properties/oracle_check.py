"""The oracle's checks: one run of one case, judged, and every failed element put down to a property.

accuracy        rows of finite numbers, nothing hidden
special_values  rows without elements, or holding NaN or an infinity
masks           rows with hidden elements
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_impls.call import Run, Runner, call
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation
from oracles.enclosure import Ground
from oracles.operator import Inputs
from oracles.truth import Truth
from properties.case import Case, explicit_case
from properties.explain import story
from properties.finding import Finding
from properties.judge import Judgement, expect, judge
from properties.tally import Tally, tally

ACCURACY, SPECIAL_VALUES, MASKS = ORACLE_PROPERTIES = ("accuracy", "special_values", "masks")

# Misbehaviour that has a property of its own, whatever the row.
_OWN_PROPERTY = {
    Reason.WROTE_INPUT: "inputs_untouched",
    Reason.GUARD: "out_buffer",
    Reason.UNWRITTEN: "out_buffer",
}


@dataclass(frozen=True)
class Verdict:
    """A run of an implementation on a case, with one judgement per output (none if there are no outputs)."""

    implementation: Implementation
    case: Case
    run: Run
    judgements: tuple[Judgement, ...]
    runner: Runner = call

    def tally(self, output: int) -> Tally:
        return tally(self.judgements[output], self.case.id)

    def truth(self, output: int) -> tuple[frozenset[Ground], frozenset[str]]:
        """What an output's exact values stand on, and the arithmetics that had a part in them."""
        truth = self.judgements[output].expectation.truth
        return frozenset({truth.ground}), truth.arithmetics

    def at(self, output: int, index: tuple[int, ...]) -> tuple[Inputs, Judgement, tuple[int, ...]]:
        """Inputs and judgement of rows with one element among them, and its place there."""
        return self.case.inputs, self.judgements[output], index

    def digest(self, output: int) -> str:
        """A short hash of an output's bits."""
        bits = self.case.fmt.bits(self.run.outputs[output])
        return hashlib.sha256(bits.tobytes()).hexdigest()[:16]

    def findings(self) -> list[Finding]:
        """At most one finding per property: its worst element."""
        if self.run.reason in (Reason.NOT_SUPPORTED, Reason.NOT_RUN):
            return []
        if self.run.reason is not None:
            name = _OWN_PROPERTY.get(self.run.reason) or str(row_properties(self.case.inputs, whole=True)[0])
            return [Finding(name, self.case, self.run.reason, f"  {self.case.id}: {self.run.detail}")]
        return [f for j in self.judgements for f in self._failed(j)]

    def _failed(self, judgement: Judgement) -> list[Finding]:
        findings = []
        failed_rows = judgement.failed.any(axis=tuple(range(1, judgement.failed.ndim)))
        if not failed_rows.any():
            return []
        names = self._blame(failed_rows)
        for name in ORACLE_PROPERTIES:
            rows = failed_rows & (names == name)
            if rows.any():
                index = worst_element(judgement, rows)
                text = story(self.implementation, self.case, judgement, index)
                findings.append(Finding(name, self.case, judgement.reason_at(index), text))
        return findings

    def _blame(self, failed_rows: NDArray[np.bool_]) -> NDArray[np.str_]:
        """The property each row tests; a masked row that also fails without what it hides is not about the mask."""
        names = row_properties(self.case.inputs)
        for r in np.flatnonzero(failed_rows & (names == MASKS)).tolist():
            bare = without_hidden(self.case, r)
            failures = verdict(self.implementation, bare, self.runner).findings()
            if failures:
                names[r] = failures[0].property
        return names


def without_hidden(case: Case, row: int) -> Case:
    """The visible elements of one row as a case without a mask."""
    x = case.inputs.x[row : row + 1, case.inputs.visible[row]]
    return explicit_case(case.op, case.dtype, case.regime, {"x": x}, case.eps)


def verdict(
    implementation: Implementation,
    case: Case,
    runner: Runner = call,
    truths: tuple[Truth, ...] | None = None,
    **how: Any,
) -> Verdict:
    """Run ``implementation`` on ``case`` and judge what comes out, by the case's truths or the ones given.

    ``how`` goes to the runner (arrange, with_out).
    """
    run = runner(implementation, case.inputs, **how)
    return judged(implementation, case, run, runner, lambda: truths or case.truths)


def judged(
    implementation: Implementation,
    case: Case,
    run: Run,
    runner: Runner,
    truths: Callable[[], tuple[Truth, ...]],
) -> Verdict:
    """A run judged by ``truths``, which are asked for if there is something to judge."""
    if run.reason is not None:
        return Verdict(implementation, case, run, (), runner)
    expectations = expect(case.operator, case.inputs, truths(), implementation.contract)
    judgements = tuple(judge(o, e) for o, e in zip(run.outputs, expectations, strict=True))
    return Verdict(implementation, case, run, judgements, runner)


def row_properties(inputs: Inputs, whole: bool = False) -> NDArray[np.str_]:
    """Which property each row tests, (rows,); with ``whole`` the one that the case as such tests, (1,)."""
    hidden = ~inputs.visible.all(axis=-1)
    special = (inputs.has_nan | inputs.has_pos_inf | inputs.has_neg_inf)[:, 0] | (inputs.x.shape[-1] == 0)
    if whole:
        hidden, special = np.array([hidden.any()]), np.array([special.any() or len(special) == 0])
    return np.select([hidden, special], [MASKS, SPECIAL_VALUES], ACCURACY)


def worst_element(judgement: Judgement, rows: NDArray[np.bool_] | None = None) -> tuple[int, ...]:
    """The element to show: a failed one first, then the one that used most of what is allowed."""
    used = np.nan_to_num(judgement.used, nan=-1.0, posinf=np.inf)
    errors = np.nan_to_num(judgement.errors, nan=-1.0, posinf=np.inf)
    special = judgement.special & judgement.expectation.judged
    rank = np.where(special, np.inf, np.where(judgement.failed, 1e300, 0) + used)
    if rows is not None:
        rank = np.where(rows.reshape(-1, *[1] * (rank.ndim - 1)), rank, -np.inf)
    best = rank == rank.max(initial=-np.inf)
    flat = int(np.argmax(np.where(best, errors, -np.inf)))
    return tuple(int(i) for i in np.unravel_index(flat, rank.shape))
