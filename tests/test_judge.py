"""The judge by default: classes before numbers, then T = B + half an ulp; every way in which it must not be lenient."""

from typing import Any

import numpy as np
import pytest

from faulty import row_case
from gpu_impls.contract import contract
from gpu_impls.outcome import Reason
from oracles.formats import FORMATS
from oracles.rounding import round_floats
from properties.case import Case
from properties.judge import Judgement, expect, judge

NAN, INF = float("nan"), float("inf")

each_format = pytest.mark.parametrize("dtype", FORMATS)


def judged(case: Case, computed: Any, dtypes: tuple[str, ...] = (), **claims: Any) -> Judgement:
    """``computed`` (rounded to the format) against what a contract with these claims allows."""
    (expectation,) = expect(case.operator, case.inputs, case.truths, contract(dtypes or (case.dtype,), **claims))
    values = round_floats(np.asarray(computed, np.float64), case.fmt)
    return judge(values.reshape(expectation.classes.shape), expectation)


def reasons(case: Case, computed: Any, **claims: Any) -> list[Reason]:
    """The verdict on every element."""
    judgement = judged(case, computed, **claims)
    return [judgement.reason_at(index) for index in np.ndindex(judgement.computed.shape)]


WITHIN, OVER, SPECIAL = Reason.WITHIN, Reason.OVER_BOUND, Reason.SPECIAL

# Rows whose sum is of each class, and what is said of five candidates.
CANDIDATES = (3.0, NAN, -NAN, INF, -INF)
BY_CLASS = {
    "VALUE": ([1.0, 2.0], [WITHIN, SPECIAL, SPECIAL, SPECIAL, SPECIAL]),
    "NAN": ([1.0, NAN], [SPECIAL, WITHIN, WITHIN, SPECIAL, SPECIAL]),
    "POS_INF": ([1.0, INF], [SPECIAL, SPECIAL, SPECIAL, WITHIN, SPECIAL]),
    "NEG_INF": ([1.0, -INF], [SPECIAL, SPECIAL, SPECIAL, SPECIAL, WITHIN]),
}


@each_format
@pytest.mark.parametrize(("row", "verdicts"), BY_CLASS.values(), ids=BY_CLASS)
def test_nothing_stands_for_another_class(row: list[float], verdicts: list[Reason], dtype: str):
    """NaN is no wildcard, a finite number no infinity, one infinity not the other."""
    assert reasons(row_case("sum", [row] * 5, dtype), CANDIDATES) == verdicts
    judgement = judged(row_case("sum", [row] * 5, dtype), CANDIDATES)
    assert judgement.failed.tolist() == [v is not WITHIN for v in verdicts]


SPECIAL_ROWS = [
    ("softmax", [2.0, INF, -1.0], [0.0, NAN, 0.0], [SPECIAL, WITHIN, SPECIAL]),
    ("softmax", [1.0, -INF], [1.0, NAN], [WITHIN, SPECIAL]),
    ("softmax", [1.0, -INF], [1.0, 1e-45], [WITHIN, OVER]),
    ("softmax", [-INF, -INF], [0.5, 0.5], [OVER, OVER]),
    ("softmax", [-INF, -INF], [0.0, NAN], [WITHIN, SPECIAL]),
    ("log_softmax", [1.0, -INF], [0.0, -3e38], [WITHIN, SPECIAL]),
    ("log_softmax", [1.0, -INF], [-INF, -INF], [SPECIAL, WITHIN]),
    ("logsumexp", [-INF, -INF], [NAN], [SPECIAL]),
    ("logsumexp", [NAN, INF], [INF], [SPECIAL]),
    ("max", [NAN, 1.0, 2.0], [2.0], [SPECIAL]),
    ("rms_norm", [INF, 1.0], [NAN, 0.0], [WITHIN, WITHIN]),
    ("rms_norm", [INF, 1.0], [INF, NAN], [SPECIAL, SPECIAL]),
    ("layer_norm", [INF, 1.0], [NAN, 0.0], [WITHIN, SPECIAL]),
    ("var", [5.0], [NAN], [SPECIAL]),
]


@pytest.mark.parametrize(
    ("op", "row", "computed", "verdicts"), SPECIAL_ROWS, ids=[f"{op}-{row}-{got}" for op, row, got, _ in SPECIAL_ROWS]
)
def test_one_wrong_element_does_not_hide_among_right_ones(
    op: str, row: list[float], computed: list[float], verdicts: list[Reason]
):
    assert reasons(row_case(op, row), computed) == verdicts


@each_format
@pytest.mark.parametrize("hidden", [NAN, INF, 7.0])
def test_hidden_elements_are_exactly_zero_unless_the_row_is_spoilt(hidden: float, dtype: str):
    case = row_case("softmax", [1.0, hidden], dtype, mask=[True, False])
    assert reasons(case, [1.0, 0.0]) == [WITHIN, WITHIN]
    for leaked in (case.fmt.smallest_subnormal, 2.0**-14, 1.0):
        assert reasons(case, [1.0, leaked]) == [WITHIN, OVER]
    spoilt = row_case("softmax", [NAN, hidden], dtype, mask=[True, False])
    assert reasons(spoilt, [NAN, 7.0]) == [WITHIN, Reason.NOTHING]


def test_sums_that_may_overflow_on_the_way_are_not_compared():
    assert reasons(row_case("sum", [3e38, 3e38, -3e38]), [INF]) == [Reason.NOTHING]


OVERFLOW = {  # float16, whose largest number is 65504 and whose last half step is 16
    "past-the-midpoint": ([65504, 64], {INF: WITHIN, 65504: OVER, -INF: SPECIAL}),
    "at-the-midpoint": ([65504, 16], {INF: WITHIN, 65504: WITHIN, 65472: OVER, -INF: SPECIAL}),
    "far-past-it": ([65504, 65504], {INF: WITHIN, 65504: OVER, -INF: SPECIAL}),
    "under-the-largest": ([65472, 15], {INF: SPECIAL, 65472: WITHIN, 65504: OVER}),
    "negative": ([-65504, -64], {-INF: WITHIN, INF: SPECIAL}),
}


@pytest.mark.parametrize(("row", "verdicts"), OVERFLOW.values(), ids=OVERFLOW)
def test_infinity_is_right_only_where_the_value_overflows(row: list[float], verdicts: dict[float, Reason]):
    case = row_case("sum", [row] * len(verdicts), "float16")
    assert reasons(case, list(verdicts)) == list(verdicts.values())


def test_overflow_of_an_intermediate_is_never_excused():
    assert reasons(row_case("softmax", [1000.0, 1001.0]), [NAN, NAN]) == [SPECIAL, SPECIAL]
    assert reasons(row_case("logsumexp", [0.0, 100.0]), [INF]) == [SPECIAL]
    assert reasons(row_case("rms_norm", [3e19, 4e19], eps=0.0), [0.0, 0.0]) == [OVER, OVER]


@each_format
def test_exact_results_allow_nothing_but_themselves(dtype: str):
    fmt = FORMATS[dtype]
    step = 2 * fmt.unit_roundoff
    for value in (1.5, -1.5, 1.5 * fmt.smallest_normal, 1.5 * 2.0**fmt.emax):
        case = row_case("max", [value], dtype)
        assert [reasons(case, [value + k * step * value / 1.5])[0] for k in (-1, 0, 1)] == [OVER, WITHIN, OVER]
    for value in (0.0, fmt.smallest_subnormal):
        case = row_case("max", [value], dtype)
        assert reasons(case, [value + fmt.smallest_subnormal]) == [OVER]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_storage_costs_half_an_ulp_and_ties_go_either_way(dtype: str):
    """Right or wrong, a tie is within the bound; only bits tell that it was misrounded."""
    fmt = FORMATS[dtype]
    step = 2 * fmt.unit_roundoff
    case = row_case("mean", [1.0, 1.0 + step], dtype)
    judgements = [judged(case, [1.0 + k * step], accumulate="float64") for k in (-1, 0, 1, 2)]
    assert [j.failed.item() for j in judgements] == [True, False, False, True]
    assert [j.errors.item() for j in judgements[1:3]] == [0.5, 0.5]
    assert [j.misrounded.item() for j in judgements] == [True, False, True, True]


EDGES = {"within-b-of-it": (2.0**-24, 2.0**-8), "further-below": (2.0**-23, 2.0**-9)}


@pytest.mark.parametrize(("below", "half_ulp"), EDGES.values(), ids=EDGES)
def test_the_half_ulp_is_that_of_the_binade_which_the_error_may_reach(below: float, half_ulp: float):
    """bfloat16 steps are 2^-8 below 1 and 2^-7 above it; B of [1, -below] is a little over 2^-24."""
    case = row_case("sum", [1.0, -below], "bfloat16")
    judgement = judged(case, [1 - 2.0**-8])
    assert judgement.expectation.half_ulp.item() == half_ulp
    assert judgement.failed.item() == (half_ulp < 2.0**-8)
    assert reasons(case, [1.0]) == [WITHIN]
    assert reasons(case, [1 - 2.0**-7]) == [OVER]


def test_the_half_ulp_of_subnormals_does_not_shrink():
    least = FORMATS["float16"].smallest_subnormal
    case = row_case("mean", [[0.0], [least], [3 * least]], "float16")
    assert judged(case, [0.0, least, 3 * least]).expectation.half_ulp.tolist() == [least / 2] * 3


def test_where_the_bound_is_zero_only_the_correct_rounding_passes():
    """Half an ulp below 1 there is another float32."""
    case = row_case("max", [[1.0], [0.5], [0.0]])
    assert judged(case, [1 - 2.0**-24, 0.5, 2.0**-149]).failed.tolist() == [True, False, True]
    assert not judged(case, [1.0, 0.5, -0.0]).failed.any()


@each_format
def test_zeros_of_both_signs_are_equal(dtype: str):
    for op in ("sum", "max", "mean"):
        judgement = judged(row_case(op, [[0.0, 0.0], [-0.0, -0.0]], dtype), [-0.0, 0.0])
        assert not judgement.failed.any()
        assert not judgement.misrounded.any()


@each_format
@pytest.mark.parametrize("n", [100, 128, 1000])
def test_zeros_do_not_pass_for_a_uniform_softmax_row(n: int, dtype: str):
    case = row_case("softmax", np.zeros((1, n)), dtype)
    assert judged(case, np.zeros(n)).failed.all()
    assert not judged(case, np.full(n, 1 / n)).failed.any()


def test_the_largest_error_does_not_speak_for_the_others():
    """Elementwise: a small element is judged at its own size, not at that of the row's largest."""
    case = row_case("rms_norm", [1.0, 2.0**-20], eps=0.0)
    right = np.array([2**0.5, 2**-19.5])
    assert reasons(case, right) == [WITHIN, WITHIN]
    assert reasons(case, right * [1, 1 + 2.0**-12]) == [WITHIN, OVER]


def test_errors_are_told_in_ulps_of_the_element_and_of_the_row():
    case = row_case("softmax", [[0.0, -2.0]])
    right = judged(case, case.truths[0].rounded.astype(np.float64))
    off = judged(case, case.truths[0].rounded + np.array([[0, 2.0**-27 * 8]]))
    assert off.errors[0, 1] - right.errors[0, 1] == pytest.approx(8, abs=1.01)
    assert off.row_errors[0, 1] == off.errors[0, 1] / 8


@each_format
def test_the_share_of_the_bound_is_told_beyond_storage_in_narrow_formats(dtype: str):
    fmt = FORMATS[dtype]
    case = row_case("mean", [1.0, 1.0 + 2 * fmt.unit_roundoff], dtype)
    used = judged(case, [1.0]).used.item()
    assert used == 0 if fmt.precision < 24 else 0 < used < 1
