"""The files of a report but the page: measurements.csv, summary.csv, summary.md, environment.json."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pandas as pd

from reports.tables import not_judged, shown

FILES = ("measurements.csv", "summary.csv", "summary.md", "environment.json")
PAGE = "report.html"
ATLAS = ("atlas.md", "atlas.csv")
MD_COLUMNS = ["op", "impl", "dtype", "max_ulp", "max_row_ulp", "misrounded_share", "bound_used", "outcome", "reason"]


def writable_folder(path: str) -> Path:
    """The folder, made if need be. Raises ``ValueError`` where nothing can be written, before anything is measured."""
    if not path:
        raise ValueError("--out is empty: give a folder")
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".trueulp-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"cannot write to --out {path}: {error.strerror or error} (give a folder you own)") from None
    for file in map(folder.joinpath, (*FILES, PAGE, *ATLAS)):
        if file.exists() and not (file.is_file() and os.access(file, os.W_OK)):
            raise ValueError(f"cannot write to --out {path}: {file.name} there is no file that can be overwritten")
    return folder


def write_report(folder: Path, measured: pd.DataFrame, summed: pd.DataFrame, environment: dict[str, Any]) -> None:
    """Write all four files. The tables hold no time, machine or path: two runs give the same bytes."""
    measured.to_csv(folder / "measurements.csv", index=False, lineterminator="\n")
    summed.to_csv(folder / "summary.csv", index=False, lineterminator="\n")
    (folder / "summary.md").write_text(summary_markdown(measured, summed), encoding="utf-8")
    (folder / "environment.json").write_text(json.dumps(environment, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def summary_markdown(measured: pd.DataFrame, summed: pd.DataFrame) -> str:
    """The summary as tables per operator, the failures with their replay lines, and what was not judged."""
    parts = ["# trueulp summary", ""]
    for op, group in summed.groupby("op", sort=False):
        parts += [f"## {op}", "", markdown(group[shown(group, MD_COLUMNS[1:])]), ""]
    failing = summed[summed["fails"] > 0]
    if len(failing):
        parts += ["## Failures", ""]
        details = measured.drop_duplicates(["impl", "worst_case"]).set_index(["impl", "worst_case"])["detail"]
        for row in failing.itertuples():
            detail = details.get((row.impl, row.worst_case), "")
            told = f"{row.reason} ({markdown_cell(detail)})" if detail else row.reason
            where = f"{row.op} {markdown_cell(row.impl)} {row.dtype}: {told} in {row.worst_regime}"
            parts += [f"- {where}: `trueulp replay {row.worst_case}`"]
        parts += [""]
    undone = not_judged(measured)
    if len(undone):
        parts += ["## Not judged", "", markdown(undone), ""]
    return "\n".join(parts)


def markdown(frame: pd.DataFrame) -> str:
    """A Markdown table; floats in four digits."""
    cells = [[markdown_cell(v) for v in row] for row in frame.itertuples(index=False)]
    lines = [list(frame.columns), ["---"] * len(frame.columns), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown_cell(value: object) -> str:
    """A value as text: names of implementations are anybody's, ``<lambda>`` among them."""
    return re.sub(r"([\\`*|<\[\]])", r"\\\1", format_cell(value))


def format_cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
