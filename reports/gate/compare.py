"""Comparing rows with the rows of a baseline, or one implementation's with another's. Pure: lists in, verdicts out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from gpu_impls.outcome import Outcome, Reason
from reports.gate.scatter import BOUND, METRICS, Metric, Scatter, Tolerance, format_number
from reports.gate.schema import Row


class Verdict(StrEnum):
    """What became of a row; the values are the messages, worst first."""

    DIFFERENT_INPUTS = "different inputs"
    WORSE = "worse"
    MISSING = "missing"
    NOT_RUN = "not run here"
    BETTER = "better"
    NEW = "new"
    CHANGED = "changed within"
    SAME = "same bits"


@dataclass(frozen=True)
class Compared:
    """A row's verdict, and what moved in words."""

    verdict: Verdict
    old: Row | None
    new: Row | None
    moves: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        """The row to look at: the new one if there is one."""
        row = self.new or self.old
        assert row is not None
        return row

    @property
    def fails_then_and_now(self) -> bool:
        return all(row is not None and row.outcome is Outcome.FAIL for row in (self.old, self.new))

    @property
    def urgency(self) -> tuple[object, ...]:
        """Sorts the worst first: by verdict, what failed, the share of the bound."""
        failed = self.row.outcome is Outcome.FAIL
        return (list(Verdict).index(self.verdict), not failed, -self.row.bound_used, self.row.key)


def compare(
    old: Iterable[Row],
    new: Iterable[Row],
    tolerance: Tolerance,
    here: Callable[[Row], bool] = lambda row: True,
    same_bounds: Callable[[Row], bool] = lambda row: True,
) -> list[Compared]:
    """Every row of either list, worst first.

    Args:
        here: whether a row of ``old`` that did not come out should have, because its implementation is here.
        same_bounds: whether ``bound_used`` means the same in both.
    """
    olds, news = ({row.key: row for row in rows} for rows in (old, new))
    pairs = [(olds[key], news[key]) for key in olds.keys() & news.keys()]
    scatter = Scatter([(a, b) for a, b in pairs if _comparable(a, b)], tolerance)
    made = [_compare(a, b, tolerance, scatter, same_bounds(a)) for a, b in pairs]
    made += [_absent(olds[key], here) for key in olds.keys() - news.keys()]
    made += [Compared(Verdict.NEW, None, news[key]) for key in news.keys() - olds.keys()]
    return sorted(made, key=lambda compared: compared.urgency)


def counts(compared: Iterable[Compared]) -> dict[Verdict, int]:
    found = [c.verdict for c in compared]
    return {verdict: found.count(verdict) for verdict in Verdict}


def _absent(old: Row, here: Callable[[Row], bool]) -> Compared:
    return Compared(Verdict.MISSING if here(old) else Verdict.NOT_RUN, old, None)


def _compare(old: Row, new: Row, tolerance: Tolerance, scatter: Scatter, same_bounds: bool) -> Compared:
    if not _same_inputs(old, new):
        return Compared(Verdict.DIFFERENT_INPUTS, old, new)
    if falls := _falls(old, new):
        return Compared(Verdict.WORSE, old, new, tuple(falls))
    if _severity(new) > _severity(old):
        return Compared(Verdict.BETTER, old, new, (f"{old.reason} -> {new.reason}",))
    metrics = [m for m in METRICS if same_bounds or m is not BOUND] if _comparable(old, new) else []
    moved = [(m, m.direction(old, new, tolerance)) for m in metrics]
    moves = tuple(_told(m, old, new) for m, direction in moved if direction)
    counted = {direction for _, direction in moved if direction and not scatter.forgives(direction, old, new)}
    if 1 in counted:
        return Compared(Verdict.WORSE, old, new, moves)
    if -1 in counted or _more_specials(new, old):
        return Compared(Verdict.BETTER, old, new, moves + _specials(old, new))
    same = (old.output_bits, old.reason) == (new.output_bits, new.reason)
    return Compared(Verdict.SAME if same else Verdict.CHANGED, old, new, moves)


def _falls(old: Row, new: Row) -> list[str]:
    """What no tolerance forgives."""
    falls = [f"{old.reason} -> {new.reason}"] if _severity(new) < _severity(old) else []
    if new.rows_not_judged > old.rows_not_judged:
        falls.append(f"rows not judged {old.rows_not_judged} -> {new.rows_not_judged}")
    if _more_specials(old, new):
        falls.extend(_specials(old, new))
    return falls


def _severity(row: Row) -> tuple[int, int]:
    """Larger is better: the outcome, and among failures how grave the reason is."""
    rank = (Outcome.FAIL, Outcome.NOT_JUDGED, Outcome.PASS).index(row.outcome)
    return (rank, list(Reason).index(row.reason) if row.outcome is Outcome.FAIL else 0)


def _same_inputs(old: Row, new: Row) -> bool:
    return (old.input_bits, old.rows) == (new.input_bits, new.rows)


def _has_result(row: Row) -> bool:
    return row.compared > 0


def _comparable(old: Row, new: Row) -> bool:
    """Whether both hold errors, judged, of the same inputs: a call that raised has none, which is no progress."""
    judged = all(_has_result(row) and row.outcome is not Outcome.NOT_JUDGED for row in (old, new))
    return judged and _same_inputs(old, new)


def _more_specials(old: Row, new: Row) -> bool:
    """In a failure: what passes or is not judged has them outside of its domain alone, where nothing is promised."""
    failing = _has_result(old) and new.outcome is Outcome.FAIL
    return failing and new.special_mismatches > old.special_mismatches


def _told(metric: Metric, old: Row, new: Row) -> str:
    return f"{metric.name} {format_number(metric.of(old))} -> {format_number(metric.of(new))}"


def _specials(old: Row, new: Row) -> tuple[str, ...]:
    if old.special_mismatches == new.special_mismatches:
        return ()
    return (f"special mismatches {old.special_mismatches} -> {new.special_mismatches}",)
