"""What a regime is: a name, a promise, a builder of rows that keep it, and a predicate that says whether one does."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

import numpy as np

from oracles.formats import Array, Format
from oracles.rounding import round_floats
from properties.source import Floats, Source

FAMILIES = frozenset({"sum", "softmax", "norm"})
"""sum: sum, mean, max; softmax: softmax, log_softmax, logsumexp; norm: rms_norm, layer_norm, var."""

EVERY_FAMILY = FAMILIES


@dataclass(frozen=True)
class Regime:
    """A named family of hostile rows.

    Args:
        name: as in reports and baselines.
        promise: one sentence; what ``holds`` checks.
        families: the operators it is meant for.
        build: ``(source, n, format)`` to one row of length n in float64, not yet rounded.
        holds: whether a row, rounded to the format and given in float64, keeps the promise.
        min_length, max_length: the lengths it can be built for; None is unlimited.
    """

    name: str
    promise: str
    families: frozenset[str]
    build: Callable[[Source, int, Format], Floats]
    holds: Callable[[Floats, Format], bool]
    min_length: int = 0
    max_length: int | None = None

    def __post_init__(self) -> None:
        if not self.families or not self.families <= FAMILIES:
            raise ValueError(f"regime {self.name}: families {sorted(self.families)} are not all in {sorted(FAMILIES)}")

    def fits(self, n: int) -> bool:
        """Whether rows of length ``n`` exist."""
        return self.min_length <= n and (self.max_length is None or n <= self.max_length)

    def row(self, source: Source, n: int, fmt: Format) -> Array:
        """One row of length ``n`` in ``fmt.dtype``. Raises ``ValueError`` where no such row exists."""
        if not self.fits(n):
            limits = f"{self.min_length} to {'any' if self.max_length is None else self.max_length}"
            raise ValueError(f"regime {self.name} has no rows of length {n}: expected {limits}")
        return round_floats(self.build(source, n, fmt), fmt)


def accumulation_precision(fmt: Format) -> int:
    """Bits of the format that kernels accumulate in: float32, and float64 for float64 (BOUNDS.md, section 0)."""
    return max(fmt.precision, 24)


def ulps(values: Floats, fmt: Format) -> Floats:
    """The spacing of ``fmt`` at each value of its normal range."""
    _, exponents = np.frexp(values)
    return np.ldexp(1.0, np.maximum(exponents - 1, fmt.emin) - fmt.precision + 1)


def of_finite_rows(predicate: Callable[[Floats, Format], object]) -> Callable[[Floats, Format], bool]:
    """``predicate`` for finite rows of at least one element; empty rows keep any promise, others none."""

    @wraps(predicate)
    def holds(row: Floats, fmt: Format) -> bool:
        if row.size == 0 or not np.isfinite(row).all():
            return row.size == 0
        with np.errstate(all="ignore"):  # foreign rows may overflow or divide by zero here
            return bool(predicate(row, fmt))

    return holds
