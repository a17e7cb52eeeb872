"""What bounds are made of: depth of sums, roundoffs, the tolerance of the judge, and the rows that decide nothing."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from oracles.bounds import ErrorModel, half_ulp_at, tolerance
from oracles.classes import ElementClass
from oracles.formats import FORMATS, Format
from oracles.operator import Inputs, Operator
from oracles.truth import compute_truth
from oracles.ulp import ulp
from test_oracles_formats import decode, some_patterns
from test_oracles_inputs import ALONE as OPERATORS
from test_oracles_inputs import INF, cases_for, each_format, each_operator, given

F32, F64 = FORMATS["float32"], FORMATS["float64"]
PLAIN = ErrorModel(F32)

# n, then h for sums in any order, by "lanes:32", "lanes:256", "tree" and "compensated" in float32.
DEPTHS = [
    (0, 0, 0, 0, 0, 0),
    (1, 0, 0, 0, 0, 0),
    (2, 1, 1, 1, 1, 1),
    (3, 2, 2, 2, 2, 2),
    (4, 3, 3, 3, 3, 2 + 16 / 2**24),
    (9, 8, 8, 8, 7, 2 + 81 / 2**24),
    (33, 32, 10, 12, 9, 2 + 33**2 / 2**24),
    (8192, 8191, 264, 43, 16, 6),
    (128256, 128255, 4016, 512, 20, 2 + 128256**2 / 2**24),
]


@pytest.mark.parametrize("column", range(5), ids=["any-order", "lanes:32", "lanes:256", "tree", "compensated"])
def test_the_depth_of_a_sum(column: int):
    claim = (None, "lanes:32", "lanes:256", "tree", "compensated")[column]
    counts = np.array([row[0] for row in DEPTHS], dtype=np.float64)
    assert ErrorModel(F32, summation=claim).depth(counts).tolist() == [row[1 + column] for row in DEPTHS]


@pytest.mark.parametrize("claim", ["lanes:1", "lanes:32", "tree", "compensated"])
def test_no_claim_is_worse_than_any_order(claim: str):
    counts = np.arange(0, 2e6, 997)
    assert (ErrorModel(F32, summation=claim).depth(counts) <= ErrorModel(F32).depth(counts)).all()


@pytest.mark.parametrize(
    "claim", ["pairwise", "lanes", "lanes:", "lanes:0", "lanes:-4", "lanes:2.5", "tree:2", "Tree", ""]
)
def test_unknown_summations_are_refused(claim: str):
    with pytest.raises(ValueError, match=r"expected 'lanes:T' \(T >= 1\), 'tree' or 'compensated'"):
        ErrorModel(F32, summation=claim)


def test_roundoff_and_underflow_of_the_accumulator():
    assert (PLAIN.u, PLAIN.eta) == (2.0**-24, 2.0**-149)
    assert ErrorModel(F32, flush=True).eta == 2.0**-126
    wide = ErrorModel(F64)
    assert (wide.u, wide.eta, replace(wide, flush=True).eta) == (2.0**-53, 2.0**-1074, 2.0**-1022)


@each_format
def test_half_ulps_are_half_of_ulps(fmt: Format):
    """In double the working precision float64 would lose the half of its own smallest subnormal."""
    values = [decode(fmt, k) for k in some_patterns(fmt)]
    wide = np.longdouble if fmt is F64 else np.float64
    halves = half_ulp_at(np.array([float(v) for v in values], dtype=wide), fmt)
    assert [Fraction(*(h * 2).as_integer_ratio()) for h in halves] == [ulp(v, fmt) for v in values]


@pytest.mark.parametrize(
    ("dtype", "accumulate", "flushed"),
    [
        ("float32", F32, 2.0**-126),
        ("bfloat16", F32, 2.0**-126),
        ("float16", F32, 0.0),
        ("float32", F64, 0.0),
        ("float64", F64, 2.0**-1022),
    ],
)
def test_the_tolerance_adds_what_storage_and_flushing_may_cost(dtype: str, accumulate: Format, flushed: float):
    bound, half = np.array([0.0, 3.0]), np.array([0.0, 0.5])
    for flush, extra in ((False, 0.0), (True, flushed)):
        model = ErrorModel(accumulate, flush=flush)
        assert tolerance(bound, half, FORMATS[dtype], model).tolist() == [extra, 3.5 + extra]


@each_operator
@each_format
def test_bounds_and_conditions_of_values_are_numbers_and_not_negative(fmt: Format, op: Operator):
    """Infinite they may be: where nothing is promised."""
    accumulate = F64 if fmt is F64 else F32
    models = [ErrorModel(accumulate), ErrorModel(accumulate, True, "tree", True, True, True)]
    for case in [case for seed in (0, 1, 2) for case in cases_for(op.name, fmt.name, seed)]:
        inputs = case.inputs
        exact = tuple(t.enclosure.value(inputs.wide.type) for t in case.truths)
        value = op.classify(inputs, "zero")[0] == ElementClass.VALUE
        with np.errstate(all="ignore"):
            numbers = [op.bound(inputs, exact, model)[0] for model in models] + [op.condition(inputs, exact)[0]]
        for found in numbers:
            assert found.shape == value.shape
            assert (found[value] >= 0).all()


def undecided(inputs: Inputs, model: ErrorModel = PLAIN) -> list[bool]:
    op = OPERATORS["layer_norm"]
    exact = tuple(t.enclosure.value() for t in compute_truth(op, inputs))
    with np.errstate(all="ignore"):
        return op.undecided(inputs, exact, op.bound(inputs, exact, model)).tolist()


def shifted(mean: float, n: int) -> list[float]:
    """Mean ``mean``, standard deviation 1."""
    return [mean + (-1) ** i for i in range(n)]


@pytest.mark.parametrize("n", [8, 64, 512])
def test_rows_of_a_mean_far_above_their_spread_decide_nothing(n: int):
    """From mean/std of about 1.7e7/n on."""
    edge = 1.7e7 / n
    rows = [shifted(round(edge * factor), n) for factor in (1 / 100, 1 / 8, 4)]
    assert undecided(given(F32, rows, eps=1e-5)) == [False, False, True]


@pytest.mark.parametrize(("largest_bound", "expected"), [(1.0, False), (np.nextafter(1.0, 2), True)], ids=str)
def test_a_row_decides_nothing_where_its_largest_bound_exceeds_half_its_largest_output(largest_bound, expected):
    outputs, bounds = np.array([[-2.0, 0.5, 1.5]]), np.array([[0.1, 0.2, largest_bound]])
    decide = OPERATORS["layer_norm"].undecided
    assert decide(given(F32, [1, 2, 3], eps=1e-5), (outputs,), (bounds,)).tolist() == [expected]


def test_a_sharper_claim_decides_more():
    inputs = given(F32, shifted(2.0**18, 512), eps=1e-5)
    assert undecided(inputs) == [True]
    assert undecided(inputs, ErrorModel(F32, summation="compensated")) == [False]


@each_format
def test_constant_rows_are_about_the_bias_and_stay(fmt: Format):
    rows = [[1000.0] * 5, [0.0] * 5]
    assert undecided(given(fmt, rows, eps=1e-5)) == [False, False]
    assert undecided(given(fmt, rows, bias=[1, 2, 3, 4, 5], eps=1e-5)) == [False, False]


def test_rows_without_elements_are_decided():
    assert undecided(Inputs(F32, {"x": np.zeros((2, 0), np.float32)}, {"eps": 0.0})) == [False, False]


def test_no_other_operator_leaves_rows_undecided():
    assert [op.name for op in OPERATORS.values() if op.undecided is not None] == ["layer_norm"]


def test_infinite_bounds_are_for_overflowing_sums_only():
    for op in ("var", "max", "logsumexp", "softmax", "log_softmax"):
        for case in cases_for(op, "float32"):
            exact = tuple(t.enclosure.value() for t in case.truths)
            value = case.operator.classify(case.inputs, "zero")[0] == ElementClass.VALUE
            with np.errstate(all="ignore"):
                assert (case.operator.bound(case.inputs, exact, PLAIN)[0][value] < INF).all()
