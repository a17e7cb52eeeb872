"""Laws: what accuracy does not already imply, each checked bit for bit or against the oracle on cases of its own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpu_impls.call import Run, Runner
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation
from oracles.formats import Array
from oracles.operator import Inputs
from properties.case import Case, explicit_case
from properties.explain import with_bits
from properties.finding import Finding
from properties.layouts import LAYOUTS
from properties.oracle_check import verdict

REPEATS = 32
BATCHES = (1, 2, 255, 256, 257)
POWERS = (-3, 2, 5)


@dataclass(frozen=True)
class Law:
    """One named claim.

    Attributes:
        promise: one sentence.
        applies: whether the contract makes this claim.
        check: findings, none where the law holds.
    """

    name: str
    promise: str
    applies: Callable[[Implementation], bool]
    check: Callable[[Implementation, str, Runner], Iterator[Finding]]


def usual_case(implementation: Implementation, dtype: str, rows: int, n: int, regime: str = "standard_normal") -> Case:
    """Rows of ordinary numbers within everybody's domain, with weights where there are any."""
    agreed = implementation.contract
    n = max(agreed.min_length, n if agreed.max_length is None else min(n, agreed.max_length))
    return Case(implementation.op, dtype, regime, rows, n, seed=5, weight="weight" in implementation.parameters)


def _run(
    law: str, implementation: Implementation, case: Case, runner: Runner, inputs: Inputs | None = None
) -> tuple[Run, list[Finding]]:
    """One call; failing to return outputs is a finding of the law that needed them."""
    run = runner(implementation, inputs or case.inputs)
    if run.reason is None:
        return run, []
    return run, [Finding(law, case, run.reason, f"  {case.id}: {run.detail}")]


def _difference(name: str, case: Case, reason: Reason, got: Array, wanted: Array, what: str) -> list[Finding]:
    """A finding at the first element whose bits differ."""
    fmt = case.fmt
    different = fmt.bits(got) != fmt.bits(wanted)
    if not different.any():
        return []
    index = tuple(int(i) for i in np.argwhere(different)[0])
    shown = f"element {list(index)}: {with_bits(got[index], fmt)} where {what} gives {with_bits(wanted[index], fmt)}"
    return [Finding(name, case, reason, f"  {case.id}, {different.sum()} of {different.size} elements differ; {shown}")]


def determinism(implementation: Implementation, dtype: str, runner: Runner) -> Iterator[Finding]:
    case = usual_case(implementation, dtype, rows=48, n=67)
    first, problem = _run("determinism", implementation, case, runner)
    yield from problem
    for repeat in range(1, REPEATS if first.outputs else 0):
        again, problem = _run("determinism", implementation, case, runner)
        yield from problem
        for a, b in zip(again.outputs, first.outputs, strict=False):
            yield from _difference("determinism", case, Reason.BITS_RUNS, a, b, f"run 0 (this is run {repeat})")


def batch_invariance(implementation: Implementation, dtype: str, runner: Runner) -> Iterator[Finding]:
    """The first rows of a batch, and single rows from its middle, against the whole batch."""
    case = usual_case(implementation, dtype, rows=max(BATCHES), n=1003)
    whole, problem = _run("batch_invariance", implementation, case, runner)
    yield from problem
    pieces = [(0, size) for size in BATCHES[:-1]] + [(r, r + 1) for r in (1, 7, 130, 256)] + [(3, 5), (100, 133)]
    for start, stop in pieces if whole.outputs else []:
        part, problem = _run("batch_invariance", implementation, case, runner, case.inputs.rows(start, stop))
        yield from problem
        for a, b in zip(part.outputs, whole.outputs, strict=False):
            what = f"the batch of {case.rows} (this is rows {start} to {stop} alone)"
            yield from _difference("batch_invariance", case, Reason.BITS_BATCH, a, b[start:stop], what)


def inputs_untouched(implementation: Implementation, dtype: str, runner: Runner) -> Iterator[Finding]:
    """Ordinary, special and masked rows; the call itself compares what it handed over."""
    cases = [usual_case(implementation, dtype, 4, n) for n in (1, 33, 257)]
    cases.append(usual_case(implementation, dtype, 60, 9, regime="specials"))
    if "mask" in implementation.parameters:
        cases.append(replace(usual_case(implementation, dtype, 18, 65), mask="each"))
    for case in cases:
        run = runner(implementation, case.inputs)
        if run.reason is Reason.WROTE_INPUT:
            yield Finding("inputs_untouched", case, run.reason, f"  {case.id}: {run.detail}")


def strides(implementation: Implementation, dtype: str, runner: Runner) -> Iterator[Finding]:
    """Views of unusual memory, judged by the oracle where the same values in contiguous memory pass."""
    for n in (7, 64, 129):
        for name, arrange in LAYOUTS.items():
            case = usual_case(implementation, dtype, rows=5, n=n)
            if name == "stride0":  # shows the first row five times
                arrays = dict(case.inputs.arrays) | {"x": np.repeat(case.inputs.x[:1], 5, axis=0)}
                case = explicit_case(case.op, dtype, case.regime, arrays, case.eps)
            arranged = verdict(implementation, case, runner, arrange=arrange).findings()
            if arranged and not verdict(implementation, case, runner).findings():
                yield Finding("strides", case, arranged[0].reason, f"  layout {name}\n{arranged[0].story}")


def out_buffer(implementation: Implementation, dtype: str, runner: Runner) -> Iterator[Finding]:
    """A poisoned buffer between guard words: filled as the call without one fills its own, and nothing beside it."""
    for rows, n in ((1, 1), (3, 31), (2, 64), (3, 257), (2, 1000)):
        case = usual_case(implementation, dtype, rows, n)
        handed = verdict(implementation, case, runner, with_out=True).findings()
        if handed and not verdict(implementation, case, runner).findings():
            yield Finding("out_buffer", case, handed[0].reason, handed[0].story)


# What scales as its row does, to this power, by output.
DEGREES = {"rms_norm": (0,), "fused_add_rms_norm": (0, 1)}


def exact_scaling(implementation: Implementation, dtype: str, runner: Runner) -> Iterator[Finding]:
    """rms_norm(x 2^k, eps 4^k) = rms_norm(x, eps): powers of two commute with every rounding. So they do with the
    updated residual."""
    for n in (1, 33, 300):
        case = usual_case(implementation, dtype, rows=8, n=n)
        base, problem = _run("exact_scaling", implementation, case, runner)
        yield from problem
        for k in POWERS:
            eps = {"eps": (case.eps or 0.0) * 4.0**k}
            scaled = Inputs(case.fmt, _every_row(case, lambda rows, k=k: _times_power(rows, k)), eps)
            run, problem = _run("exact_scaling", implementation, case, runner, scaled)
            yield from problem
            for a, b, degree in zip(run.outputs, base.outputs, DEGREES[case.op], strict=False):
                wanted, what = _times_power(b, degree * k), f"the row not scaled by 2^{k}"
                yield from _difference("exact_scaling", case, Reason.BITS_LAW, a + 0, wanted + 0, what)


def odd_symmetry(implementation: Implementation, dtype: str, runner: Runner) -> Iterator[Finding]:
    """rms_norm(-x) = -rms_norm(x) without a bias: rounding to nearest knows no sign, and zeros have none (+ 0)."""
    for n in (1, 33, 300):
        case = usual_case(implementation, dtype, rows=8, n=n)
        mirrored = Inputs(case.fmt, _every_row(case, np.negative), case.inputs.parameters)
        (base, problem), (run, other) = (
            _run("odd_symmetry", implementation, case, runner),
            _run("odd_symmetry", implementation, case, runner, mirrored),
        )
        yield from problem + other
        for a, b in zip(run.outputs, base.outputs, strict=False):
            yield from _difference("odd_symmetry", case, Reason.BITS_LAW, -a + 0, b + 0, "the row not negated")


def _every_row(case: Case, change: Callable[[Array], Array]) -> dict[str, Array]:
    """The case's arrays, with x and the residual changed."""
    arrays = dict(case.inputs.arrays)
    return arrays | {name: change(arrays[name]) for name in ("x", "residual") if name in arrays}


def _times_power(values: Array, k: int) -> Array:
    return np.ldexp(values.astype(np.float64), k).astype(values.dtype)


def output_range(implementation: Implementation, dtype: str, runner: Runner) -> Iterator[Finding]:
    """softmax is never negative, and exceeds 1 by no more than the bound allows (accuracy sees to that)."""
    for regime in ("thousand_scale_logits", "moderate_logits", "all_equal", "one_dominant"):
        for n in (1, 33, 300):
            case = usual_case(implementation, dtype, 4, n, regime)
            for y in runner(implementation, case.inputs).outputs:
                if (y.astype(np.float64) < 0).any():
                    index = tuple(int(i) for i in np.argwhere(y.astype(np.float64) < 0)[0])
                    shown = f"  {case.id}: element {list(index)} is {with_bits(y[index], case.fmt)}"
                    yield Finding("output_range", case, Reason.BITS_LAW, shown)


def _always(implementation: Implementation) -> bool:
    return True


def _scales(implementation: Implementation) -> bool:
    return implementation.op in DEGREES


LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law(
            "determinism",
            f"{REPEATS} runs give the same bits.",
            lambda i: i.contract.deterministic,
            determinism,
        ),
        Law(
            "batch_invariance",
            "A row's bits depend neither on the rows beside it nor on its place.",
            lambda i: i.contract.deterministic and i.contract.batch_invariant,
            batch_invariance,
        ),
        Law("inputs_untouched", "No input bit changes.", _always, inputs_untouched),
        Law("strides", "Any strides are read right.", lambda i: not i.contract.contiguous_only, strides),
        Law("out_buffer", "An out buffer is filled, and nothing beside it.", lambda i: i.takes_out, out_buffer),
        Law("exact_scaling", "Powers of two scale through, bit for bit.", _scales, exact_scaling),
        Law("odd_symmetry", "The sign passes through, bit for bit.", _scales, odd_symmetry),
        Law("output_range", "No weight is negative.", lambda i: i.op == "softmax", output_range),
    )
}
