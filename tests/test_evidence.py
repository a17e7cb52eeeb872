"""Evidence: the worst element of every cell in words, histograms that lose nothing, and any split gives the same."""

import random
from collections import Counter
from math import inf

import numpy as np
import pytest

from faulty import made, row_case, total
from properties.case import Case
from properties.oracle_check import Verdict, verdict
from properties.tally import BINS
from reports.evidence import Evidence, shown_bins
from reports.measurement import collect, partials


def doubled(x, mask=None):
    return 2 * total(x, mask)


def raising(x, mask=None):
    raise RuntimeError("no")


IMPLEMENTATIONS = [made("sum", total), made("sum", doubled), made("sum", raising)]
CASES = [
    row_case("sum", [[1, 2], [3, 4.25]]),
    row_case("sum", [[1, np.nan], [np.inf, 1]]),
    row_case("sum", [5, 6, 7.5]),
    Case("sum", "float32", "lengths", 2, 0),
    Case("sum", "float32", "lengths", 0, 8),
    Case("sum", "float32", "near_ties", 4, 33),
]


def verdicts() -> list[Verdict]:
    return [verdict(i, case) for i in IMPLEMENTATIONS for case in CASES]


def noted(*given: Verdict) -> Evidence:
    evidence = Evidence()
    for v in given:
        evidence.note(v, partials(v))
    return evidence


def test_any_order_and_split_gives_the_same():
    given = verdicts()
    whole = noted(*given)
    shuffled = random.Random(0).sample(given, len(given))
    assert noted(*shuffled) == whole
    merged = Evidence()
    for v in shuffled:
        merged.add(noted(v))
    assert merged == whole


def test_every_story_is_of_the_worst_case_of_a_measurement_and_every_cell_has_one():
    given = verdicts()
    measurements = collect([part for v in given for part in partials(v)])
    stories = noted(*given).stories
    cells = {(m.op, m.impl, m.dtype, m.output, m.regime) for m in measurements}
    places = {(m.op, m.impl, m.dtype, m.output, m.regime, m.n): m.worst_case for m in measurements}
    assert stories.keys() == cells
    for cell, story in stories.items():
        assert places[*cell, story.n] == story.place


def test_a_story_shows_the_element_in_decimal_and_in_bits():
    (story,) = noted(verdict(made("sum", doubled), row_case("sum", [[1, 2], [3, 4.25]]))).stories.values()
    assert story.lines["x"] == "3.0 4.25"
    assert story.lines["x bits"] == "40400000 40880000"
    assert story.lines["got"] == "14.5 (0x41680000)"
    assert story.lines["expected"].startswith("7.25 (0x40e80000), correctly rounded")
    assert story.lines["exact"].startswith("7.25 ")
    assert story.lines["verdict"] == "fail: over the bound"
    assert story.lines["element"] == "y[1] of [2]"


@pytest.mark.parametrize(
    ("case", "expected"),
    [(CASES[3], "fail: raised"), (CASES[4], "fail: raised"), (CASES[0], "fail: raised")],
    ids=["no elements", "no rows", "rows"],
)
def test_a_run_that_raised_has_a_story(case: Case, expected: str):
    (story,) = noted(verdict(made("sum", raising), case)).stories.values()
    assert (story.lines["verdict"], story.lines["detail"]) == (expected, "RuntimeError: no")


def test_what_is_empty_and_what_has_no_error_have_stories():
    (empty,) = noted(verdict(made("sum", total), CASES[4])).stories.values()
    assert empty.lines["got"] == "empty, as it should be"
    (special,) = noted(verdict(made("sum", total), row_case("sum", [1, np.nan]))).stories.values()
    assert (special.lines["got"][:3], special.lines["expected"]) == ("nan", "NAN")


def test_shown_bins_hold_their_errors_and_lose_none():
    histogram = Counter({-inf: 5, inf: 2, 0.0: 3, 31.0: 4, 32.0: 1, float(BINS): 6, -BINS * 40.0: 7, BINS * 90.0: 8})
    assert shown_bins(histogram) == [
        (0.0, 0.0, 5),
        (2.0**-11, 2.0**-10, 7),
        (0.5, 0.75, 7),
        (0.75, 1.0, 1),
        (1.0, 1.5, 6),
        (2.0**34, 2.0**35, 8),
        (inf, inf, 2),
    ]
