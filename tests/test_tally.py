"""Tallies: merged in any order they tell the same, and what they derive is right to the precision they promise."""

from collections import Counter
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import ceil, inf, nan
from operator import or_

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_impls.outcome import Outcome, Reason
from oracles.classes import ElementClass
from oracles.enclosure import Enclosure, Ground
from oracles.formats import format_named
from oracles.truth import Truth
from properties.judge import Expectation, Judgement
from properties.tally import LEVELS, Tally, Worst, merge, tally, tally_without_result

quickly = settings(max_examples=60, deadline=None, database=None, derandomize=True)

errors_in_ulps = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, 65535.5, 65536.25, 2.0**20 + 1 / 3, inf]),
    st.floats(2.0**-40, 1e300),
)
counts = st.integers(0, 50)
worsts = st.builds(
    Worst,
    st.sampled_from([-1.0, 0.0, 0.5, inf]),
    st.sampled_from(["a", "a@10.0", "a@2.0", "b@0"]),
    st.sampled_from([0.0, 1.0, 1e9, inf]),
)
tallies = st.builds(
    Tally,
    elements=counts,
    compared=counts,
    numbers=counts,
    misrounded=counts,
    special_mismatches=counts,
    rows=counts,
    rows_not_judged=counts,
    max_row_ulp=st.floats(0, 1e9),
    bound_used=st.floats(0, 1e9),
    largest=worsts,
    failed=worsts | st.just(Worst()),
    error_sum=st.integers(0, 2**80),
    histogram=st.dictionaries(st.sampled_from([-inf, -3.0, 0.0, 64.0, inf]), st.integers(1, 9)).map(Counter),
    reasons=st.dictionaries(st.sampled_from(list(Reason)), st.integers(1, 9)).map(Counter),
    levels=st.lists(st.tuples(st.sampled_from("ab"), st.text(LEVELS, max_size=3))).map(
        lambda parts: tuple(sorted(parts))
    ),
)


def judgement(errors: list[list[float]], **changed: object) -> Judgement:
    """Rows of float32 results that lie ``errors`` ULP from exact zeros; NaN where nothing finite was compared."""
    values = np.array(errors, np.float64).reshape(len(errors), len(errors[0]) if errors else 0)
    zeros, no = np.zeros(values.shape), np.zeros(values.shape, np.bool_)
    expectation = Expectation(
        fmt=format_named("float32"),
        truth=Truth(
            Enclosure.empty(values.shape), np.float32(zeros), zeros == 0, Ground.PROVED, frozenset({"rational"})
        ),
        classes=np.full(values.shape, ElementClass.VALUE, np.int8),
        magnitude=zeros,
        bound=zeros,
        half_ulp=zeros,
        allowed=zeros + 1,
        condition=np.broadcast_to(changed.pop("condition", 0.0), values.shape),
        unjudged=changed.pop("unjudged", (None,) * len(values)),
        max_ulp=changed.pop("max_ulp", None),
    )
    flags = {name: changed.pop(name, no) for name in ("misrounded", "special", "over", "undecided")}
    return Judgement(np.float32(zeros), expectation, ~np.isnan(values), values, values, values / 8, **flags)


def flags(*rows: list[int]) -> np.ndarray:
    return np.array(rows, np.bool_)


@quickly
@given(st.lists(tallies, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_any_order_and_grouping_of_merges_gives_the_same(parts: list[Tally], random):
    whole = merge(parts)
    left = list(parts)
    while len(left) > 1:
        random.shuffle(left)
        left = [left[0] | left[1], *left[2:]]
    assert left[0] == whole
    assert reduce(or_, reversed(parts)) == whole


@quickly
@given(tallies)
def test_an_empty_tally_changes_nothing(t: Tally):
    assert t | Tally() == Tally() | t == t


@quickly
@given(st.lists(errors_in_ulps, min_size=1, max_size=400), st.data())
def test_any_split_of_the_rows_tallies_like_the_whole(errors: list[float], data: st.DataObject):
    conditions = data.draw(st.lists(st.sampled_from([1.0, 1e6]), min_size=len(errors), max_size=len(errors)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(errors)), max_size=5)) | {0, len(errors)})

    def tallied(start: int, stop: int) -> Tally:
        rows = [[e] for e in errors[start:stop]]
        return tally(judgement(rows, condition=np.array(conditions[start:stop]).reshape(-1, 1)), "case")

    def told(t: Tally) -> tuple[object, ...]:
        levels = sorted("".join(levels for _, levels in t.levels))
        largest = (t.max_ulp, t.largest.error, t.largest.condition)
        return largest, t.percentile(0.99), t.mean_ulp, t.reason, t.numbers, levels

    parts = [tallied(start, stop) for start, stop in pairwise(cuts)]
    assert told(merge(parts)) == told(tallied(0, len(errors)))


@pytest.mark.parametrize(
    ("mean", "level"),
    [
        (0.0, "0"),
        (2.0**-20, "0"),
        (0.0624, "0"),
        (0.0625, "0"),
        (0.0703125, "1"),
        (0.5, "O"),
        (0.999, "V"),
        (1.0, "W"),
        (1.1249, "W"),
        (1.125, "X"),
        (1.999, "d"),
        (2.0, "e"),
        (12.9, "y"),
        (13.0, "z"),
        (1e300, "z"),
        (inf, "z"),
    ],
)
def test_levels_are_eighths_of_a_binade(mean: float, level: str):
    """LEVELS[8 k + j] from (1 + j/8) 2^(k - 4) ULP on."""
    assert tally(judgement([[mean] * 3, [mean, nan, mean]]), "case").levels == (("case", level * 2),)


def test_levels_are_of_means_over_what_was_compared_and_judged():
    errors = [[0.0, 2.0], [nan, 2.0], [nan, nan], [2.0, 2.0], [inf, 0.0]]
    unjudged = (None, None, None, Reason.OUTSIDE_DOMAIN, None)
    assert tally(judgement(errors, unjudged=unjudged), "case").levels == (("case", "We..z"),)
    assert tally(judgement([]), "case").levels == (("case", ""),)
    assert tally_without_result(6, 3, Reason.RAISED, "case").levels == (("case", "..."),)


def test_levels_stand_in_the_order_of_their_cases():
    one, two = (tally(judgement(rows), name) for name, rows in (("b", [[1.0], [2.0]]), ("a", [[0.5]])))
    assert (one | two).levels == (two | one).levels == (("a", "O"), ("b", "We"))


@quickly
@given(st.lists(errors_in_ulps, min_size=1, max_size=400), st.sampled_from([0.5, 0.99]))
def test_percentiles_are_right_to_a_64th_and_never_above_the_maximum(errors: list[float], share: float):
    exact = sorted(errors)[ceil(Fraction(str(share)) * len(errors)) - 1]
    told = tally(judgement([errors]), "case").percentile(share)
    assert exact <= told <= min(exact * (1 + 1 / 64), max(errors))


@quickly
@given(st.lists(errors_in_ulps.filter(lambda e: e < inf), min_size=1, max_size=400))
def test_the_mean_is_exact_to_two_to_the_minus_20(errors: list[float]):
    exact = sum(map(Fraction, errors)) / len(errors)
    told = Fraction(tally(judgement([errors]), "case").mean_ulp)
    assert abs(told - exact) <= Fraction(1, 2**20) + exact / 2**50


def test_infinite_errors_are_the_maximum_the_percentile_and_the_mean():
    t = tally(judgement([[0.5, inf]]), "case")
    assert (t.max_ulp, t.percentile(0.99), t.mean_ulp, t.percentile(0.5)) == (inf, inf, inf, 0.5 * (1 + 1 / 64))


def test_nan_errors_were_not_measured_and_count_nowhere():
    t = tally(judgement([[nan, 0.25], [nan, 0.75]]), "case")
    assert (t.elements, t.compared, t.numbers) == (4, 2, 2)
    assert (t.max_ulp, t.mean_ulp, t.largest.place) == (0.75, 0.5, "case@1.1")


@pytest.mark.parametrize("errors", [[[nan, nan]], [[]], []], ids=["nan", "no elements", "no rows"])
def test_nothing_compared_is_said_and_still_names_its_case(errors: list[list[float]]):
    t = tally(judgement(errors), "case")
    assert (t.reason, t.max_ulp, t.mean_ulp, t.percentile(0.99)) == (Reason.NOTHING, 0, 0, 0)
    assert t.worst.place == "case"
    assert (t | tally(judgement([[0.25]]), "case")).worst.place == "case@0.0"


def test_of_equal_errors_the_one_of_larger_condition_is_shown_then_the_first():
    condition = np.array([[1.0, 7.0], [7.0, 2.0]])
    t = tally(judgement([[3.0, 3.0], [3.0, 3.0]], condition=condition), "case")
    assert t.worst == Worst(3.0, "case@0.1", 7.0)
    assert Worst(3.0, "b", 7.0) | t.worst == t.worst | Worst(3.0, "b", 7.0) == Worst(3.0, "b", 7.0)


def test_a_failed_element_is_shown_before_a_larger_error_and_a_wrong_class_before_both():
    errors = [[9e3, 800.0, 1.0]]
    over = tally(judgement(errors, over=flags([0, 1, 0])), "case")
    assert (over.worst.place, over.max_ulp, over.reason) == ("case@0.1", 9e3, Reason.OVER_BOUND)
    special = tally(judgement(errors, over=flags([0, 1, 0]), special=flags([0, 0, 1])), "case")
    assert (special.worst.place, special.reason, special.special_mismatches) == ("case@0.2", Reason.SPECIAL, 1)


def test_failures_of_rows_that_are_not_judged_do_not_count():
    unjudged = (Reason.OUTSIDE_DOMAIN, None)
    t = tally(judgement([[9.0], [1.0]], over=flags([1], [0]), unjudged=unjudged), "case")
    assert (t.rows, t.rows_not_judged, t.reason, t.failed) == (2, 1, Reason.WITHIN, Worst())
    assert t.max_ulp == 9.0


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, Reason.WITHIN),
        ({"over": flags([1, 0])}, Reason.OVER_BOUND),
        ({"over": flags([1, 0]), "max_ulp": 2.0}, Reason.OVER_BUDGET),
        ({"undecided": flags([1, 0])}, Reason.WITHIN),
        ({"undecided": flags([1, 1])}, Reason.UNDECIDED),
        ({"condition": 2e3}, Reason.ILL_CONDITIONED_PASS),
        ({"condition": 2e3, "over": flags([1, 0])}, Reason.OVER_BOUND),
        ({"unjudged": (Reason.OUTSIDE_DOMAIN,)}, Reason.OUTSIDE_DOMAIN),
    ],
    ids=["within", "over", "budget", "undecided", "all undecided", "ill-conditioned", "ill and over", "outside"],
)
def test_the_reason_follows_from_the_elements(changed: dict[str, object], reason: Reason):
    assert tally(judgement([[5.0, 1.0]], **changed), "case").reason is reason


@pytest.mark.parametrize(
    ("reasons", "worst"),
    [
        ({Reason.WITHIN, Reason.OVER_BOUND, Reason.SPECIAL}, Reason.SPECIAL),
        ({Reason.RAISED, Reason.SPECIAL}, Reason.RAISED),
        ({Reason.WITHIN, Reason.UNDECIDED}, Reason.WITHIN),
        ({Reason.WITHIN, Reason.NOT_SUPPORTED, Reason.NOTHING}, Reason.WITHIN),
        ({Reason.NOTHING, Reason.OUTSIDE_DOMAIN}, Reason.OUTSIDE_DOMAIN),
        (set(), Reason.NOTHING),
    ],
)
def test_the_worst_that_was_judged_stands_for_all(reasons: set[Reason], worst: Reason):
    assert Tally(reasons=Counter(reasons)).reason is worst


@pytest.mark.parametrize("reason", [Reason.RAISED, Reason.NOT_SUPPORTED])
def test_a_run_without_result_is_counted_and_names_its_case(reason: Reason):
    t = tally_without_result(12, 3, reason, "case")
    assert (t.elements, t.rows, t.compared, t.reason, t.worst.place) == (12, 3, 0, reason, "case")
    assert t.rows_not_judged == (3 if reason.outcome is Outcome.NOT_JUDGED else 0)
