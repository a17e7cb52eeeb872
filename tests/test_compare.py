"""The rules of the gate, each broken on purpose: what is worse is seen, what is scatter is not called worse."""

import math
import random
from dataclasses import replace
from statistics import fmean, pvariance

import pytest
from rows_for_gate import row
from scipy.stats import wilcoxon

from gpu_impls.outcome import Reason
from oracles.truth import SHARP
from properties.tally import LEVELS, NO_LEVEL
from reports.gate.compare import Verdict, compare, counts
from reports.gate.scatter import Tolerance, Trend
from reports.gate.schema import Row

DEFAULT, LITERAL = Tolerance(), Tolerance(scatter=0)
OTHER_BITS = "bbbbbbbbbbbbbbbb"


def verdict(old: Row, new: Row, tolerance: Tolerance = DEFAULT) -> Verdict:
    (only,) = compare([old], [new], tolerance)
    return only.verdict


def moved(**changes: object) -> Row:
    return row(output_bits=OTHER_BITS, **changes)


def test_the_same_bits():
    assert verdict(row(), row()) is Verdict.SAME
    assert verdict(row(), moved()) is Verdict.CHANGED


@pytest.mark.parametrize(
    "worse",
    [
        {"bound_used": 0.3301},
        {"max_row_ulp": 1.6501},
        {"max_row_ulp": math.inf},
        {"misrounded": 67},
        {"special_mismatches": 1, "reason": Reason.SPECIAL},
        {"reason": Reason.OVER_BOUND},
        {"reason": Reason.RAISED, "compared": 0, "misrounded": 0, "bound_used": 0.0, "max_row_ulp": 0.0},
        {"reason": Reason.NOT_SUPPORTED},
        {"reason": Reason.OUTSIDE_DOMAIN, "rows_not_judged": 8},
        {"rows_not_judged": 1},
    ],
)
@pytest.mark.parametrize("bits", ["aaaaaaaaaaaaaaaa", OTHER_BITS])
def test_worse(worse: dict[str, object], bits: str):
    assert verdict(row(), row(output_bits=bits, **worse)) is Verdict.WORSE


@pytest.mark.parametrize(
    "within", [{"bound_used": 0.3299}, {"max_row_ulp": 1.6499}, {"mean_ulp": 100.0}, {"max_ulp": 1e9}, {"n": 33}]
)
def test_within(within: dict[str, object]):
    assert verdict(row(), moved(**within)) is Verdict.CHANGED
    assert verdict(row(), row(**within)) is Verdict.SAME


@pytest.mark.parametrize(
    "better",
    [{"bound_used": 0.27}, {"max_row_ulp": 1.3}, {"misrounded": 65}, {"max_row_ulp": 0.0}],
)
def test_better(better: dict[str, object]):
    assert verdict(row(), moved(**better)) is Verdict.BETTER


def test_worse_outweighs_better():
    assert verdict(row(), moved(bound_used=0.01, misrounded=67)) is Verdict.WORSE


def test_a_failure_that_passes_is_better_and_one_that_gets_graver_worse():
    failing = row(reason=Reason.OVER_BOUND, bound_used=5.0)
    raising = moved(reason=Reason.RAISED, compared=0, misrounded=0, bound_used=0.0, max_row_ulp=0.0)
    assert verdict(failing, row(output_bits=OTHER_BITS)) is Verdict.BETTER
    assert verdict(failing, raising) is Verdict.WORSE
    assert verdict(raising, failing) is Verdict.BETTER
    assert verdict(raising, raising) is Verdict.SAME


def test_special_mismatches_count_among_failures_too():
    few, many = (row(reason=Reason.SPECIAL, special_mismatches=k) for k in (2, 3))
    assert verdict(few, many) is Verdict.WORSE
    assert verdict(many, few) is Verdict.BETTER


@pytest.mark.parametrize(("error", "is_"), [(2 * SHARP, Verdict.WORSE), (SHARP, Verdict.CHANGED)])
def test_from_nothing_any_error_is_a_rise_that_the_truth_can_tell(error: float, is_: Verdict):
    exact = row(misrounded=0, bound_used=0.0, max_row_ulp=0.0)
    assert verdict(exact, moved(misrounded=0, bound_used=0.0, max_row_ulp=error)) is is_


@pytest.mark.parametrize("there", [{"reason": Reason.OUTSIDE_DOMAIN, "rows_not_judged": 8}, {"rows_not_judged": 3}])
def test_rows_outside_the_domain_are_compared_by_bits_alone(there: dict[str, object]):
    """NaN where a sum overflows in one order and not in another is no mismatch there."""
    few, many = (moved(special_mismatches=k, **there) for k in (2, 3))
    assert verdict(row(**there, special_mismatches=2), many) is Verdict.CHANGED
    assert verdict(row(**there, special_mismatches=3), few) is Verdict.CHANGED
    old = row(reason=Reason.OUTSIDE_DOMAIN, rows_not_judged=8)
    assert verdict(old, replace(old, max_row_ulp=1e9, output_bits=OTHER_BITS)) is Verdict.CHANGED


@pytest.mark.parametrize("changes", [{"input_bits": "0" * 16}, {"rows": 9}])
def test_other_inputs(changes: dict[str, object]):
    assert verdict(row(), row(**changes)) is Verdict.DIFFERENT_INPUTS


def test_rows_of_one_list_only():
    kept, here, absent, new = (row(impl=name) for name in ("kept", "here", "absent", "new"))
    made = compare([kept, here, absent], [kept, new], DEFAULT, here=lambda r: r.impl == "here")
    assert [(c.verdict, c.row.impl) for c in made] == [
        (Verdict.MISSING, "here"),
        (Verdict.NOT_RUN, "absent"),
        (Verdict.NEW, "new"),
        (Verdict.SAME, "kept"),
    ]
    assert sum(counts(made).values()) == 4


def test_the_worst_comes_first():
    used = {"a": 0.4, "b": 0.9, "c": 1.5}
    reasons = {"c": Reason.OVER_BOUND}
    old = [row(impl=name) for name in used]
    new = [moved(impl=n, bound_used=u, reason=reasons.get(n, Reason.WITHIN)) for n, u in used.items()]
    assert [c.row.impl for c in compare(old, new, LITERAL)] == ["c", "b", "a"]


def scattered(up: int, down: int, rest: int = 0, far: int = 1, **changes: object) -> tuple[list[Row], list[Row]]:
    """Twenty rows, whose largest errors rise and fall in turns.

    Of all their input rows so many have a larger error than before, by ``far`` levels, so many a smaller one, by one
    level, and the rest the same.
    """
    levels = LEVELS[5 + far] * up + LEVELS[4] * down + LEVELS[5] * rest
    dealt = [levels[k::20] for k in range(20)]
    old = [row(n=k, rows=len(hand), levels=LEVELS[5] * len(hand), **changes) for k, hand in enumerate(dealt)]
    largest = [1.0, 2.25] * 10
    new = [moved(n=k, rows=len(h), levels=h, max_row_ulp=largest[k], **changes) for k, h in enumerate(dealt)]
    return old, new


BOTH_WAYS = scattered(500, 500)


@pytest.mark.parametrize(
    ("up", "down", "rest", "far", "worse", "better"),
    [
        (500, 500, 0, 1, 0, 0),  # 0 sigmas
        (547, 453, 0, 1, 0, 0),  # 94 / sqrt(1000) = 2.97
        (548, 452, 0, 1, 10, 0),  # 3.04
        (453, 547, 0, 1, 0, 0),
        (452, 548, 0, 1, 0, 10),
        (0, 1000, 0, 1, 0, 10),
        (0, 0, 1000, 1, 0, 0),  # the bits alone
        (9, 0, 991, 1, 0, 0),  # sqrt(9) = 3
        (10, 0, 990, 1, 10, 0),
        (500, 500, 0, 2, 10, 0),  # as many larger ones, but by more
        (400, 600, 0, 2, 10, 0),  # fewer, but by more: ranks of 800.5 against 300.5
        (500, 499, 0, 1, 10, 10),  # 999 input rows tell nothing
    ],
)
def test_scatter_goes_both_ways(up: int, down: int, rest: int, far: int, worse: int, better: int):
    found = counts(compare(*scattered(up, down, rest, far), DEFAULT))
    assert (found[Verdict.WORSE], found[Verdict.BETTER]) == (worse, better)
    assert found[Verdict.CHANGED] == 20 - worse - better


def test_input_rows_without_an_error_on_both_sides_do_not_count():
    old, new = scattered(500, 499)
    old.append(row(n=20, rows=99, levels=LEVELS[5] * 50 + NO_LEVEL * 49))
    new.append(moved(n=20, rows=99, levels=NO_LEVEL * 50 + LEVELS[5] * 49))
    assert counts(compare(old, new, DEFAULT))[Verdict.WORSE] == 10


def test_rows_of_other_inputs_have_no_part_in_the_test():
    old, new = scattered(500, 499)
    found = counts(compare([*old, row(n=20)], [*new, moved(n=20, rows=9)], DEFAULT))
    assert (found[Verdict.DIFFERENT_INPUTS], found[Verdict.WORSE]) == (1, 10)


def test_the_trend_is_that_of_the_signed_rank_test():
    """Ties and rows that stayed included; SciPy's is written by others."""
    draw = random.Random(0)
    for size in (1000, 3000):
        before, after = (draw.choices(range(len(LEVELS)), k=size) for _ in range(2))
        pair = [row(rows=size, levels="".join(LEVELS[k] for k in levels)) for levels in (before, after)]
        theirs = wilcoxon(after, before, alternative="greater", method="asymptotic").zstatistic
        assert Trend.of([(pair[0], pair[1])]).sigmas == pytest.approx(theirs, rel=1e-12)


def test_the_trend_of_equals_has_mean_0_and_variance_1():
    """Whatever the moves are: here a few large ones among many small ones. A lean of 20 % is seen each time."""

    def trends(up: float) -> list[float]:
        found = []
        for seed in range(300):
            draw = random.Random(seed)
            moves = [draw.choice((1, 1, 1, 2, 20)) * (1 if draw.random() < up else -1) for _ in range(1000)]
            pair = [row(rows=1000, levels="".join(LEVELS[30 + m] for m in ms)) for ms in ([0] * 1000, moves)]
            found.append(Trend.of([(pair[0], pair[1])]).sigmas)
        return found

    fair = trends(0.5)
    assert abs(fmean(fair)) < 0.2
    assert 0.8 < pvariance(fair) < 1.25
    assert sum(z > 3 for z in fair) <= 3
    assert min(trends(0.6)) > 1.5
    assert fmean(trends(0.6)) > 5


def test_literally_every_rise_counts():
    assert counts(compare(*BOTH_WAYS, LITERAL))[Verdict.WORSE] == 10


def test_scatter_of_one_implementation_excuses_no_other():
    old, new = BOTH_WAYS
    other = row(impl="other"), moved(impl="other", max_row_ulp=3.0)
    found = compare([*old, other[0]], [*new, other[1]], DEFAULT)
    assert [c.row.impl for c in found if c.verdict is Verdict.WORSE] == ["other"]


def test_scatter_excuses_no_failure_and_no_jump_towards_the_bound():
    old, new = BOTH_WAYS
    for changes in ({"bound_used": 0.61}, {"reason": Reason.OVER_BOUND, "bound_used": 1.01}, {"rows_not_judged": 1}):
        found = compare([*old, row(n=999)], [*new, moved(n=999, **changes)], DEFAULT)
        assert [c.row.n for c in found if c.verdict is Verdict.WORSE] == [999]


def test_scatter_excuses_no_row_of_the_same_bits():
    old, new = BOTH_WAYS
    found = compare([*old, row(n=999)], [*new, row(n=999, max_row_ulp=3.0)], DEFAULT)
    assert [c.row.n for c in found if c.verdict is Verdict.WORSE] == [999]


def test_scatter_in_one_dtype_excuses_no_trend_in_another():
    old, new = scattered(4000, 4000)
    bad_old, bad_new = scattered(600, 400, dtype="bfloat16")
    found = compare([*old, *bad_old], [*new, *bad_new], DEFAULT)
    assert {c.row.dtype for c in found if c.verdict is Verdict.WORSE} == {"bfloat16"}


def test_shares_of_other_promises_are_not_compared():
    old, new = row(), moved(bound_used=0.9)
    assert compare([old], [new], DEFAULT, same_bounds=lambda r: False)[0].verdict is Verdict.CHANGED


def test_tolerances_are_read_and_refused():
    assert Tolerance.parse([]) == Tolerance(0.1, 0.0, 3.0)
    assert Tolerance.parse(["0.5", "share=0.01", "scatter=0"]) == Tolerance(0.5, 0.01, 0)
    assert verdict(row(), moved(bound_used=0.44), Tolerance(rise=0.5)) is Verdict.CHANGED
    assert verdict(row(), moved(misrounded=70), Tolerance(share=0.02)) is Verdict.CHANGED
    for text in ("ten", "rise=", "speed=1", "rise=nan", "rise=-1", "rise=inf", "=1", ""):
        with pytest.raises(ValueError, match=r"tolerance"):
            Tolerance.parse([text])
