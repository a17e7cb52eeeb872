"""The page without a browser: small, the same every time, escaped, and told of where it cannot be written."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hostile_names import HOSTILE
from markupsafe import escape
from reporting import SMALL, run

from gpu_impls.outcome import Reason
from reports.evidence import Evidence, Story
from reports.page import charts
from reports.page import render as page
from reports.page.data import number, packed, replay_line, words
from reports.page.render import Page, page_text, write_page
from reports.tables import summary, table
from reports.write import PAGE
from test_tables import row

REGIMES = ("gap", "near_ties", "all_equal", "subnormal", "masks", "specials", "absorbed", "heavy_tail")


def made(*names: str, lengths: int = 1, line: str = "1.5 2.5") -> Page:
    """A page of failing measurements, no two numbers alike."""
    numbers = np.random.default_rng(0).random((len(names), len(REGIMES), lengths, 6))
    floats = ("max_ulp", "p99_ulp", "mean_ulp", "max_row_ulp", "condition", "bound_used")
    rows = [
        row(
            Reason.OVER_BOUND,
            impl=name,
            regime=regime,
            n=n,
            **dict(zip(floats, numbers[i, j, n].tolist(), strict=True)),
        )
        for i, name in enumerate(names)
        for j, regime in enumerate(REGIMES)
        for n in range(lengths)
    ]
    measured = table(rows)
    stories = {
        ("sum", name, "float32", "y", regime): Story((False, -float(i), 0.0, "x"), 0, "x", {"x": f"{i} {j} {line}"})
        for i, name in enumerate(names)
        for j, regime in enumerate(REGIMES)
    }
    histograms = {("sum", name, "float32", "y"): Counter({-np.inf: 3, 7.0: 2, np.inf: 1}) for name in names}
    return Page(measured, summary(measured), Evidence(stories, histograms), {"python": "<3>", "packages": {"a": None}})


def test_a_page_needs_nothing_but_itself():
    text = page_text(made("mine"))
    assert re.findall(r'(?:src|href)="([^"]*)"', text) == ["data:,"]
    assert "@import" not in text
    assert "url(" not in text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_escaped_in_what_is_rendered(name: str):
    before, after = page_text(made("mine")), page_text(made(name))
    assert str(escape(name)) in after
    for tag in ("<script", "</script", "<img", "<b>"):
        assert after.count(tag) == before.count(tag)
    assert "&lt;3&gt;" in after


def test_two_pages_are_the_same_bytes():
    assert page_text(made("mine")) == page_text(made("mine"))
    assert charts.items() == charts.items()


def test_thirty_thousand_measurements_fit():
    """Twice a default report, of numbers and stories that hardly compress."""
    names = [f"implementation_{k}" for k in range(120)]
    text = page_text(made(*names, lengths=32))
    assert len(text.encode()) <= page.SIZE_LIMIT
    assert 'id="left-out"' not in text


def test_stories_are_left_out_where_they_do_not_fit_and_that_is_told(monkeypatch: pytest.MonkeyPatch):
    whole = page_text(made("a", "b", "c", "d", "e"))
    assert 'id="left-out"' not in whole
    monkeypatch.setattr(page, "SIZE_LIMIT", len(whole.encode()) - 1)
    text = page_text(made("a", "b", "c", "d", "e"))
    assert re.search(r"(\d+) of 40 worst cases are told", text)
    assert len(text) < len(whole) + 300


def test_the_worst_stories_are_kept():
    report = made("a", "b", "c")
    kept = page.ranked_stories(report.measured, report.evidence)
    assert [report.measured["impl"][k] for k, _ in kept] == ["c"] * 8 + ["b"] * 8 + ["a"] * 8


@pytest.mark.parametrize("absent", ["bokeh", "jinja2"])
def test_without_the_libraries_the_report_says_so(
    absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(page, "missing_libraries", lambda: [absent])
    (tmp_path / PAGE).write_text("old")
    assert run("report", *SMALL, "--impl", "kahan", "--out", tmp_path) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{PAGE} was not written: it needs {absent}. pip install 'trueulp[html]' brings it." in printed
    assert "The one there is of an earlier report." in printed
    assert f"environment.json, {PAGE}" not in printed
    assert (tmp_path / "summary.md").exists()


def test_libraries_are_looked_for(monkeypatch: pytest.MonkeyPatch):
    assert page.missing_libraries() == []
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    assert page.missing_libraries() == ["bokeh", "jinja2"]


def test_a_page_of_no_failures_says_nothing_of_them(tmp_path: Path):
    measured = table([row(), row(Reason.NOTHING, regime="lengths")])
    assert write_page(tmp_path, Page(measured, summary(measured), Evidence(), {})) is None
    assert '<details id="failures">' not in (tmp_path / PAGE).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("value", "expected"), [(0.1 + 0.2, 0.3), (123456.0, 123500.0), (float("inf"), "inf"), (float("nan"), None)]
)
def test_numbers_have_four_digits_and_stand_in_json(value: float, expected: object):
    assert number(value) == expected


def test_columns_of_words_hold_each_word_once():
    assert words(pd.Series(["b", "a", "b"])) == {"values": ["b", "a"], "codes": [0, 1, 0]}


def test_packed_data_is_letters_and_digits():
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", packed({"name": "</script>"}))


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("kahan", "", "trueulp replay CASE@1 --impl kahan"),
        ("a b*", "", "trueulp replay CASE@1 --impl 'a b[*]'"),
        ("-x", "", "trueulp replay CASE@1 --impl=-x"),
        ("mine", "--impls 'my file.py'", "trueulp replay CASE@1 --impl mine --op sum --impls 'my file.py'"),
    ],
)
def test_replay_lines_are_for_a_shell(name: str, options: str, expected: str):
    assert replay_line("sum", name, "CASE@1", options) == expected
