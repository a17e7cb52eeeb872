"""Laws: a small fault against each is found by that law alone, and its right twin breaks none."""

from collections.abc import Callable
from typing import Any

import pytest

import faulty_laws as faults
from faulty import found, made, softmax, total
from gpu_impls.call import call
from gpu_impls.numpy.fused_add_rms_norm import unrounded
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation
from oracles.formats import FORMATS
from properties.battery import regime_cases
from properties.finding import Finding
from properties.laws import BATCHES, LAWS, REPEATS

Function = Callable[..., Any]
Claims = dict[str, Any]

RMS = {"domain": (1e-15, 1e15)}
RACY = {"batch_invariant": False}


def findings(law: str, implementation: Implementation) -> list[Finding]:
    (dtype,) = implementation.contract.dtypes
    return list(LAWS[law].check(implementation, dtype, call))


def broken_laws(implementation: Implementation) -> set[str]:
    """The laws that the implementation claims and breaks."""
    claimed = [law for law in LAWS.values() if law.applies(implementation)]
    return {f.property for law in claimed for f in findings(law.name, implementation)}


BREAKS: list[tuple[str, str, Function, Claims]] = [
    ("determinism", "sum", faults.EveryOtherRun(), RACY),
    ("determinism", "sum", faults.OnceInThirty(), RACY),
    ("batch_invariance", "sum", faults.order_by_rows, {}),
    ("batch_invariance", "sum", faults.order_by_place, {}),
    ("inputs_untouched", "sum", faults.writes_nan_to_zero, {}),
    ("inputs_untouched", "sum", faults.writes_into_the_mask, {}),
    ("strides", "sum", faults.ignores_strides, {}),
    ("strides", "sum", faults.assumes_a_row_stride_of_n, {}),
    ("out_buffer", "softmax", faults.leaves_out_the_tail, {}),
    ("out_buffer", "softmax", faults.writes_whole_vectors, {}),
    ("out_buffer", "softmax", faults.adds_to_out, {}),
    ("exact_scaling", "rms_norm", faults.above_three, RMS),
    ("odd_symmetry", "rms_norm", faults.towards_zero, RMS),
    ("exact_scaling", "fused_add_rms_norm", faults.fused_above_three, RMS),
    ("odd_symmetry", "fused_add_rms_norm", faults.fused_towards_zero, RMS),
    ("output_range", "softmax", faults.negative_zeros, {}),
]

each_break = pytest.mark.parametrize(
    ("law", "op", "function", "claims"),
    BREAKS,
    ids=[f"{law}-{getattr(f, '__name__', type(f).__name__)}" for law, _, f, _ in BREAKS],
)


@each_break
def test_a_fault_breaks_exactly_one_law(law: str, op: str, function: Function, claims: Claims):
    assert broken_laws(made(op, function, **claims)) == {law}


@each_break
def test_the_oracle_alone_does_not_see_it(law: str, op: str, function: Function, claims: Claims):
    assert found(made(op, function, **claims), *regime_cases(op, "float32", (10, 33))) == set()


TWINS: list[tuple[str, Function, Claims]] = [
    ("sum", total, {}),
    ("softmax", softmax, {}),
    ("softmax", faults.softmax_into, {}),
    ("rms_norm", faults.rms_norm, RMS),
    ("fused_add_rms_norm", unrounded, RMS),
]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("op", "function", "claims"), TWINS, ids=[f.__name__ for _, f, _ in TWINS])
def test_the_right_twins_break_none(op: str, function: Function, claims: Claims, dtype: str):
    assert broken_laws(made(op, function, (dtype,), **claims)) == set()


def test_there_is_a_fault_for_every_law():
    assert {law for law, *_ in BREAKS} == LAWS.keys()


@pytest.mark.parametrize(
    ("claims", "not_claimed"),
    [
        ({"deterministic": False}, {"determinism", "batch_invariance"}),
        ({"batch_invariant": False}, {"batch_invariance"}),
        ({"contiguous_only": True}, {"strides"}),
        ({}, set()),
    ],
    ids=["not deterministic", "batch dependent", "contiguous only", "everything"],
)
def test_a_law_is_checked_where_it_is_claimed(claims: dict[str, bool], not_claimed: set[str]):
    everywhere = {"determinism", "batch_invariance", "inputs_untouched", "strides", "out_buffer", "output_range"}
    implementation = made("softmax", faults.softmax_into, **claims)
    assert {law.name for law in LAWS.values() if law.applies(implementation)} == everywhere - not_claimed
    assert not LAWS["out_buffer"].applies(made("softmax", softmax))


def test_the_laws_look_often_enough():
    assert REPEATS >= 32
    assert {1, 2, 255, 256, 257} <= set(BATCHES)


REASONS = [
    ("determinism", "sum", faults.EveryOtherRun(), Reason.BITS_RUNS, "gives "),
    ("batch_invariance", "sum", faults.order_by_place, Reason.BITS_BATCH, "the batch of 257"),
    ("odd_symmetry", "rms_norm", faults.towards_zero, Reason.BITS_LAW, "the row not negated gives"),
    ("exact_scaling", "rms_norm", faults.above_three, Reason.BITS_LAW, "the row not scaled by 2"),
    ("out_buffer", "softmax", faults.leaves_out_the_tail, Reason.UNWRITTEN, "through the out parameter"),
    ("out_buffer", "softmax", faults.writes_whole_vectors, Reason.GUARD, "through the out parameter"),
    ("inputs_untouched", "sum", faults.writes_into_the_mask, Reason.WROTE_INPUT, "mask changed"),
    ("strides", "sum", faults.ignores_strides, Reason.OVER_BOUND, "layout transposed"),
    ("output_range", "softmax", faults.negative_zeros, Reason.BITS_LAW, "0x80000001"),
]


@pytest.mark.parametrize(
    ("law", "op", "function", "reason", "words"), REASONS, ids=[f"{r[0]}-{r[3].name}" for r in REASONS]
)
def test_what_is_found_says_where_and_why(law: str, op: str, function: Function, reason: Reason, words: str):
    broken = findings(law, made(op, function))
    assert reason in {f.reason for f in broken}
    assert any(words in f.story for f in broken)
    assert all(f.case.id in f.story for f in broken)


@pytest.mark.parametrize("law", ["determinism", "batch_invariance", "exact_scaling", "odd_symmetry"])
def test_a_law_that_gets_no_result_says_so(law: str):
    def raises(x, weight=None, bias=None, eps=1e-6):
        raise RuntimeError("no device")

    broken = findings(law, made("rms_norm", raises))
    assert {(f.property, f.reason) for f in broken} == {(law, Reason.RAISED)}
