"""Production sizes on a GPU: what certified statistics settle there, and the rows that are left for the host.

The device encloses every result in double words, computes what the contract allows, and counts (oracles.arithmetics
.fused). A row is settled if each of its results is clearly the right one of its class, clearly rounded right or wrong,
and clearly within what is allowed; the judge sees the others, and the row of the largest error once more, for the
condition number there. So a failure is always the host's finding, and counts are the same wherever they are made; sizes
of errors may differ by the width of the host's enclosures, 2**-11 ULP at most.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gpu_impls.backends import CUPY as cupy
from gpu_impls.call import Run
from gpu_impls.contract import Contract
from gpu_impls.libraries import absent
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation
from oracles.arithmetics.fused import GROUND, NAME, STATISTICS, bins, certify, generate
from oracles.bounds import granted, tolerance
from oracles.enclosure import Ground
from oracles.formats import Array
from oracles.operator import Inputs, Operator
from oracles.truth import RowTruths
from properties.case import Case
from properties.finding import Finding
from properties.judge import Judgement, expect, judge, unjudged
from properties.oracle_check import Verdict, judged
from properties.tally import Tally, levels, tally

# Fewer elements are judged sooner than they are sent.
FEWEST = 2**16
# Errors of so many elements add up within an integer of 64 bits.
LONGEST = 2**17
# Why this process does not ask its GPU any more.
_given_up: list[str] = []


@dataclass(frozen=True)
class Screened(Verdict):
    """A verdict whose judgement is of the rows ``left`` alone, in their order; ``settled`` counts the others, and
    ``levels`` has theirs, "" for a row that is left."""

    left: tuple[int, ...] = ()
    settled: Tally = field(default_factory=Tally)
    levels: tuple[str, ...] = ()
    rows: RowTruths = field(kw_only=True)

    def tally(self, output: int) -> Tally:
        if not self.left:
            return replace(self.settled, levels=((self.case.id, "".join(self.levels)),))
        rest = tally(self.judgements[output], self.case.id, self.left)
        ((_, of_rest),) = rest.levels
        missing = iter(of_rest)
        whole = "".join(level or next(missing) for level in self.levels)
        return replace(self.settled | rest, levels=((self.case.id, whole),))

    def truth(self, output: int) -> tuple[frozenset[Ground], frozenset[str]]:
        grounds, names = super().truth(output) if self.left else (frozenset[Ground](), frozenset[str]())
        return grounds | {GROUND}, names | {NAME}

    def findings(self) -> list[Finding]:
        """As the host's judge has them, of all rows."""
        return judged(self.implementation, self.case, self.run, self.runner, self.rows.all).findings()

    def at(self, output: int, index: tuple[int, ...]) -> tuple[Inputs, Judgement, tuple[int, ...]]:
        row, *element = index
        inputs, judgement = judged_rows(self.implementation, self.case, self.run, self.rows, [row])
        return inputs, judgement, (0, *element)


def screened(implementation: Implementation, case: Case, run: Run, rows: RowTruths) -> Screened | None:
    """A run judged with the help of the GPU; None where that cannot be, or settles nothing: the host judges it all.

    ``rows``: exact values of the rows that are left, for everybody who stands the case.
    """
    if run.reason is not None or not can_be_screened(case):
        return None
    (output,) = run.outputs
    try:
        found, histogram = on_device(case, output, implementation.contract)
    except Exception as error:  # a GPU that CuPy cannot use, or none of its memory left: no reason to measure nothing
        _given_up.append(f"{type(error).__name__}: {error}")
        warnings.warn(f"no rows are settled on the GPU any more: {_given_up[0]}", RuntimeWarning, stacklevel=2)
        return None
    settled = found["unsettled"] == 0
    if not settled.any():
        return None
    left = np.flatnonzero(~settled).tolist()
    worst = int(np.argmax(np.where(settled, found["error"], -1.0)))
    again = partial(judged_rows, implementation, case, run, rows)
    _, judgement = again([worst])
    if (judgement.failed | judgement.undecided | ~judgement.expectation.judged).any():  # not as the device has it
        return None
    largest = tally(judgement, case.id, [worst]).largest
    counted = replace(counts(case, found[settled], histogram), largest=largest)
    told = np.where(settled, levels(found["capped"], found["compared"]), "")
    judgements = (again(left)[1],) if left else ()
    return Screened(
        implementation, case, run, judgements, left=tuple(left), settled=counted, levels=tuple(told), rows=rows
    )


def can_be_screened(case: Case) -> bool:
    """Whether there is a GPU, rows without a mask, and one result for an input of at most 32 bits."""
    op, inputs = case.operator, case.inputs
    simple = len(op.outputs) == 1 and inputs.arrays.keys() <= {"x", "weight", "bias"}
    fits = inputs.fmt.dtype.itemsize <= 4 and inputs.x.size >= FEWEST and case.n <= LONGEST
    return simple and fits and not _given_up and absent("cupy+cuda") is None


def on_device(case: Case, output: Array, contract: Contract) -> tuple[Any, dict[float, int]]:
    """Statistics of each row, and the histogram of the settled ones."""
    inputs, fmt = case.inputs, case.fmt
    there = {name: cupy.asarray(fmt.bits(np.ascontiguousarray(array))) for name, array in inputs.arrays.items()}
    stored = cupy.asarray(fmt.bits(np.ascontiguousarray(output)))
    allowance, claim = partial(allowed, case.operator, contract), contract.max_ulp.get(fmt.name, 0.0)
    x = there.pop("x")
    kernel = generate(case.operator, fmt, case.n, inputs.parameters, tuple(there), allowance, claim)
    found, histogram = certify(kernel, x, stored, **there)
    filled = zip(bins(), histogram.get().tolist(), strict=True)
    return found.get().view(STATISTICS), {bin_: count for bin_, count in filled if count}


def allowed(op: Operator, contract: Contract, inputs: Inputs, exact: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
    """The bound at storage, half an ulp of storage, what is allowed in all (properties.judge), and whether a row is not
    to be judged, of operators of one output; arrays, or traced for the device."""
    model = contract.error_model(inputs.fmt.name)
    bounds = op.bound(inputs, exact, model)
    outside, blurred = unjudged(op, inputs, contract, exact, bounds)
    bound, half = granted(bounds[0], np.abs(exact[0]), inputs.fmt, model)
    return bound, half, tolerance(bound, half, inputs.fmt, model), outside | blurred


def counts(case: Case, settled: Any, histogram: dict[float, int]) -> Tally:
    """What the device counted of rows that are all within what is allowed."""
    compared = int(settled["compared"].sum())
    in_row = settled["error"] if case.operator.outputs[0].per_row else np.ldexp(settled["distance"], -settled["unit"])
    return Tally(
        elements=compared,
        compared=compared,
        numbers=compared,
        misrounded=int(settled["misrounded"].sum()),
        rows=len(settled),
        max_row_ulp=float(in_row.max()),
        bound_used=float((settled["spent"] / settled["granted"]).max()),
        error_sum=sum(settled["units"].tolist()),
        histogram=Counter(histogram),
        reasons=Counter({Reason.WITHIN: compared}),
    )


def judged_rows(
    implementation: Implementation, case: Case, run: Run, truths: RowTruths, rows: Sequence[int]
) -> tuple[Inputs, Judgement]:
    """Some rows of a case, and the judgement of what came out for them."""
    inputs = case.inputs.at(np.array(rows))
    (expectation,) = expect(case.operator, inputs, truths.of(rows), implementation.contract)
    return inputs, judge(run.outputs[0][np.array(rows)], expectation)
