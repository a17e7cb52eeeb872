"""Tables: what the summary counts and points to, and that files and terminal show every name as it is."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from gpu_impls.outcome import Reason
from oracles.enclosure import Ground
from reports.console import FAILURES_SHOWN, print_list, print_summary
from reports.measurement import COLUMNS, Measurement
from reports.tables import not_judged, summary, table
from reports.write import FILES, MD_COLUMNS, summary_markdown, writable_folder, write_report

CASE = "sum:float32:gap:4x3:s0@1"
HOSTILE = ["a|b", "a\\|b", "<lambda>", "*bold*", "[red]x[/]", "`code`", "two\nlines", "x" * 30]


def row(reason: Reason = Reason.WITHIN, **changed: object) -> Measurement:
    """A measurement of four results that says what is asked for."""
    values: dict[str, object] = dict.fromkeys(COLUMNS, 0)
    values |= {"op": "sum", "impl": "mine", "dtype": "float32", "output": "y", "regime": "gap", "n": 3, "rows": 4}
    values |= {"elements": 4, "compared": 4, "outcome": reason.outcome, "reason": str(reason), "ground": Ground.PROVED}
    values |= dict.fromkeys(("max_ulp", "p99_ulp", "mean_ulp", "max_row_ulp", "condition", "bound_used"), 0.0)
    values |= {"coverage": "sampled", "worst_case": CASE, "detail": "", "levels": "K" * 4}
    return Measurement(**(values | changed))


def summed(*rows: Measurement) -> pd.Series:
    (line,) = (line for _, line in summary(table(rows)).iterrows())
    return line


def shown(*rows: Measurement, known_faulty: frozenset[str] = frozenset()) -> str:
    console = Console(file=io.StringIO(), width=160)
    measured = table(rows)
    print_summary(console, measured, summary(measured), set(known_faulty))
    return console.file.getvalue()


def markdown_rows(text: str) -> list[list[str]]:
    """The cells of all tables, as a Markdown reader sees them."""
    rows: list[list[str]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and token.level == 4:
            rows[-1].append("".join(child.content for child in token.children or ()))
    return rows


def listed(text: str) -> list[str]:
    """The items of lists, as a Markdown reader sees them."""
    inline = [t for t in MarkdownIt("commonmark").parse(text) if t.type == "inline" and t.level == 3]
    return ["".join(child.content for child in token.children or ()) for token in inline]


def test_columns_come_in_the_order_of_the_schema_and_hold_words():
    measured = table([row(), row(Reason.RAISED)])
    assert tuple(measured.columns) == COLUMNS
    assert measured["outcome"].tolist() == ["pass", "fail"]
    assert measured["ground"].tolist() == ["proved", "proved"]


def test_no_measurements_make_an_empty_table():
    assert tuple(table([]).columns) == COLUMNS


def test_a_summary_counts_and_takes_the_worst():
    line = summed(
        row(max_ulp=3.0, max_row_ulp=2.0, misrounded=1, bound_used=0.5, special_mismatches=0),
        row(max_ulp=1.0, max_row_ulp=9.0, misrounded=2, bound_used=0.7, regime="near_ties", worst_case="near"),
        row(Reason.OUTSIDE_DOMAIN, max_ulp=1e9, bound_used=0.0),
    )
    assert (line.measurements, line.elements, line.misrounded, line.misrounded_share) == (3, 12, 3, 3 / 12)
    assert (line.max_ulp, line.max_row_ulp, line.bound_used) == (3.0, 9.0, 0.7)
    assert (line.fails, line.passes, line.not_judged) == (0, 2, 1)
    assert (line.outcome, line.reason) == ("pass", "within the bound")
    assert (line.worst_regime, line.worst_case) == ("near_ties", "near")


def test_a_failure_of_the_reason_that_is_shown_is_pointed_to():
    line = summed(
        row(bound_used=0.99, worst_case="passed"),
        row(Reason.OVER_BOUND, bound_used=2.0, worst_case="over"),
        row(Reason.SPECIAL, regime="near_ties", worst_case="special"),
    )
    assert (line.outcome, line.fails, line.reason) == ("fail", 2, "special value wrong")
    assert (line.worst_regime, line.worst_case) == ("near_ties", "special")


def test_where_nothing_was_judged_it_says_why():
    line = summed(row(Reason.NOT_SUPPORTED, compared=0), row(Reason.NOTHING, compared=0))
    assert (line.outcome, line.reason, line.not_judged) == ("not judged", "not supported", 2)
    assert (line.max_ulp, line.bound_used, line.misrounded_share) == (0, 0, 0)


def test_every_implementation_and_dtype_has_its_line():
    lines = summary(table([row(impl=i, dtype=d) for i in ("b", "a") for d in ("float64", "float16")]))
    assert lines[["impl", "dtype"]].to_numpy().tolist() == [
        ["a", "float16"],
        ["a", "float64"],
        ["b", "float16"],
        ["b", "float64"],
    ]


def test_what_was_not_judged_is_counted_by_reason():
    undone = not_judged(table([row(), row(Reason.NOTHING), row(Reason.NOTHING), row(Reason.NOT_SUPPORTED)]))
    assert dict(undone.to_numpy().tolist()) == {"nothing compared": 2, "not supported": 1}


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_names_stay_text_in_markdown(name: str):
    measured = table([row(Reason.OVER_BOUND, impl=name)])
    text = summary_markdown(measured, summary(measured))
    header, cells = markdown_rows(text)
    assert header == MD_COLUMNS[1:]
    assert cells[:2] == [" ".join(name.split()), "float32"]
    assert len(cells) == len(header)
    assert listed(text) == [f"sum {' '.join(name.split())} float32: over the bound in gap: trueulp replay {CASE}"]


def test_markdown_lists_failures_with_their_replay_lines_and_what_was_not_judged():
    rows = [row(), row(Reason.OVER_BOUND, impl="bad", worst_case="CASE@1"), row(Reason.NOTHING, regime="lengths")]
    text = summary_markdown(table(rows), summary(table(rows)))
    assert text.startswith("# trueulp summary\n\n## sum\n")
    assert "- sum bad float32: over the bound in gap: `trueulp replay CASE@1`" in text.splitlines()
    assert markdown_rows(text)[-1] == ["nothing compared", "1"]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_names_stay_text_on_the_terminal(name: str):
    text = shown(row(Reason.OVER_BOUND, impl=name))
    assert any(line.startswith(f" {' '.join(name.split())}  ") for line in text.splitlines())
    assert f"  sum {name} float32: over the bound in gap (1 measurements)" in text


@pytest.mark.parametrize("outputs", [("y",), ("y", "updated")])
def test_outputs_are_named_where_there_are_several(outputs: tuple[str, ...]):
    measured = table([row(output=output) for output in outputs])
    told = summary_markdown(measured, summary(measured))
    assert ("| impl | output | dtype" in told) == (len(outputs) > 1)
    assert all((f"| {output} |" in told) == (len(outputs) > 1) for output in outputs)


def test_the_terminal_counts_everything():
    text = shown(row(), row(Reason.OVER_BOUND, impl="bad"), row(Reason.NOTHING, elements=1000))
    assert "Not judged: 1 nothing compared." in text
    assert "3 measurements of 1,008 results: 1 pass, 1 fail." in text
    assert "  sum bad float32: over the bound in gap (1 measurements)" in text.splitlines()
    assert f"    trueulp replay {CASE}" in text.splitlines()


def test_what_is_known_to_be_faulty_is_marked_and_not_among_the_failures():
    text = shown(row(Reason.OVER_BOUND, impl="bad"), known_faulty=frozenset({"sum-bad"}))
    assert "bad (known faulty)" in text
    assert "replay" not in text


def test_many_failures_are_cut_and_counted():
    text = shown(*(row(Reason.OVER_BOUND, impl=f"bad{k:02}") for k in range(FAILURES_SHOWN + 3)))
    assert text.count("trueulp replay") == FAILURES_SHOWN
    assert "and 3 more: see summary.md" in text


def test_the_list_says_what_is_not_here():
    console = Console(file=io.StringIO(), width=160)
    print_list(console, [], {"gpu_impls.adapters.scipy": "scipy is not installed: pip install 'trueulp[scipy]'"})
    text = console.file.getvalue()
    assert "not here: gpu_impls.adapters.scipy: scipy is not installed: pip install 'trueulp[scipy]'" in text


def test_all_files_are_written_with_every_digit(tmp_path: Path):
    measured = table([row(max_ulp=0.1 + 0.2, bound_used=float("inf"), detail='a, "b"\nc')])
    write_report(tmp_path, measured, summary(measured), {"b": 1, "a": None})
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(FILES)
    again = pd.read_csv(tmp_path / "measurements.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(again, measured, check_dtype=False)
    assert json.loads((tmp_path / "environment.json").read_text()) == {"a": None, "b": 1}
    assert all(b"\r" not in p.read_bytes() for p in tmp_path.iterdir())


def test_a_folder_is_made_and_left_empty(tmp_path: Path):
    made = writable_folder(str(tmp_path / "a" / "b"))
    assert made.is_dir()
    assert not list(made.iterdir())


def test_a_file_that_cannot_be_overwritten_is_found_before_measuring(tmp_path: Path):
    (tmp_path / "summary.md").mkdir()
    with pytest.raises(ValueError, match=r"cannot write to --out .*: summary\.md there is no file that can be over"):
        writable_folder(str(tmp_path))
