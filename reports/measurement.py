"""Measurements: one row of the result table each. The dataclass is the schema; field order is column order."""

from dataclasses import dataclass, fields
from functools import reduce
from operator import or_

from gpu_impls.outcome import Outcome
from oracles.enclosure import Ground
from properties.oracle_check import Verdict
from properties.tally import Tally, tally_without_result

Key = tuple[str, str, str, str, str, int]


@dataclass(frozen=True)
class Measurement:
    """What one implementation did on all cases of one regime and length, for one output.

    ``ground`` is the weakest that the exact values stand on, ``arithmetic`` names those that had a part in them.
    ULP columns are over finite comparisons; ``max_row_ulp`` is in ULPs of the row's largest exact output;
    finite results that are not the correctly rounded ones are at least ``misrounded`` and at most ``misrounded_high``
    (they differ where the truth was left open on purpose); ``condition`` is the componentwise
    condition number at the largest error; ``bound_used`` the largest share of the allowed error (BOUNDS, section 0);
    ``worst_case`` the case and element to look at. Digests are of all input and output bits. ``levels`` has the mean
    error of every row, one character each (properties.tally), for the gate.
    """

    op: str
    impl: str
    dtype: str
    output: str
    regime: str
    n: int
    rows: int
    elements: int
    compared: int
    max_ulp: float
    p99_ulp: float
    mean_ulp: float
    max_row_ulp: float
    misrounded: int
    misrounded_high: int
    condition: float
    bound_used: float
    special_mismatches: int
    rows_not_judged: int
    outcome: Outcome
    reason: str
    coverage: str
    ground: Ground
    arithmetic: str
    worst_case: str
    output_bits: str
    input_bits: str
    detail: str
    levels: str


COLUMNS = tuple(f.name for f in fields(Measurement) if f.name != "levels")  # as wide as there are rows


@dataclass(frozen=True)
class Partial:
    """What a measurement is made of before it is finished; ``|`` merges two of one key."""

    key: Key
    tally: Tally
    grounds: frozenset[Ground]
    arithmetics: frozenset[str]
    output_bits: int
    input_bits: int
    detail: str

    def __or__(self, other: "Partial") -> "Partial":
        if self.key != other.key:
            raise ValueError(f"cannot merge measurements of {self.key} and {other.key}")
        return Partial(
            self.key,
            self.tally | other.tally,
            self.grounds | other.grounds,
            self.arithmetics | other.arithmetics,
            self.output_bits ^ other.output_bits,
            self.input_bits ^ other.input_bits,
            min(filter(None, (self.detail, other.detail)), default=""),
        )

    def finish(self) -> Measurement:
        t = self.tally
        return Measurement(
            *self.key,
            rows=t.rows,
            elements=t.elements,
            compared=t.compared,
            max_ulp=t.max_ulp,
            p99_ulp=t.percentile(0.99),
            mean_ulp=t.mean_ulp,
            max_row_ulp=t.max_row_ulp,
            misrounded=t.misrounded,
            misrounded_high=t.misrounded + t.roundings_open,
            condition=t.largest.condition,
            bound_used=t.bound_used,
            special_mismatches=t.special_mismatches,
            rows_not_judged=t.rows_not_judged,
            outcome=t.reason.outcome,
            reason=str(t.reason),
            coverage="sampled",
            ground=Ground.weakest(set(self.grounds)),
            arithmetic=" ".join(sorted(self.arithmetics)),
            worst_case=t.worst.place,
            output_bits=f"{self.output_bits:016x}",
            input_bits=f"{self.input_bits:016x}",
            detail=self.detail,
            levels="".join(levels for _, levels in t.levels),
        )


def partials(verdict: Verdict) -> list[Partial]:
    """One partial measurement per output of a verdict."""
    case, implementation = verdict.case, verdict.implementation
    input_bits = int(case.inputs.digest(), 16)
    made = []
    for k, output in enumerate(case.operator.outputs):
        key = (case.op, implementation.name, case.dtype, output.name, case.regime, case.n)
        if verdict.run.reason is None:
            output_bits = int(verdict.digest(k), 16)
            counted = verdict.tally(k)
            grounds, arithmetics = verdict.truth(k)
        else:
            size = case.rows if output.per_row else case.rows * case.n
            counted = tally_without_result(size, case.rows, verdict.run.reason, case.id)
            output_bits, grounds, arithmetics = 0, frozenset[Ground](), frozenset[str]()
        made.append(Partial(key, counted, grounds, arithmetics, output_bits, input_bits, verdict.run.detail))
    return made


def collect(parts: list[Partial]) -> list[Measurement]:
    """Finished measurements, sorted by key: any order and any split of the same parts gives the same list."""
    groups: dict[Key, list[Partial]] = {}
    for part in parts:
        groups.setdefault(part.key, []).append(part)
    return [reduce(or_, groups[key]).finish() for key in sorted(groups)]
