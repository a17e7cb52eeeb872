"""What the page is made of: columns of the table, stories of the worst cases, histograms, packed small."""

import base64
import glob
import gzip
import json
import shlex
from math import isfinite
from typing import Any

import pandas as pd

from properties.case import RECORDED
from properties.regimes import REGIMES
from reports.evidence import Cell, Evidence, Story, shown_bins

WORDS = ("op", "impl", "dtype", "output", "regime", "outcome", "reason", "ground", "detail", "place", "replay")
COUNTS = ("n", "rows", "elements", "compared", "misrounded", "special_mismatches", "rows_not_judged")
FLOATS = ("max_ulp", "p99_ulp", "mean_ulp", "max_row_ulp", "condition", "bound_used")
INFINITE = "inf"


def page_data(measured: pd.DataFrame, evidence: Evidence, options: str) -> dict[str, Any]:
    """Everything that the page's script shows but the stories.

    Args:
        measured: the table of measurements.
        evidence: what was noted while measuring.
        options: what replay lines need beside the case and the implementation.
    """
    told = measured.rename(columns={"worst_case": "place"})
    told["replay"] = [replay_line(*of, options) for of in told[["op", "impl", "place"]].itertuples(index=False)]
    return {
        "words": {name: words(told[name]) for name in WORDS},
        "counts": {name: measured[name].tolist() for name in COUNTS},
        "floats": {name: [number(v) for v in measured[name].tolist()] for name in FLOATS},
        "regimes": [r for r in (*REGIMES, *RECORDED) if r in set(measured["regime"])],
        "histograms": [
            {"of": series, "bins": [[number(low), number(high), count] for low, high, count in shown_bins(histogram)]}
            for series, histogram in sorted(evidence.histograms.items())
        ],
    }


def words(column: "pd.Series[str]") -> dict[str, list[Any]]:
    """Text that repeats: the values, and which of them stands in each row."""
    codes, values = pd.factorize(column)
    return {"values": [str(v) for v in values], "codes": codes.tolist()}


def number(value: float) -> float | str | None:
    """Four digits; JSON has no infinity and no NaN."""
    if isfinite(value):
        return float(f"{value:.4g}")
    return None if value != value else INFINITE


def replay_line(op: str, impl: str, place: str, options: str) -> str:
    """A command for a POSIX shell. Names are anybody's, and ``--impl`` takes a glob."""
    only = shlex.quote(glob.escape(impl))
    chosen = f"--impl={only}" if impl.startswith("-") else f"--impl {only}"
    return f"trueulp replay {shlex.quote(place)} {chosen}" + (f" --op {op} {options}" if options else "")


def ranked_stories(measured: pd.DataFrame, evidence: Evidence) -> list[tuple[int, Story]]:
    """The stories with the row of the table each belongs to, the worst first."""
    keys = zip(*(measured[name] for name in ("op", "impl", "dtype", "output", "regime", "n")), strict=True)
    rows = {key: row for row, key in enumerate(keys)}
    told = [(rows[*cell, story.n], story) for cell, story in _sorted(evidence) if (*cell, story.n) in rows]
    return sorted(told, key=lambda pair: (pair[1].rank[:3], pair[0]))


def _sorted(evidence: Evidence) -> list[tuple[Cell, Story]]:
    return sorted(evidence.stories.items())


def story_data(stories: list[tuple[int, Story]]) -> dict[str, dict[str, str]]:
    return {str(row): story.lines for row, story in stories}


def packed(data: Any) -> str:
    """JSON, compressed, in base64: a fifth of the size, and nothing in it can be taken for markup."""
    return packed_text(json.dumps(data, separators=(",", ":"), allow_nan=False))


def packed_text(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
