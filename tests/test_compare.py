"""The rules of the gate, each broken on purpose: what is worse is seen, what is scatter is not called worse."""

import math
from dataclasses import replace

import pytest
from rows_for_gate import row

from gpu_impls.outcome import Reason
from reports.gate.compare import Verdict, compare, counts
from reports.gate.scatter import Tolerance
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


def test_from_nothing_any_error_is_a_rise():
    exact = row(misrounded=0, bound_used=0.0, max_row_ulp=0.0)
    assert verdict(exact, moved(misrounded=0, bound_used=0.0, max_row_ulp=1e-300)) is Verdict.WORSE


def test_rows_outside_the_domain_are_compared_by_bits_alone():
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


def scattered(ups: int, downs: int, factor: float = 1.5, **changes: object) -> tuple[list[Row], list[Row]]:
    """So many rows of one implementation whose largest error rises, and so many in which it falls."""
    factors = [factor] * ups + [1 / factor] * downs
    old = [row(n=k, **changes) for k in range(len(factors))]
    return old, [moved(n=k, max_row_ulp=1.5 * f, **changes) for k, f in enumerate(factors)]


@pytest.mark.parametrize(
    ("ups", "downs", "expected"),
    [
        (1, 1, Verdict.WORSE),
        (3, 4, Verdict.WORSE),
        (4, 4, Verdict.CHANGED),
        (10, 10, Verdict.CHANGED),
        (14, 6, Verdict.CHANGED),
        (1, 0, Verdict.WORSE),
        (4, 1, Verdict.WORSE),
        (8, 0, Verdict.WORSE),
        (21, 7, Verdict.WORSE),
        (60, 30, Verdict.WORSE),
    ],
)
def test_scatter_goes_both_ways(ups: int, downs: int, expected: Verdict):
    found = counts(compare(*scattered(ups, downs), DEFAULT))
    assert found[Verdict.WORSE] == (ups if expected is Verdict.WORSE else 0)


def test_literally_every_rise_counts():
    assert counts(compare(*scattered(10, 10), LITERAL))[Verdict.WORSE] == 10


def test_falls_that_are_scatter_are_not_called_better():
    assert counts(compare(*scattered(10, 10), DEFAULT))[Verdict.BETTER] == 0
    assert counts(compare(*scattered(0, 10), DEFAULT))[Verdict.BETTER] == 10


def test_scatter_of_one_implementation_excuses_no_other():
    old, new = scattered(20, 20)
    other = row(impl="other"), moved(impl="other", max_row_ulp=3.0)
    found = compare([*old, other[0]], [*new, other[1]], DEFAULT)
    assert [c.row.impl for c in found if c.verdict is Verdict.WORSE] == ["other"]


def test_scatter_excuses_no_failure_and_no_jump_towards_the_bound():
    old, new = scattered(20, 20)
    for changes in ({"bound_used": 0.61}, {"reason": Reason.OVER_BOUND, "bound_used": 1.01}, {"rows_not_judged": 1}):
        found = compare([*old, row(n=999)], [*new, moved(n=999, **changes)], DEFAULT)
        assert [c.row.n for c in found if c.verdict is Verdict.WORSE] == [999]


def test_scatter_excuses_no_row_of_the_same_bits():
    old, new = scattered(20, 20)
    found = compare([*old, row(n=999)], [*new, row(n=999, max_row_ulp=3.0)], DEFAULT)
    assert [c.row.n for c in found if c.verdict is Verdict.WORSE] == [999]


def test_scatter_in_one_dtype_excuses_no_trend_in_another():
    old, new = scattered(40, 40)
    bad_old, bad_new = scattered(10, 0, dtype="bfloat16")
    found = compare([*old, *bad_old], [*new, *bad_new], DEFAULT)
    assert {c.row.dtype for c in found if c.verdict is Verdict.WORSE} == {"bfloat16"}


def test_shares_of_other_promises_are_not_compared():
    old, new = row(), moved(bound_used=0.9)
    assert compare([old], [new], DEFAULT, same_bounds=lambda r: False)[0].verdict is Verdict.CHANGED


def test_tolerances_are_read_and_refused():
    assert Tolerance.parse([]) == Tolerance(0.1, 0.0, 2.5)
    assert Tolerance.parse(["0.5", "share=0.01", "scatter=0"]) == Tolerance(0.5, 0.01, 0)
    assert verdict(row(), moved(bound_used=0.44), Tolerance(rise=0.5)) is Verdict.CHANGED
    assert verdict(row(), moved(misrounded=70), Tolerance(share=0.02)) is Verdict.CHANGED
    for text in ("ten", "rise=", "speed=1", "rise=nan", "rise=-1", "rise=inf", "=1", ""):
        with pytest.raises(ValueError, match=r"tolerance"):
            Tolerance.parse([text])
