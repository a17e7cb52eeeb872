"""Tallies: what is kept of a judgement. They merge associatively, so that any split of the work gives the same table.

Counts and maxima with their places; the errors as a sum in integers and an integer histogram, from which mean and
percentiles are derived.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf, ldexp
from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np
from numpy.typing import NDArray

from gpu_impls.outcome import Outcome, Reason
from oracles.enclosure import Floats
from oracles.ulp import BINS, CAP, UNIT_BITS
from properties.judge import Judgement

# A row's mean error, as one character: eight levels to a binade from 2**-4 ULP on, and one for what was not judged.
LEVELS, NO_LEVEL = digits + ascii_uppercase + ascii_lowercase, "."
_LEVELS_TO_A_BINADE, _LOWEST_LEVEL = 8, -4
# From this condition number on, and an error of more than 4 ULP, "the data did it" is worth saying.
TELLING_CONDITION, TELLING_ERROR = 1e3, 4.0


@dataclass(frozen=True)
class Worst:
    """The largest error, where it is, and the condition number there. An error of -1 says that none was measured."""

    error: float = -inf
    place: str = ""
    condition: float = 0.0

    def __or__(self, other: "Worst") -> "Worst":
        """The larger error; of equal ones the larger condition number, then the first place in the order of text."""
        return min(self, other, key=lambda w: (-w.error, -w.condition, w.place))


@dataclass(frozen=True)
class Tally:
    """Counts and maxima over elements; ``|`` merges two.

    Errors are summed in units of 2**-UNIT_BITS ULP; bin -inf of the histogram is 0, bin inf is infinite.

    ``worst`` ranks by what went wrong first (a failed element before any other), ``largest`` by ULPs alone.
    ``levels`` holds (case, one of ``LEVELS`` per row), in the order of text.
    """

    elements: int = 0
    compared: int = 0
    numbers: int = 0
    misrounded: int = 0
    roundings_open: int = 0
    special_mismatches: int = 0
    rows: int = 0
    rows_not_judged: int = 0
    max_row_ulp: float = 0.0
    bound_used: float = 0.0
    largest: Worst = Worst()
    failed: Worst = Worst()
    error_sum: int = 0
    histogram: Counter[float] = field(default_factory=Counter)
    reasons: Counter[Reason] = field(default_factory=Counter)
    levels: tuple[tuple[str, str], ...] = ()

    def __or__(self, other: "Tally") -> "Tally":
        return Tally(
            elements=self.elements + other.elements,
            compared=self.compared + other.compared,
            numbers=self.numbers + other.numbers,
            misrounded=self.misrounded + other.misrounded,
            roundings_open=self.roundings_open + other.roundings_open,
            special_mismatches=self.special_mismatches + other.special_mismatches,
            rows=self.rows + other.rows,
            rows_not_judged=self.rows_not_judged + other.rows_not_judged,
            max_row_ulp=max(self.max_row_ulp, other.max_row_ulp),
            bound_used=max(self.bound_used, other.bound_used),
            largest=self.largest | other.largest,
            failed=self.failed | other.failed,
            error_sum=self.error_sum + other.error_sum,
            histogram=self.histogram + other.histogram,
            reasons=self.reasons + other.reasons,
            levels=tuple(sorted(self.levels + other.levels)),
        )

    @property
    def max_ulp(self) -> float:
        return max(self.largest.error, 0.0)

    @property
    def mean_ulp(self) -> float:
        if self.histogram[inf]:
            return inf
        return float(Fraction(self.error_sum, self.numbers << UNIT_BITS)) if self.numbers else 0.0

    def percentile(self, share: float) -> float:
        """The upper end of the histogram's bin that holds this share of the errors."""
        wanted, seen = ceil(share * self.numbers), 0
        for bin_, count in sorted(self.histogram.items()):
            seen += count
            if seen >= wanted:
                return min(_upper_end(bin_), self.max_ulp)
        return 0.0

    @property
    def reason(self) -> Reason:
        """What stands for all of it: the worst reason among what was judged, if anything was."""
        judged = [r for r in self.reasons if r.outcome is not Outcome.NOT_JUDGED]
        worst = Reason.worst(judged or list(self.reasons))
        telling = self.largest.error > TELLING_ERROR and self.largest.condition > TELLING_CONDITION
        return Reason.ILL_CONDITIONED_PASS if worst is Reason.WITHIN and telling else worst

    @property
    def worst(self) -> Worst:
        """The element to look at: a failed one if there is one."""
        return self.failed if self.failed.place else self.largest


def tally(judgement: Judgement, case_id: str, rows: Sequence[int] | None = None) -> Tally:
    """What is kept of one judgement; places read ``CASE@row.element``.

    ``rows``: which rows of the case were judged, where these are not all.
    """
    numbers = ~np.isnan(judgement.errors)
    errors = judgement.errors[numbers]
    unjudged = judgement.expectation.unjudged
    return Tally(
        elements=judgement.computed.size,
        compared=int(judgement.compared.sum()),
        numbers=int(numbers.sum()),
        misrounded=int(judgement.misrounded.sum()),
        roundings_open=int(judgement.rounding_open.sum()),
        special_mismatches=int(judgement.special.sum()),
        rows=len(unjudged),
        rows_not_judged=sum(reason is not None for reason in unjudged),
        max_row_ulp=_largest(judgement.row_errors),
        bound_used=_largest(judgement.used),
        largest=_worst(judgement, np.where(numbers, judgement.errors, -1.0), case_id, rows) or Worst(-1.0, case_id),
        failed=_worst(judgement, _failure_rank(judgement), case_id, rows) or Worst(),
        error_sum=_integer_sum(errors),
        histogram=_histogram(errors),
        reasons=_reasons(judgement),
        levels=((case_id, _levels(judgement)),),
    )


def tally_without_result(elements: int, rows: int, reason: Reason, case_id: str) -> Tally:
    """A run that gave nothing to compare."""
    not_judged = rows if reason.outcome is Outcome.NOT_JUDGED else 0
    return Tally(
        elements=elements,
        rows=rows,
        rows_not_judged=not_judged,
        largest=Worst(-1.0, case_id),
        failed=Worst(inf, case_id) if reason.outcome is Outcome.FAIL else Worst(),
        reasons=Counter({reason: 1}),
        levels=((case_id, NO_LEVEL * rows),),
    )


def merge(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for t in tallies:
        total = total | t
    return total


def _failure_rank(judgement: Judgement) -> Floats:
    """Wrong classes first, then what lies furthest over its bound; -1 where nothing failed."""
    rank = np.where(judgement.special, inf, np.nan_to_num(judgement.used, nan=0.0, posinf=1e300))
    return np.where(judgement.failed, rank, -1.0)


def _worst(judgement: Judgement, rank: Floats, case_id: str, rows: Sequence[int] | None) -> Worst | None:
    """The largest rank, ties as in :meth:`Worst.__or__`, so that any split of the rows gives the same; None below 0."""
    if not rank.size or rank.max() < 0:
        return None
    condition = np.where(rank == rank.max(), judgement.expectation.condition, -1.0)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(condition)), rank.shape))
    row, *element = index
    place = f"{case_id}@{'.'.join(map(str, (row if rows is None else rows[row], *element)))}"
    return Worst(float(rank[index]), place, float(judgement.expectation.condition[index]))


def _largest(values: Floats) -> float:
    """The maximum over what is a number, 0 where nothing is."""
    return float(np.max(values, initial=0.0, where=~np.isnan(values)))


def _integer_sum(errors: Floats) -> int:
    finite = errors[np.isfinite(errors)]
    total = int(_in_units(finite[finite < CAP]).sum())
    return total + sum(round(Fraction(e) * 2**UNIT_BITS) for e in finite[finite >= CAP].tolist())


def _in_units(errors: Floats) -> NDArray[np.int64]:
    return np.rint(np.ldexp(errors, UNIT_BITS)).astype(np.int64)


def _levels(judgement: Judgement) -> str:
    """An element counts with ``CAP`` ULP at most."""
    numbers = ~np.isnan(judgement.errors)
    within_row = tuple(range(1, numbers.ndim))
    units = _in_units(np.where(numbers, np.minimum(judgement.errors, CAP), 0.0)).sum(axis=within_row)
    counts = numbers.sum(axis=within_row)
    judged = [reason is None for reason in judgement.expectation.unjudged]
    return "".join(levels(units, np.where(judged, counts, 0)))


def levels(units: NDArray[np.int64], counts: NDArray[np.int64]) -> list[str]:
    """The level of each row, from the sum of its errors and their number. Exact operations throughout, like the
    histogram's bins."""
    mantissa, exponent = np.frexp(np.ldexp(units / np.maximum(counts, 1), -UNIT_BITS))
    steps = np.floor((2 * mantissa - 1) * _LEVELS_TO_A_BINADE)
    heights = (exponent - 1 - _LOWEST_LEVEL) * _LEVELS_TO_A_BINADE + steps
    heights = np.where(units == 0, 0, np.clip(heights, 0, len(LEVELS) - 1)).astype(int)
    return [LEVELS[h] if count else NO_LEVEL for h, count in zip(heights.tolist(), counts.tolist(), strict=True)]


def _histogram(errors: Floats) -> Counter[float]:
    """Bins by exact operations on the float's exponent and mantissa: the same on every machine."""
    mantissa, exponent = np.frexp(errors)
    bins = exponent * float(BINS) + np.floor((mantissa - 0.5) * (2 * BINS))
    bins = np.where(errors == 0, -inf, np.where(np.isinf(errors), inf, bins))
    values, counts = np.unique(bins, return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def _upper_end(bin_: float) -> float:
    if np.isinf(bin_):
        return 0.0 if bin_ < 0 else inf
    exponent, step = divmod(int(bin_), BINS)
    return ldexp(0.5 + (step + 1) / (2 * BINS), exponent)


def _reasons(judgement: Judgement) -> Counter[Reason]:
    """How often each reason occurs: by element where judged, by row where not."""
    judged = judgement.expectation.judged
    over = Reason.OVER_BOUND if judgement.expectation.max_ulp is None else Reason.OVER_BUDGET
    special, beyond, undecided = (
        int((f & judged).sum()) for f in (judgement.special, judgement.over, judgement.undecided)
    )
    within = int((judgement.compared & judged).sum()) - special - beyond - undecided
    counts = {Reason.SPECIAL: special, over: beyond, Reason.UNDECIDED: undecided, Reason.WITHIN: within}
    unjudged = Counter(reason for reason in judgement.expectation.unjudged if reason is not None)
    return Counter({reason: count for reason, count in counts.items() if count}) + unjudged or Counter(
        {Reason.NOTHING: 1}
    )
