"""How far a number may move: the tolerance, and what is forgiven as the scatter of another order of operations.

A sum in another order is neither better nor worse, but each row's largest error is that of a few roundings which fell
otherwise: a fifth of all float32 rows rise by more than any tolerance worth having, and as many fall. So a rise is
forgiven where bits changed and the same implementation's rows moved both ways about equally often (a sign test over
rows, in the row's dtype and over all of them).

This costs power. A product with 1 / sum in the place of softmax's division, one more rounding, moves misrounded shares
up by a little: over eight seeds of a quick float32 plan the test saw it at 2.5 sigma on two (-0.4 to 3.3 sigma; a
paired t over rows did no better), while three reordered sums stayed between -1.8 and 0.9. ``--tolerance scatter=0``
forgives nothing: it sees every such edit, and every reordering too.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

from reports.gate.schema import Row

# Fewer changed rows than these tell no direction: every rise counts.
FEWEST = 8
# Scatter moves rows both ways: with more than so many rises for each fall there is a direction, however few they are.
ONE_SIDED = 3
# The share of its bound up to which a row may rise as scatter: so many times what the worst row used, or a tenth.
CAP, CAP_FROM = 2.0, 0.1


@dataclass(frozen=True)
class Tolerance:
    """What a row may do and still be "changed within".

    Attributes:
        rise: by how much bound_used and max_row_ulp may rise, as a share of what they were.
        share: by how much the share of misrounded results may rise.
        scatter: standard deviations by which rises may outnumber falls; 0 forgives no scatter.

    Raises:
        ValueError: a negative number, or one that is not finite.
    """

    rise: float = 0.1
    share: float = 0.0
    scatter: float = 2.5

    def __post_init__(self) -> None:
        for f in fields(self):
            if not 0 <= getattr(self, f.name) < math.inf:
                raise ValueError(f"tolerance {f.name}={getattr(self, f.name)}: expected a number from 0 on")

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Tolerance":
        """From ``NAME=NUMBER``; a number alone is the rise."""
        known = [f.name for f in fields(cls)]
        values = {}
        for text in texts:
            name, equals, number = text.rpartition("=")
            name = name if equals else "rise"
            try:
                values[name] = float(number)
            except ValueError:
                name = ""
            if name not in known:
                raise ValueError(f"cannot read --tolerance {text!r}: expected NAME=NUMBER with {', '.join(known)}")
        return cls(**values)


@dataclass(frozen=True)
class Metric:
    """A number of a row that should not rise."""

    name: str
    of: Callable[[Row], float]
    rises: Callable[[float, float, Tolerance], bool]

    def direction(self, old: Row, new: Row, tolerance: Tolerance) -> int:
        """1 for a rise beyond the tolerance, -1 for as large a fall, else 0."""
        before, after = self.of(old), self.of(new)
        return self.rises(before, after, tolerance) - self.rises(after, before, tolerance)


def _relative(before: float, after: float, tolerance: Tolerance) -> bool:
    return after > before * (1 + tolerance.rise)


BOUND = Metric("bound used", lambda row: row.bound_used, _relative)
METRICS = (
    BOUND,
    Metric("max row ULP", lambda row: row.max_row_ulp, _relative),
    Metric("misrounded share", lambda row: row.share, lambda before, after, t: after > before + t.share),
)
Group = tuple[str, ...]


class Scatter:
    """The rises and falls of all pairs of rows, and which of them are nothing but scatter."""

    def __init__(self, pairs: list[tuple[Row, Row]], tolerance: Tolerance) -> None:
        self.sigmas = tolerance.scatter
        self.moves: Counter[tuple[Group, str, int]] = Counter()
        self.changed: Counter[Group] = Counter()
        self.most_used: dict[Group, float] = {}
        for old, new in pairs:
            own, every = _groups(old)
            self.most_used[own] = max(self.most_used.get(own, 0.0), old.bound_used)
            if old.output_bits != new.output_bits:
                self.changed[every] += 1
                for metric in METRICS:
                    direction = metric.direction(old, new, tolerance)
                    self.moves.update([(own, metric.name, direction), (every, metric.name, direction)])

    def forgives(self, metric: Metric, direction: int, old: Row, new: Row) -> bool:
        """Whether this move of a row says nothing. Rows of the same bits do not scatter."""
        own, every = _groups(old)
        if not self.sigmas or old.output_bits == new.output_bits or self.changed[every] < FEWEST:
            return False
        if direction > 0 and new.bound_used > max(CAP * self.most_used[own], CAP_FROM):
            return False
        both_ways = self._all(every, direction) <= ONE_SIDED * self._all(every, -direction)
        return both_ways and not any(self._significant(group, metric, direction) for group in (own, every))

    def _significant(self, group: Group, metric: Metric, direction: int) -> bool:
        """The sign test: more this way than the other by more than chance."""
        this, other = (self.moves[group, metric.name, way] for way in (direction, -direction))
        return this - other > self.sigmas * math.sqrt(this + other)

    def _all(self, group: Group, direction: int) -> int:
        return sum(self.moves[group, metric.name, direction] for metric in METRICS)


def _groups(row: Row) -> tuple[Group, Group]:
    """The rows that a change of one implementation moves together: those of its dtype, and all."""
    return (row.op, row.impl, row.output, row.dtype), (row.op, row.impl, row.output)


def format_number(value: float) -> str:
    return f"{value:.4g}"
