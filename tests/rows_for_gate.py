"""Rows of baselines made on the spot."""

from typing import Any

from gpu_impls.outcome import Reason
from reports.gate.schema import Baseline, Recipe, Row

RECIPE = Recipe(seed=0, quick=True, dtypes=("float32",), regimes=(), lengths=(33,), longest=129, rows=128)


def row(**changes: Any) -> Row:
    """A row of a softmax that passes with 30 % of its bound, other than in ``changes``."""
    reason = Reason(changes.pop("reason", Reason.WITHIN))
    values = {
        "op": "softmax",
        "impl": "mine",
        "dtype": "float32",
        "output": "y",
        "regime": "near_ties",
        "n": 33,
        "rows": 8,
        "rows_not_judged": 0,
        "compared": 264,
        "special_mismatches": 0,
        "misrounded": 66,
        "bound_used": 0.3,
        "max_row_ulp": 1.5,
        "max_ulp": 1.5,
        "mean_ulp": 0.3,
        "worst_case": "softmax:float32:near_ties:8x33:s0@3.7",
        "input_bits": "0123456789abcdef",
        "output_bits": "aaaaaaaaaaaaaaaa",
    }
    values["levels"] = "K" * changes.get("rows", 8)
    return Row(**{**values, **changes}, reason=reason, outcome=reason.outcome)


def baseline(*rows: Row) -> Baseline:
    return Baseline(RECIPE, {"packages": {"numpy": "2.0"}}, {r.key: r for r in rows})
