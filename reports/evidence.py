"""What a page shows beside the table: the worst case of every cell, digit by digit, and histograms of the errors."""

from collections import Counter
from dataclasses import dataclass, field
from math import inf, isnan, ldexp

from properties.explain import element_lines, input_lines
from properties.oracle_check import Verdict, worst_element
from properties.tally import BINS, Worst
from reports.measurement import Partial

Cell = tuple[str, str, str, str, str]  # operator, implementation, dtype, output, regime
Series = tuple[str, str, str, str]  # the same without the regime
Rank = tuple[bool, float, float, str]

# Histograms are shown with two bins to a binade; what lies outside of these exponents is shown at their ends.
_SHOWN = 2
_LOWEST, _HIGHEST = -10, 34


@dataclass(frozen=True)
class Story:
    """The worst element of a cell: where, and everything about it in words."""

    rank: Rank
    n: int
    place: str
    lines: dict[str, str]


@dataclass(frozen=True)
class Evidence:
    """Stories by cell and histograms by series."""

    stories: dict[Cell, Story] = field(default_factory=dict)
    histograms: dict[Series, Counter[float]] = field(default_factory=dict)

    def note(self, verdict: Verdict, made: list[Partial]) -> None:
        """Take in one verdict. A story is only written if it is the worst of its cell so far."""
        for k, part in enumerate(made):
            *cell, n = part.key
            series, key = Series(cell[:-1]), Cell(cell)
            self.histograms.setdefault(series, Counter()).update(part.tally.histogram)
            rank = _rank(part.tally.failed, part.tally.worst)
            if key not in self.stories or rank < self.stories[key].rank:
                self.stories[key] = Story(rank, n, rank[-1], _lines(verdict, k, rank[-1]))

    def add(self, other: "Evidence") -> None:
        """Take in what another has noted, in any order and split to the same."""
        for cell, story in other.stories.items():
            self.stories[cell] = min(self.stories.get(cell, story), story, key=lambda s: s.rank)
        for series, histogram in other.histograms.items():
            self.histograms.setdefault(series, Counter()).update(histogram)


def _rank(failed: Worst, worst: Worst) -> Rank:
    """The order of :class:`Worst`, failures first, so that a story is about some measurement's ``worst_case``."""
    condition = -inf if isnan(worst.condition) else worst.condition
    return not failed.place, -worst.error, -condition, worst.place


def _lines(verdict: Verdict, output: int, place: str) -> dict[str, str]:
    inputs, reason = verdict.case.inputs, verdict.run.reason
    if reason is not None:
        first = input_lines(inputs, (0, 0)) if len(inputs.x) else {}
        return {**first, "verdict": f"{reason.outcome}: {reason}", "detail": verdict.run.detail}
    shape = verdict.run.outputs[output].shape
    if 0 in shape:
        return {"got": "empty, as it should be", "verdict": "not judged: nothing compared"}
    asked = worst_element(verdict.judgements[output]) if place == verdict.case.id else _index(place)
    element = f"{verdict.case.operator.outputs[output].name}{list(asked)} of {list(shape)}"
    return {"element": element, **element_lines(*verdict.at(output, asked))}


def _index(place: str) -> tuple[int, ...]:
    """The element of ``CASE@row.element``."""
    return tuple(int(i) for i in place.rpartition("@")[2].split("."))


def shown_bins(histogram: Counter[float]) -> list[tuple[float, float, int]]:
    """(lower end, upper end, count) in ULPs, sorted; 0 has a bin of its own, and so has infinity."""
    bins: Counter[tuple[float, float]] = Counter()
    for bin_, count in histogram.items():
        bins[_ends(bin_)] += count
    return [(low, high, count) for (low, high), count in sorted(bins.items())]


def _ends(bin_: float) -> tuple[float, float]:
    if abs(bin_) == inf:
        return (0.0, 0.0) if bin_ < 0 else (inf, inf)
    exponent, step = divmod(int(bin_) * _SHOWN // BINS, _SHOWN)
    if exponent <= _LOWEST:
        return ldexp(0.5, _LOWEST), ldexp(1.0, _LOWEST)
    if exponent > _HIGHEST:
        return ldexp(0.5, _HIGHEST + 1), ldexp(1.0, _HIGHEST + 1)
    low, high = (ldexp(0.5 + s / (2 * _SHOWN), exponent) for s in (step, step + 1))
    return low, high
