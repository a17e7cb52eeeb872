"""How far a number may move: the tolerance, and what is forgiven as the scatter of another order of operations.

A sum in another order is neither better nor worse, but each row's largest error is that of a few roundings which fell
otherwise: a fifth of all float32 rows rise by more than any tolerance worth having, and as many fall. So a rise is
forgiven where bits changed and the input rows of the same implementation and dtype show no direction.

The direction is that of Wilcoxon's signed-rank test on each input row's mean error before and after: the rows whose
level moved, ranked by how far, signs times ranks added up and divided by the root of the squared ranks' sum. If the two
kernels are equally accurate, a row's two errors could as well have come the other way round, so every sign is a fair
coin and the quotient has mean 0 and variance 1: beyond 3 is 1 in 740, whatever the distribution of the errors.

Over eight draws of a quick float32 plan, a product with 1 / sum in the place of softmax's division, one more rounding,
stood at 4.6 to 9.5 sigmas, the like of it in rms_norm at 9.8 to 11.8 and in layer_norm at 2.7 to 6.7. Of 240 runs with
a sum in another order of the same depth (sum, softmax, logsumexp, both norms) none came above 2.5. Of 144 in a plan
with rows of 1025 (softmax, logsumexp, layer_norm) two came above 3, at 3.4, both in layer_norm, where the reversed sum
stood at 1.5 on average: there the order matters a little. An order of another accuracy is called worse or better: a
sequential sum in softmax stood at 13.5 to 16.7. What hardly reaches the results passes: two more roundings of the sum
inside of logsumexp stood at 0.7 to 3.1.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from oracles.truth import SHARP
from properties.tally import LEVELS, NO_LEVEL
from reports.gate.schema import Row

# Fewer input rows than these would not show one more rounding: every rise counts.
ENOUGH = 1000
# The share of its bound up to which a row may rise as scatter: so many times what the worst row used, or a tenth.
CAP, CAP_FROM = 2.0, 0.1


@dataclass(frozen=True)
class Tolerance:
    """What a row may do and still be "changed within".

    Attributes:
        rise: by how much bound_used and max_row_ulp may rise, as a share of what they were.
        share: by how much the share of misrounded results may rise.
        scatter: standard deviations up to which a direction of the input rows is scatter; 0 forgives no scatter.

    Raises:
        ValueError: a negative number, or one that is not finite.
    """

    rise: float = 0.1
    share: float = 0.0
    scatter: float = 3.0

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
    """What lies below the width of the truth's enclosures is no rise: another arithmetic may tell it differently."""
    return after > max(before * (1 + tolerance.rise), SHARP)


BOUND = Metric("bound used", lambda row: row.bound_used, _relative)
METRICS = (
    BOUND,
    Metric("max row ULP", lambda row: row.max_row_ulp, _relative),
    Metric("misrounded share", lambda row: row.share, lambda before, after, t: after > before + t.share),
)
Pairs = list[tuple[Row, Row]]


class Scatter:
    """All pairs of rows, and which of their moves are nothing but scatter."""

    def __init__(self, pairs: Pairs, tolerance: Tolerance) -> None:
        self.sigmas = tolerance.scatter
        groups: dict[tuple[str, ...], Pairs] = {}
        for pair in pairs:
            groups.setdefault(_group(pair[0]), []).append(pair)
        self.trends = {group: Trend.of(together) for group, together in groups.items()}

    def forgives(self, direction: int, old: Row, new: Row) -> bool:
        """Whether a move of this row says nothing. Rows of the same bits do not scatter."""
        trend = self.trends[_group(old)]
        if not self.sigmas or old.output_bits == new.output_bits or trend.input_rows < ENOUGH:
            return False
        if direction > 0 and new.bound_used > max(CAP * trend.most_used, CAP_FROM):
            return False
        return direction * trend.sigmas <= self.sigmas


@dataclass(frozen=True)
class Trend:
    """Where the rows of one implementation and dtype moved: above 0 towards larger errors, in standard deviations."""

    input_rows: int
    sigmas: float
    most_used: float

    @classmethod
    def of(cls, pairs: Pairs) -> "Trend":
        """By the signed-rank test; ties share their mean rank, rows that stayed where they were have none."""
        both = [levels for old, new in pairs for levels in zip(old.levels, new.levels, strict=True)]
        moves = np.array([LEVELS.index(b) - LEVELS.index(a) for a, b in both if NO_LEVEL not in (a, b)])
        moved = moves[moves != 0]
        ranks = pd.Series(np.abs(moved)).rank().to_numpy()
        sigmas = float(np.sum(np.sign(moved) * ranks) / np.sqrt(np.sum(ranks**2))) if len(moved) else 0.0
        return cls(len(moves), sigmas, max(old.bound_used for old, _ in pairs))


def _group(row: Row) -> tuple[str, ...]:
    """The rows that a change of one implementation moves together."""
    return (row.op, row.impl, row.output, row.dtype)


def format_number(value: float) -> str:
    return f"{value:.4g}"
