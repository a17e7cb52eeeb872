"""The atlas: operator x implementation x dtype x regime, as Markdown to read and a CSV with every figure beside it.

Errors are certified: they are taken against enclosures. A cell that the plan holds and nobody measured says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gpu_impls.call import Runner
from gpu_impls.outcome import Outcome, Reason
from gpu_impls.registry import Implementation
from properties.laws import LAWS
from reports.plan import Plan
from reports.sharing import shared
from reports.write import ATLAS, markdown

NOT_RUN = "not run"
CELL = ["op", "impl", "dtype", "regime"]
PAIR = CELL[:3]
BITS = ("determinism", "batch_invariance")
_DIFFER = (Reason.BITS_RUNS, Reason.BITS_BATCH)


def pairs(plan: Plan) -> list[tuple[Implementation, str]]:
    """Every implementation in every dtype that the plan measures it in."""
    found = {(i.id, case.dtype): (i, case.dtype) for case, takers in plan.units() for i in takers}
    return list(found.values())


def bits(pair: tuple[Implementation, str], runner: Runner) -> dict[str, str]:
    """Whether repeated runs, and batches of other sizes, give the same bits: measured, whatever the contract claims."""
    said = {}
    for name in BITS:
        finding = next(iter(LAWS[name].check(*pair, runner)), None)
        said[name] = "same bits" if finding is None else "differ" if finding.reason in _DIFFER else str(finding.reason)
    return said


def all_bits(plan: Plan, runner: Runner, jobs: int) -> tuple[pd.DataFrame, BaseException | None]:
    """``bits`` of every pair, and what ended it early, if anything did."""
    rows: list[dict[str, str]] = []
    ended_by = None
    try:
        with shared(bits, pairs(plan), runner, jobs) as results:
            for (i, dtype), said in results:
                rows.append({"op": i.op, "impl": i.name, "dtype": dtype, **said})
    except BaseException as error:  # nothing found so far is lost: the caller tells, then raises it again
        ended_by = error
    return pd.concat([_no_bits(), pd.DataFrame(rows)], ignore_index=True), ended_by


def _no_bits() -> pd.DataFrame:
    return pd.DataFrame(columns=[*PAIR, *BITS], dtype=object)


def cells(plan: Plan, measured: pd.DataFrame, told: pd.DataFrame | None) -> pd.DataFrame:
    """One row per cell of the plan; what was not measured has the outcome ``not run``.

    ``elements`` are those of x. ``told`` is what :func:`all_bits` finds; None where it was not run.
    """
    planned = [(i.op, i.name, case.dtype, case.regime) for case, takers in plan.units() for i in takers]
    grid = pd.DataFrame(sorted(set(planned)), columns=CELL)
    found = pd.DataFrame([_cell(dict(zip(CELL, k, strict=True)), g) for k, g in measured.groupby(CELL)])
    whole = grid.merge(found, on=CELL, how="left").merge(_no_bits() if told is None else told, on=PAIR, how="left")
    whole["outcome"] = whole["outcome"].fillna(NOT_RUN)
    return whole.fillna({"elements": 0, "special_mismatches": 0} | dict.fromkeys(BITS, NOT_RUN)).astype(
        {"elements": int, "special_mismatches": int}
    )


def _cell(key: dict[str, Any], group: pd.DataFrame) -> dict[str, Any]:
    judged = group[group["outcome"] != Outcome.NOT_JUDGED]
    outcomes = [o for o in (Outcome.FAIL, Outcome.PASS, Outcome.NOT_JUDGED) if (group["outcome"] == o).any()]
    shown = group[group["outcome"] == outcomes[0]]
    worst = shown.sort_values(["bound_used", "max_ulp"], ascending=False, kind="stable").iloc[0]
    return {
        **key,
        "elements": int((group["rows"] * group["n"]).sum()),
        "max_ulp": judged["max_ulp"].max(),
        "max_row_ulp": judged["max_row_ulp"].max(),
        "misrounded_share": group["misrounded"].sum() / max(int(group["compared"].sum()), 1),
        "special_mismatches": int(judged["special_mismatches"].sum()),
        "bound_used": judged["bound_used"].max(),
        "outcome": str(outcomes[0]),
        "reason": str(Reason.worst([Reason(r) for r in shown["reason"]])),
        "ground": ", ".join(sorted(set(group["ground"]))),
        "worst_case": worst["worst_case"],
    }


def write_atlas(folder: Path, whole: pd.DataFrame, environment: dict[str, Any]) -> None:
    """atlas.md and atlas.csv."""
    text, data = (folder / name for name in ATLAS)
    whole.to_csv(data, index=False, lineterminator="\n")
    text.write_text("\n".join(lines(whole, environment)) + "\n", encoding="utf-8")


def lines(whole: pd.DataFrame, environment: dict[str, Any]) -> Iterator[str]:
    run = whole[whole["outcome"].isin([Outcome.PASS, Outcome.FAIL])]
    yield "# Atlas"
    yield ""
    yield f"Written by `trueulp report --atlas` on {_machine(environment)}."
    yield (
        f"Every figure is in [{ATLAS[1]}]({ATLAS[1]}). {len(run):,} of {len(whole):,} cells (operator x implementation "
        f"x dtype x regime) were judged, {int((run['elements'] >= 10**6).sum()):,} of them on a million elements of x "
        "or more; the lengths, specials, masks and recorded rows are fewer."
    )
    yield ""
    yield (
        "Errors are in ULPs against certified values: **max** of one result in its own, **row** in those of the row's "
        "largest result, which also stands under each regime; **!** marks a cell that is over its bound or has a wrong "
        "special value. Runs and batches: whether 32 runs, and batches of 1 to 257 rows, give the same bits."
    )
    for op, of_op in whole.groupby("op", sort=False):
        yield from ("", f"## {op}", "")
        yield markdown(
            pd.DataFrame([_pair(dict(zip(PAIR[1:], k, strict=True)), g) for k, g in of_op.groupby(PAIR[1:])])
        )
        for dtype, of_dtype in of_op.groupby("dtype", sort=False):
            table = of_dtype.assign(shown=[_shown(row) for row in of_dtype.itertuples()])
            table = table.pivot(index="regime", columns="impl", values="shown").fillna(NOT_RUN).reset_index()
            yield from ("", f"### {op}, {dtype}", "", markdown(table))


def _pair(key: dict[str, str], group: pd.DataFrame) -> dict[str, Any]:
    run = group[group["outcome"] != NOT_RUN]
    return {
        **key,
        "elements": f"{int(run['elements'].sum()):,}",
        "max": run["max_ulp"].max(),
        "row": run["max_row_ulp"].max(),
        "misrounded": _weighted(run["misrounded_share"], run["elements"]),
        "special mismatches": int(run["special_mismatches"].sum()),
        "bound used": run["bound_used"].max(),
        "runs": group["determinism"].iloc[0],
        "batches": group["batch_invariance"].iloc[0],
        "cells over": f"{int((run['outcome'] == Outcome.FAIL).sum())} of {len(run)}",
    }


def _weighted(shares: pd.Series, weights: pd.Series) -> float:
    return float((shares * weights).sum() / max(float(weights.sum()), 1.0))


def _shown(row: Any) -> str:
    if row.outcome == NOT_RUN:
        return NOT_RUN
    if row.outcome == Outcome.NOT_JUDGED:
        return str(row.reason)
    return f"{row.max_row_ulp:.3g}{' !' if row.outcome == Outcome.FAIL else ''}"


def _machine(environment: dict[str, Any]) -> str:
    """The GPUs, or the processor, and the libraries that were under test."""
    packages: Iterable[tuple[str, str | None]] = environment["packages"].items()
    tested = ("torch", "jax", "cupy-cuda13x", "transformers", "numpy", "scipy", "onnxruntime")
    versions: Sequence[str] = [f"{name} {version}" for name, version in packages if version and name in tested]
    gpus = ", ".join(environment["gpus"]) or environment["processor"]
    driver = f", driver {environment['nvidia_driver']}" if environment["nvidia_driver"] else ""
    return f"{gpus}{driver}, with {', '.join(versions)}"
