"""Measurements: the schema, what becomes of a verdict, and tables that no order or split of the work changes."""

import random
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty import made, row_case, softmax, total
from gpu_impls.call import Run
from gpu_impls.outcome import Outcome, Reason
from gpu_impls.registry import Implementation
from oracles.enclosure import Ground
from properties.case import Case
from properties.judge import expect, judge
from properties.oracle_check import Verdict, verdict
from reports.measurement import COLUMNS, Measurement, Partial, collect, partials

ISSUE = (
    """op, impl, dtype, output, regime, n, rows, elements, max_ulp, p99_ulp, mean_ulp, max_row_ulp, misrounded,
    condition, bound_used, special_mismatches, outcome, reason, coverage, ground, worst_case, output_bits,
    input_bits""".replace("\n", "")
    .replace(" ", "")
    .split(",")
)
OURS = {"compared", "misrounded_high", "rows_not_judged", "arithmetic", "detail"}


def measured(implementation: Implementation, *cases: Case) -> Measurement:
    """The one measurement these cases of one regime and length make."""
    (only,) = collect([part for case in cases for part in partials(verdict(implementation, case))])
    return only


def next_up(x, mask=None):
    """A sum one ULP too large."""
    return np.nextafter(total(x, mask), np.float32(np.inf), dtype=np.float32)


def test_columns_are_those_of_the_issue_in_its_order_and_ours():
    assert [c for c in COLUMNS if c not in OURS] == ISSUE
    assert set(COLUMNS) == {*ISSUE, *OURS}


def test_numbers_of_a_small_measurement_by_hand():
    """3 + 4 = 7 and 1 + 0 = 1, each computed one ULP too large; an ULP of 1 is a quarter of one of 7, and no matter."""
    case = row_case("sum", [[3, 4], [1, 0]])
    m = measured(made("sum", next_up), case)
    assert (m.op, m.impl, m.dtype, m.output, m.regime, m.n) == (
        "sum", "next_up", "float32", "y", "standard_normal", 2,
    )  # fmt: skip
    assert (m.rows, m.elements, m.compared, m.misrounded, m.special_mismatches, m.rows_not_judged) == (2, 2, 2, 2, 0, 0)
    assert (m.max_ulp, m.p99_ulp, m.mean_ulp, m.max_row_ulp, m.condition) == (1, 1, 1, 1, 1)
    assert (m.outcome, m.reason, m.coverage, m.ground, m.detail) == (
        "pass",
        "within the bound",
        "sampled",
        "proved",
        "",
    )
    assert m.worst_case == f"{case.id}@0"
    assert int(m.input_bits, 16) == int(case.inputs.digest(), 16)


def test_errors_in_ulps_of_the_row_are_those_of_its_largest_output():
    """softmax(0, -20 ln 2): the small output lies 20 or 21 binades below the large one."""

    def off(x, mask=None):
        y = softmax(x, mask)
        y[:, 1] *= 2
        return y

    m = measured(made("softmax", off), row_case("softmax", [[0.0, -13.862944]]))
    assert (m.outcome, m.reason, m.worst_case[-4:]) == (Outcome.FAIL, "over the bound", "@0.1")
    assert 2**23 * 0.99 < m.max_ulp < 2**24
    assert m.max_ulp / 2**21 < m.max_row_ulp < m.max_ulp / 2**18


@pytest.mark.parametrize("op", ["sum", "softmax"])
@pytest.mark.parametrize(
    ("function", "reason", "detail"),
    [
        (lambda x, mask=None: [1.0], Reason.WRONG_SHAPE, "returned a list"),
        (lambda x, mask=None: None, Reason.WRONG_SHAPE, "returned a NoneType"),
        (lambda x, mask=None: 1 / 0, Reason.RAISED, "ZeroDivisionError: division by zero"),
    ],
    ids=["list", "None", "raises"],
)
def test_a_run_without_result_is_a_measurement_with_its_reason(op: str, function, reason: Reason, detail: str):
    case = row_case(op, [[1, 2, 3], [4, 5, 6]])
    m = measured(made(op, function, name="bad"), case)
    assert (m.outcome, m.reason, m.worst_case) == (Outcome.FAIL, str(reason), case.id)
    assert (m.rows, m.elements, m.compared) == (2, 2 if op == "sum" else 6, 0)
    assert (m.max_ulp, m.p99_ulp, m.mean_ulp, m.bound_used) == (0, 0, 0, 0)
    assert m.output_bits == "0" * 16
    assert detail in m.detail


def test_what_is_not_supported_is_counted_and_says_why():
    m = measured(made("sum", total, min_length=4), row_case("sum", [[1, 2]]))
    assert (m.outcome, m.reason, m.rows_not_judged) == (Outcome.NOT_JUDGED, "not supported", 1)
    assert m.detail == "n = 2 is outside of min_length, max_length"


def test_nothing_compared_is_an_outcome():
    m = measured(made("softmax", softmax), Case("softmax", "float32", "lengths", rows=3, n=0))
    assert (m.outcome, m.reason, m.elements) == (Outcome.NOT_JUDGED, "nothing compared", 0)
    assert Case.parse(m.worst_case).rows == 3


def test_rows_outside_the_domain_are_measured_but_not_judged():
    inside, outside = row_case("sum", [[1, 2]]), row_case("sum", [[1, 2**100]])
    narrow = made("sum", next_up, domain=(1e-3, 1e3), name="narrow")
    m = measured(narrow, outside)
    assert (m.outcome, m.reason, m.rows_not_judged, m.compared) == (Outcome.NOT_JUDGED, "outside its domain", 1, 1)
    m = measured(narrow, inside, outside)
    assert (m.outcome, m.reason, m.rows_not_judged, m.rows) == (Outcome.PASS, "within the bound", 1, 2)


REPORTED = [
    Case("softmax", "float32", "specials", rows=23, n=5, mask="each"),
    Case("logsumexp", "float64", "masks", rows=27, n=9),
    Case("sum", "bfloat16", "near_ties", rows=40, n=3),
    Case("layer_norm", "float16", "large_mean_small_variance", rows=12, n=7, weight=True),
]
PLACES = {"worst_case", "output_bits", "input_bits", "levels"}


def faithless(case: Case) -> Run:
    """Correctly rounded results but for every fifth, which is a little off, and every seventh, which is NaN."""
    y = np.array(case.truths[0].rounded)
    flat = y.reshape(-1)
    flat[::5] *= y.dtype.type(1.25)
    flat[3::7] = np.nan
    return Run((y,))


def part_of(whole: Verdict, start: int, stop: int) -> Partial:
    """What the rows from ``start`` to ``stop`` alone come to."""
    case, claims = whole.case, whole.implementation.contract
    truths = tuple(
        replace(t, enclosure=t.enclosure[start:stop], rounded=t.rounded[start:stop], decided=t.decided[start:stop])
        for t in case.truths
    )
    (expectation,) = expect(case.operator, case.inputs.rows(start, stop), truths, claims)
    judged = judge(whole.run.outputs[0][start:stop], expectation)
    (part,) = partials(replace(whole, judgements=(judged,)))
    return part


@pytest.mark.parametrize("case", REPORTED, ids=str)
@settings(max_examples=20, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_any_split_of_the_rows_gives_the_same_numbers(case: Case, data: st.DataObject):
    some = made(case.op, softmax, (case.dtype,), domain=(1e-30, 1e3) if case.op == "sum" else None)
    whole = verdict(some, case, lambda *_: faithless(case))
    cuts = sorted(data.draw(st.sets(st.integers(1, case.rows - 1), max_size=4)) | {0, case.rows})
    parts = [part_of(whole, start, stop) for start, stop in pairwise(cuts)]
    told, expected = (asdict(collect(p)[0]) for p in (parts, partials(whole)))
    assert sorted(told["levels"]) == sorted(expected["levels"])
    assert {k: v for k, v in told.items() if k not in PLACES} == {k: v for k, v in expected.items() if k not in PLACES}


def test_any_order_of_the_parts_gives_the_same_list():
    kernels = [made("sum", total), made("sum", next_up), made("sum", lambda x: None, name="none")]
    cases = [Case("sum", "float32", "absorbed", 3, n, seed) for n in (4, 9) for seed in (0, 1)]
    parts = [part for case in cases for kernel in kernels for part in partials(verdict(kernel, case))]
    expected = collect(parts)
    assert [(m.impl, m.n, m.rows) for m in expected] == [
        ("next_up", 4, 6), ("next_up", 9, 6), ("none", 4, 6), ("none", 9, 6), ("total", 4, 6), ("total", 9, 6),
    ]  # fmt: skip
    for seed in range(5):
        assert collect(random.Random(seed).sample(parts, len(parts))) == expected


def test_one_grouping_of_merges_is_as_good_as_another():
    a, b, c = (partials(verdict(made("sum", next_up), row_case("sum", [[k, 1.5]])))[0] for k in range(3))
    assert (a | b) | c == a | (b | c) == c | b | a
    assert (a | b).output_bits == a.output_bits ^ b.output_bits


def test_the_first_detail_in_order_of_text_is_kept():
    part = partials(verdict(made("sum", total), row_case("sum", [[1, 2]])))[0]
    details = [replace(part, detail=text) for text in ("", "b", "a")]
    assert (details[0] | details[1] | details[2]).detail == "a"


def test_the_weakest_ground_stands_for_all_and_every_arithmetic_is_named():
    part = partials(verdict(made("sum", total), row_case("sum", [[1, 2]])))[0]
    both = part | replace(part, grounds=frozenset({Ground.MPMATH}), arithmetics=frozenset({"mpmath"}))
    assert (both.finish().ground, both.finish().arithmetic) == (Ground.MPMATH, "double_words mpmath")


@pytest.mark.parametrize("field", ["op", "regime", "n"])
def test_different_measurements_do_not_merge(field: str):
    a, b = Case("sum", "float32", "absorbed", 2, 8), {"op": "mean", "regime": "all_equal", "n": 9}
    one, other = (partials(verdict(made(c.op, total), c))[0] for c in (a, replace(a, **{field: b[field]})))
    with pytest.raises(ValueError, match="cannot merge measurements of"):
        _ = one | other
