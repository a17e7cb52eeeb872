"""What claims change: a budget replaces the bound, others sharpen it, declare a weaker form, or leave rows out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from faulty import claiming, found, made, registered, row_case
from gpu_impls.numpy.precision import load, store
from gpu_impls.numpy.shifting import row_maximum
from gpu_impls.numpy.summation import pairwise_sum
from gpu_impls.outcome import Reason
from oracles.arithmetics import BEST
from oracles.formats import format_named
from oracles.rounding import round_floats
from oracles.truth import compute_truth
from properties.case import Case
from properties.oracle_check import verdict
from test_judge import INF, NAN, judged, reasons

WITHIN, OVER, BUDGET = Reason.WITHIN, Reason.OVER_BOUND, Reason.OVER_BUDGET
OUTSIDE, BLURRED = Reason.OUTSIDE_DOMAIN, Reason.ILL_CONDITIONED

SMALL_LSE = row_case("logsumexp", [0.0, -20.0])  # 2.0611536e-9
MEAN = row_case("mean", [1.0, 1.0, 1.0, 2.0])  # 1.25


@pytest.mark.parametrize(
    ("case", "computed", "default", "claimed"),
    [
        (SMALL_LSE, 0.0, WITHIN, BUDGET),
        (SMALL_LSE, 2.0611536e-9, WITHIN, WITHIN),
        (MEAN, 1.25 + 2.0**-23, WITHIN, BUDGET),
        (MEAN, 1.26, OVER, BUDGET),
        (MEAN, NAN, Reason.SPECIAL, Reason.SPECIAL),
    ],
    ids=["lse-zero", "lse-right", "one-ulp", "wrong", "nan"],
)
def test_a_small_budget_is_sharper_than_the_bound(case: Case, computed: float, default: Reason, claimed: Reason):
    assert reasons(case, [computed]) == [default]
    assert reasons(case, [computed], max_ulp=0.5) == [claimed]


@pytest.mark.parametrize(("ulps", "verdict_"), [(999, WITHIN), (1000, WITHIN), (1001, BUDGET)])
def test_a_large_budget_takes_the_place_of_the_bound(ulps: int, verdict_: Reason):
    computed = [1.25 + ulps * 2.0**-23]
    assert reasons(MEAN, computed) == [OVER]
    judgement = judged(MEAN, computed, max_ulp=1000)
    assert judgement.reason_at((0,)) is verdict_
    assert judgement.used.item() == ulps / 1000


def test_a_budget_between_the_ends_of_an_enclosure_is_left_undecided():
    """1 + x / root cancels: what double words say of the error, 0.593323, is off by as much as their radius allows."""
    case = row_case("rms_norm", [-0.1355481594800949], bias=[1.0], eps=1e-6)
    computed = [2.7212287022848614e-05]
    sharper = replace(case)
    sharper.__dict__["truths"] = compute_truth(case.operator, case.inputs, BEST)  # 0.593348
    assert reasons(sharper, computed, max_ulp=0.59333) == [BUDGET]
    assert reasons(case, computed, max_ulp=0.59333) == [Reason.UNDECIDED]
    for either in (case, sharper):
        assert reasons(either, computed, max_ulp=0.5931) == [BUDGET]
        assert reasons(either, computed, max_ulp=0.5936) == [WITHIN]


def test_a_budget_for_another_format_changes_nothing():
    assert reasons(MEAN, [1.26], dtypes=("float32", "bfloat16"), max_ulp={"bfloat16": 1e9}) == [OVER]


def test_a_budget_judges_rows_that_the_bound_leaves_undecided():
    case = row_case("layer_norm", [[1e7, 1e7 + 1] * 32])
    positive = np.abs(case.truths[0].rounded)
    assert set(reasons(case, positive)) == {BLURRED}
    assert reasons(case, positive, max_ulp=4) == [BUDGET, WITHIN] * 32


@pytest.mark.parametrize(
    ("row", "left_out"),
    [([1e7, 1e7 + 1] * 32, True), ([1e3, 1e3 + 1] * 32, False), ([1e7] * 64, False), ([1e5, 1e5 + 1], False)],
    ids=["large-mean", "moderate-mean", "constant", "short"],
)
def test_layer_norm_rows_whose_bound_leaves_nothing_to_judge(row: list[float], left_out: bool):
    judgement = judged(row_case("layer_norm", row), np.full(len(row), 1e6))
    assert (judgement.reason_at((0, 0)) is BLURRED) == left_out
    assert judgement.failed.any() != left_out


FLUSHED = {  # a softmax weight that is subnormal in storage, answered with 0
    "float32": ("float32", -100.0, True),
    "bfloat16": ("bfloat16", -90.0, True),
    "float64": ("float64", -740.0, True),
    "float16": ("float16", -15.5, False),  # its subnormals are normal numbers of float32, where flushing happens
}


@pytest.mark.parametrize(("dtype", "low", "excused"), FLUSHED.values(), ids=FLUSHED)
def test_flushed_results_are_excused_if_declared_and_possible(dtype: str, low: float, excused: bool):
    case = row_case("softmax", [0.0, low], dtype)
    assert 0 < float(case.truths[0].rounded[0, 1]) < case.fmt.smallest_normal
    assert reasons(case, [1.0, 0.0]) == [WITHIN, OVER]
    assert reasons(case, [1.0, 0.0], subnormals="flush") == [WITHIN, WITHIN if excused else OVER]


def test_rows_with_subnormal_inputs_are_not_judged_if_they_may_be_flushed():
    case = row_case("sum", [[1e-40, 0.0], [1e-30, 0.0], [INF, 1e-40]])
    assert reasons(case, [1.0] * 3) == [OVER, OVER, Reason.SPECIAL]
    assert reasons(case, [1.0] * 3, subnormals="flush") == [OUTSIDE, OVER, OUTSIDE]
    hidden = row_case("sum", [1e-40, 1.0], mask=[False, True])
    assert reasons(hidden, [2.0], subnormals="flush") == [OVER]


DOMAIN = {  # rows of rms_norm, layer_norm, var, sum under the domain (1e-3, 1e18), and whether they lie outside
    "small": ("rms_norm", [1e-4, 1.0], True),
    "large": ("rms_norm", [1.0, 2e18], True),
    "zero": ("rms_norm", [0.0, 1.0], False),
    "inside": ("rms_norm", [1e-3, 1e3], False),
    "infinite": ("rms_norm", [INF, 1.0], False),
    "squares": ("rms_norm", [1e18] * 100, True),
    "few-squares": ("rms_norm", [1e18] * 50, False),
    "many-values": ("sum", [1e18] * 100, False),
    "variance": ("var", [1.0, 1.0 + 2e-4], True),
    "constant": ("var", [1.0, 1.0], False),
    "variance-with-eps": ("layer_norm", [1.0, 1.0 + 2e-4], False),
}


@pytest.mark.parametrize(("op", "row", "outside"), DOMAIN.values(), ids=DOMAIN)
def test_rows_outside_of_the_domain_are_not_judged(op: str, row: list[float], outside: bool):
    case = row_case(op, row)
    wrong = np.full(case.truths[0].rounded.shape, 77.0)
    assert judged(case, wrong).failed.any()
    judgement = judged(case, wrong, domain=(1e-3, 1e18))
    assert (judgement.reason_at((0,) * wrong.ndim) is OUTSIDE) == outside
    assert judgement.failed.any() != outside


ABSORBED = row_case("sum", [[1.0] + [2.0**-24.5] * 8191])


@pytest.mark.parametrize(
    ("summation", "passes"),
    [(None, True), ("lanes:256", False), ("lanes:1", True), ("tree", False), ("compensated", False)],
)
def test_a_claimed_order_makes_the_judge_sharper(summation: str | None, passes: bool):
    """Left to right, each of 8191 small elements is lost: 70 % of the bound of any order, 128 times that of lanes."""
    (judgement,) = verdict(claiming(registered("sum", "sequential"), summation=summation), ABSORBED).judgements
    assert judgement.failed.any() != passes
    assert (judgement.used.item() > 100) == (not passes)
    assert summation is not None or 0.6 < judgement.used.item() < 0.8


@pytest.mark.parametrize("summation", ["lanes:256", "tree", "compensated"])
def test_an_order_that_keeps_its_claim_passes(summation: str):
    name = "kahan" if summation == "compensated" else "pairwise"
    assert not found(claiming(registered("sum", name), summation=summation), ABSORBED)


ROUGH_BF16 = Case("sum", "bfloat16", "standard_normal", rows=8, n=64)
ROUGH_F32 = Case("sum", "float32", "standard_normal", rows=8, n=300)


@pytest.mark.parametrize(
    ("name", "case", "claims", "passes"),
    [
        ("bfloat16_accumulator", ROUGH_BF16, {}, False),
        ("bfloat16_accumulator", ROUGH_BF16, {"accumulate": "bfloat16"}, True),
        ("sequential", ROUGH_F32, {}, True),
        ("sequential", ROUGH_F32, {"accumulate": "float64"}, False),
    ],
    ids=["narrow", "narrow-declared", "float32", "float64-claimed"],
)
def test_the_claimed_accumulator_sets_the_unit(name: str, case: Case, claims: dict[str, Any], passes: bool):
    claimed = claiming(registered("sum", name), case.dtype, **claims)
    assert found(claimed, case) == (set() if passes else {"accuracy"})


def cast_before_weight(x, weight=None, bias=None, eps=1e-6):
    normal = registered("rms_norm", "plain").function(x, eps=eps)
    return normal if weight is None else store(load(normal) * weight.astype(np.float32), like=x)


@pytest.mark.parametrize(("cast", "broken"), [(None, {"accuracy"}), ("before_weight", set())])
def test_a_cast_before_the_weight_must_be_declared(cast: str | None, broken: set[str]):
    case = Case("rms_norm", "bfloat16", "standard_normal", rows=8, n=64, weight=True)
    implementation = made("rms_norm", cast_before_weight, ("bfloat16",), cast=cast)
    assert found(implementation, case) == broken


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("claims", "broken"), [({}, {"accuracy"}), ({"through": "float32"}, set())])
def test_a_way_to_storage_through_another_format_must_be_declared(claims: dict[str, str], broken: set[str], dtype: str):
    """Just beyond a midpoint of 16 bits, by less than float32 shows: the second rounding goes to the even neighbour."""
    step = 2.0 ** (-7 if dtype == "bfloat16" else -10)
    case = row_case("sum", [[1.0, step / 2, 2.0**-24], [1.0, step, step]], dtype)

    def twice_rounded(x, mask=None):
        return x.astype(np.float64).sum(axis=-1).astype(np.float32).astype(x.dtype)

    assert found(made("sum", twice_rounded, (dtype,), accumulate="float64", **claims), case) == broken


@pytest.mark.parametrize("factor", [1 + 2.0**-11, 1 - 2.0**-11])
def test_a_way_through_another_format_excuses_no_more_than_that(factor: float):
    def off(x, mask=None):
        return round_floats(x.astype(np.float64).sum(axis=-1) * factor, format_named("float16"))

    case = Case("sum", "float16", "standard_normal", rows=16, n=40)
    assert found(made("sum", off, ("float16",), accumulate="float64", through="float32"), case) == {"accuracy"}


def separate_products(x: np.ndarray) -> np.ndarray:
    """softmax by exp2(x c - m c), each product rounded on its own."""
    log2_e = np.float32(1.4426950408889634)
    weights = np.exp2(x * log2_e - (row_maximum(x) * log2_e)[:, None])
    return weights / pairwise_sum(weights)[:, None]


def far_row(op: str) -> Case:
    return row_case(op, 1e6 + np.arange(16.0).reshape(1, -1) / 4)


UNFUSED = {
    "softmax": made("softmax", separate_products),
    "log_softmax": made("log_softmax", registered("log_softmax", "by_logsumexp").function),
}


@pytest.mark.parametrize("op", UNFUSED)
def test_an_unfused_shift_is_refused_unless_declared(op: str):
    near, far = row_case(op, np.arange(16.0) / 4), far_row(op)
    assert found(UNFUSED[op], near) == set()
    assert found(UNFUSED[op], far) == {"accuracy"}
    assert found(claiming(UNFUSED[op], shift="unfused"), near, far) == set()


@pytest.mark.parametrize("op", UNFUSED)
@pytest.mark.parametrize("regime", ["far_below_zero", "thousand_scale_logits", "moderate_logits", "rising_tiles"])
def test_a_declared_unfused_shift_passes_wherever_the_suite_looks(op: str, regime: str):
    cases = [Case(op, "float32", regime, rows=8, n=n, seed=9) for n in (2, 10, 64, 300)]
    assert found(claiming(UNFUSED[op], shift="unfused"), *cases) == set()


def test_the_declaration_excuses_no_other_fault():
    """Rows under zero, where padding with zeros takes all the mass."""
    padded = claiming(registered("softmax", "padded_with_zero"), shift="unfused")
    assert found(padded, row_case("softmax", -1e6 + np.arange(15.0) / 4)) == {"accuracy"}
