"""Measurements as pandas tables: all of them, and the summary people read first."""

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from gpu_impls.outcome import Outcome, Reason
from reports.measurement import COLUMNS, Measurement

SUMMARY_KEY = ["op", "impl", "dtype", "output"]


def table(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """One row per measurement, columns in the order of the schema."""
    rows = [asdict(m) for m in measurements]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"outcome": str, "ground": str})


def summary(measured: pd.DataFrame) -> pd.DataFrame:
    """One row per (operator, implementation, dtype, output): the worst of everything and where it was.

    ``fails``, ``passes`` and ``not judged`` count measurements. ``worst_regime`` and ``worst_case`` point to the
    largest share of the bound; if there are failures, among those of the reason that is shown.
    """
    rows = [_summarise(dict(zip(SUMMARY_KEY, key, strict=True)), group) for key, group in measured.groupby(SUMMARY_KEY)]
    return pd.DataFrame(rows)


def _summarise(key: dict[str, str], group: pd.DataFrame) -> dict[str, object]:
    outcomes = group["outcome"]
    failing = group[outcomes == Outcome.FAIL]
    judged = group[outcomes != Outcome.NOT_JUDGED]
    shown = failing if len(failing) else judged if len(judged) else group
    reason = str(Reason.worst([Reason(r) for r in shown["reason"]]))
    pointed_to = failing[failing["reason"] == reason] if len(failing) else shown
    worst = pointed_to.sort_values(["bound_used", "max_ulp"], ascending=False, kind="stable").iloc[0]
    return {
        **key,
        "measurements": len(group),
        "elements": int(group["elements"].sum()),
        "max_ulp": judged["max_ulp"].max() if len(judged) else 0.0,
        "max_row_ulp": judged["max_row_ulp"].max() if len(judged) else 0.0,
        "misrounded": int(group["misrounded"].sum()),
        "misrounded_share": group["misrounded"].sum() / max(int(group["compared"].sum()), 1),
        "bound_used": judged["bound_used"].max() if len(judged) else 0.0,
        "special_mismatches": int(judged["special_mismatches"].sum()),
        "fails": int((outcomes == Outcome.FAIL).sum()),
        "passes": int((outcomes == Outcome.PASS).sum()),
        "not_judged": int((outcomes == Outcome.NOT_JUDGED).sum()),
        "outcome": _outcome(outcomes),
        "reason": reason,
        "worst_regime": worst["regime"],
        "worst_case": worst["worst_case"],
    }


def _outcome(outcomes: "pd.Series[str]") -> str:
    for outcome in (Outcome.FAIL, Outcome.PASS):
        if (outcomes == outcome).any():
            return str(outcome)
    return str(Outcome.NOT_JUDGED)


def shown(group: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns to show of one operator's summary: outputs are named where there are several."""
    several = group["output"].nunique() > 1
    return [column for name in columns for column in ([name, "output"] if several and name == "impl" else [name])]


def not_judged(measured: pd.DataFrame) -> pd.DataFrame:
    """How many measurements gave no verdict, by reason: nothing is dropped without being counted."""
    undone = measured[measured["outcome"] == Outcome.NOT_JUDGED]
    return undone.groupby("reason").size().rename("measurements").reset_index()
