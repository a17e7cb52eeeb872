"""The schema of baselines: its records, and reading them from JSON with errors that name what was expected."""

from dataclasses import dataclass, fields
from typing import Any

from gpu_impls.outcome import Outcome, Reason
from properties.tally import LEVELS, NO_LEVEL
from reports.measurement import Key, Measurement
from reports.plan import Plan

FORMAT, VERSION = "trueulp-baseline", 2


@dataclass(frozen=True)
class Row:
    """What the gate compares of one measurement. Field order is the order in the file."""

    op: str
    impl: str
    dtype: str
    output: str
    regime: str
    n: int
    outcome: Outcome
    reason: Reason
    rows: int
    rows_not_judged: int
    compared: int
    special_mismatches: int
    misrounded: int
    bound_used: float
    max_row_ulp: float
    max_ulp: float
    mean_ulp: float
    worst_case: str
    input_bits: str
    output_bits: str
    levels: str

    @classmethod
    def of(cls, measurement: Measurement) -> "Row":
        values = {f.name: getattr(measurement, f.name) for f in fields(cls)}
        return cls(**{**values, "reason": Reason(measurement.reason)})

    @property
    def key(self) -> Key:
        return (self.op, self.impl, self.dtype, self.output, self.regime, self.n)

    @property
    def share(self) -> float:
        """The share of misrounded results."""
        return self.misrounded / max(self.compared, 1)

    @property
    def name(self) -> str:
        return f"{self.op} {self.impl} {self.dtype} {self.output} {self.regime} n={self.n}"


@dataclass(frozen=True)
class Recipe:
    """The plan of a baseline: with the implementations of its rows it gives the very same cases."""

    seed: int
    quick: bool
    dtypes: tuple[str, ...]
    regimes: tuple[str, ...]
    lengths: tuple[int, ...]
    longest: int
    rows: int

    @classmethod
    def of(cls, plan: Plan) -> "Recipe":
        return cls(**{f.name: getattr(plan, f.name) for f in fields(cls)})


@dataclass(frozen=True)
class Baseline:
    """A file's contents; ``rows`` by key."""

    recipe: Recipe
    environment: dict[str, Any]
    rows: dict[Key, Row]


def decoded(document: Any) -> Baseline:
    head = _record("the file", document, ("format", "version", "plan", "environment", "rows"))
    if head["format"] != FORMAT:
        raise ValueError(f"format is {head['format']!r}: expected {FORMAT!r}")
    if head["version"] != VERSION or head["version"] is True:
        raise ValueError(f"version is {head['version']!r}, of another trueulp: expected {VERSION}")
    if not isinstance(head["environment"], dict) or not isinstance(head["rows"], list):
        raise ValueError("environment or rows: expected an object and a list")
    plan = _record("plan", head["plan"], tuple(f.name for f in fields(Recipe)))
    rows: dict[Key, Row] = {}
    for number, entry in enumerate(head["rows"], 1):
        row = _row(f"row {number}", entry)
        if row.key in rows:
            raise ValueError(f"row {number}: {row.name} is there twice: expected it once")
        rows[row.key] = row
    return Baseline(_recipe(plan), head["environment"], rows)


def _row(where: str, entry: Any) -> Row:
    values = _record(where, entry, tuple(f.name for f in fields(Row)))
    row = Row(**{f.name: _value(f"{where}: {f.name}", f.type, values[f.name]) for f in fields(Row)})
    for name in ("input_bits", "output_bits"):
        if len(getattr(row, name)) != 16 or not set(getattr(row, name)) <= set("0123456789abcdef"):
            raise ValueError(f"{where}: {name} is {getattr(row, name)!r}: expected 16 digits in hex")
    if len(row.levels) != row.rows or not set(row.levels) <= {*LEVELS, NO_LEVEL}:
        raise ValueError(f"{where}: levels is {row.levels!r}: expected {row.rows} letters, digits or {NO_LEVEL}")
    if row.reason.outcome is not row.outcome:
        raise ValueError(f"{where}: outcome is {row.outcome!s} beside reason {row.reason!s}: they do not go together")
    return row


def _value(where: str, kind: Any, value: Any) -> Any:
    """A field of a row: counts from 0 on, floats in hex, words."""
    if kind is int:
        return _count(where, value)
    if not isinstance(value, str):
        raise ValueError(f"{where} is {value!r}: expected text")
    if kind is float:
        return _number(where, value)
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"{where} is {value!r}: expected one of {', '.join(kind)}") from None


def _number(where: str, text: str) -> float:
    try:
        number = float.fromhex(text)
    except (ValueError, OverflowError):
        number = -1.0
    if not number >= 0:  # NaN would compare equal to everything
        raise ValueError(f"{where} is {text!r}: expected a float in hex, 0 or more, such as 0x1.8p+0")
    return number


def _count(where: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{where} is {value!r}: expected a whole number from 0 on")
    return value


def _recipe(plan: dict[str, Any]) -> Recipe:
    if not isinstance(plan["quick"], bool):
        raise ValueError(f"plan: quick is {plan['quick']!r}: expected true or false")
    lists = {name: plan[name] for name in ("dtypes", "regimes", "lengths")}
    for name, values in lists.items():
        kind = int if name == "lengths" else str
        if not isinstance(values, list) or any(type(v) is not kind for v in values):
            raise ValueError(f"plan: {name} is {values!r}: expected a list of {kind.__name__}")
    counts = {name: _count(f"plan: {name}", plan[name]) for name in ("seed", "longest", "rows")}
    return Recipe(quick=plan["quick"], **counts, **{k: tuple(v) for k, v in lists.items()})


def _record(where: str, value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is a {type(value).__name__}: expected an object with {', '.join(names)}")
    if wrong := sorted(value.keys() ^ set(names)):
        kind = "missing" if wrong[0] in names else "unknown"
        raise ValueError(f"{where}: {wrong[0]!r} is {kind}: expected {', '.join(names)}")
    return value
