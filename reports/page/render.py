"""``report.html``: one file that needs no network. Bokeh draws the charts, Jinja2 puts the page together.

Both come with the extra ``html``; nothing here imports them before a page is written.
"""

import importlib.util
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from gpu_impls.outcome import Outcome
from reports.evidence import Evidence
from reports.page.data import packed, packed_text, page_data, ranked_stories, story_data
from reports.write import PAGE

LIBRARIES = ("bokeh", "jinja2")
NOT_WRITTEN = f"{PAGE} was not written: it needs {{}}. pip install 'trueulp[html]' brings it."
SIZE_LIMIT = 2_500_000
# Shares of the stories that are tried until the page is small enough; the worst are kept.
_SHARES = (1.0, 0.7, 0.4, 0.2, 0.0)
_SCRIPTS = ("data.js", "cells.js", "charts.js", "table.js", "case.js", "main.js")


@dataclass(frozen=True)
class Page:
    """What a page is written from.

    Attributes:
        measured, summed: the tables.
        evidence: what was noted while measuring.
        environment: as in ``environment.json``.
        faulty: IDs of implementations that are known to be faulty.
        options: what replay lines need beside the case and the implementation, such as ``--impls mine.py``.
    """

    measured: pd.DataFrame
    summed: pd.DataFrame
    evidence: Evidence
    environment: dict[str, Any]
    faulty: frozenset[str] = frozenset()
    options: str = ""


def missing_libraries() -> list[str]:
    """What a page needs and is not installed."""
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is None]


def write_page(folder: Path, page: Page) -> str | None:
    """Write the page; returns why not if it could not be written."""
    missing = missing_libraries()
    if missing:
        stale = " The one there is of an earlier report." if (folder / PAGE).exists() else ""
        return NOT_WRITTEN.format(" and ".join(missing)) + stale
    (folder / PAGE).write_text(page_text(page), encoding="utf-8", newline="\n")
    return None


def page_text(page: Page) -> str:
    """The page, with as many stories as fit."""
    stories = ranked_stories(page.measured, page.evidence)
    text = ""
    for share in _SHARES:
        text = render(page, stories[: round(len(stories) * share)], len(stories))
        if len(text.encode()) <= SIZE_LIMIT:
            break
    return text


def render(page: Page, stories: list[Any], in_all: int) -> str:
    """The page with these of its stories."""
    from bokeh.resources import Resources
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from reports.page import charts

    failures = _failures(page)
    data = {
        **page_data(page.measured, page.evidence, page.options),
        "faulty": sorted(page.faulty),
        "scales": charts.SCALES,
        "colours": {"series": charts.SERIES, "bar": charts.BAR},
    }
    tidy = {"trim_blocks": True, "lstrip_blocks": True}
    jinja = Environment(loader=PackageLoader("reports.page"), autoescape=True, undefined=StrictUndefined, **tidy)
    return jinja.get_template("report.html.j2").render(
        style=_own("report.css"),
        script=_own(*_SCRIPTS),
        library=packed_text("\n".join(Resources(mode="inline", components=["bokeh"], log_level="error").js_raw)),
        charts=packed(charts.items()),
        data=packed(data),
        stories=packed(story_data(stories)),
        stories_told=len(stories),
        stories_in_all=in_all,
        outcomes=_outcomes(page.measured),
        elements=int(page.measured["elements"].sum()),
        known=_known(page),
        failures=failures,
        faulty_failures=sum(line["faulty"] for line in failures),
        environment=_flat(page.environment),
    )


def _own(*names: str) -> Any:
    """Files of ours, which are markup as they are."""
    from markupsafe import Markup

    folder = files("reports.page").joinpath("templates")
    return Markup("\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names))


def _outcomes(measured: pd.DataFrame) -> dict[str, int]:
    return {str(o): int((measured["outcome"] == o).sum()) for o in Outcome}


def _known(page: Page) -> int:
    """Failing measurements of implementations that are known to be faulty."""
    failing = page.measured[page.measured["outcome"] == Outcome.FAIL]
    return int((failing["op"] + "-" + failing["impl"]).isin(page.faulty).sum())


def _failures(page: Page) -> list[dict[str, Any]]:
    """The failing lines of the summary, those that are known to be faulty last."""
    lines = page.summed[page.summed["fails"] > 0].to_dict("records")
    told = [{**line, "faulty": f"{line['op']}-{line['impl']}" in page.faulty} for line in lines]
    return sorted(told, key=lambda line: line["faulty"])


def _flat(environment: dict[str, Any], above: str = "") -> dict[str, str]:
    """The environment as lines of a table."""
    lines: dict[str, str] = {}
    for name, value in environment.items():
        if isinstance(value, dict):
            lines |= _flat(value, f"{above}{name} ")
        elif value is not None:
            lines[f"{above}{name}".replace("_", " ")] = value if isinstance(value, str) else json.dumps(value)
    return lines
