"""What every bound is made of: the arithmetic it speaks of, the depth of a sum, and the rule of the judge.

Derived in the style of N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., chapters 3 and 4.
Each operator's own bound stands in its module; docs/bounds.md tells how the constants were validated.
"""

import re
from dataclasses import dataclass

import numpy as np

from oracles.formats import Array, Format

# Errors of elementary functions in ulps; one ulp is at most 2u relative. NumPy's float32 exp errs by up to 2.54 ulp,
# its log by 3.10; CUDA documents expf 2, logf 1, rsqrtf 2, division in fast forms 2.
E_EXP, E_LOG, E_RSQRT, E_DIV = 3.0, 4.0, 2.0, 2.0
# Roundings proportional to |x - max|: the subtraction, the product with log2 e, and that constant's own error.
# They also cover __expf, which errs by 2 + 1.173 |x| ulp.
C_SHIFT = 3.0

SUMMATIONS = r"lanes:[1-9]\d*|tree|compensated"


@dataclass(frozen=True)
class ErrorModel:
    """The arithmetic a bound speaks of: what an implementation's contract says of its inside.

    Attributes:
        accumulate: format of the internal arithmetic.
        flush: results and inputs below the smallest normal may be taken as 0.
        summation: claimed shape of the sums, or None for any order at all.
        cast_before_weight: the normalised row is rounded to storage before it is multiplied by the weight.
        unfused_shift: the softmax family's exponent is a difference of two rounded products or sums.
        rounded_statistics: a norm sees its sum with the residual as it was stored, not as it was computed.
        through: results are rounded to this format before they are rounded to storage.
        bounded_domain: squares neither overflow nor underflow (the contract has a domain).
    """

    accumulate: Format
    flush: bool = False
    summation: str | None = None
    cast_before_weight: bool = False
    unfused_shift: bool = False
    rounded_statistics: bool = False
    through: Format | None = None
    bounded_domain: bool = False

    def __post_init__(self) -> None:
        if self.summation is not None and not re.fullmatch(SUMMATIONS, self.summation):
            raise ValueError(f"summation={self.summation!r}: expected 'lanes:T' (T >= 1), 'tree' or 'compensated'")

    @property
    def u(self) -> float:
        """Unit roundoff of the internal arithmetic."""
        return self.accumulate.unit_roundoff

    @property
    def eta(self) -> float:
        """The absolute error of one operation whose result underflows."""
        return self.accumulate.smallest_normal if self.flush else self.accumulate.smallest_subnormal

    def depth(self, count: Array) -> Array:
        """h with ``|computed sum - sum| <= h u sum |terms|`` for sums of ``count`` terms.

        Any order of additions: ``count - 1`` (Higham, section 4.2). ``lanes:T``: T interleaved partial sums, then a
        tree over them. ``tree``: pairwise throughout. Both carry three more roundings: each lane's first addition
        to 0 of a converted term, a correction, and the last rounding. ``compensated``: Kahan, section 4.3. No claim
        is worse than any order at all.
        """
        any_order: Array = np.maximum(count - 1, 0)
        claimed: Array
        match (self.summation or "").split(":"):
            case ["lanes", lanes]:
                claimed = np.ceil(count / int(lanes)) + np.ceil(np.log2(int(lanes))) + 3
            case ["tree"]:
                claimed = np.ceil(np.log2(np.maximum(count, 1))) + 3
            case ["compensated"]:
                claimed = 2 + count**2 * self.u
            case _:
                return any_order
        least: Array = np.minimum(claimed, any_order)
        return least


def stored_through(bound: Array, magnitude: Array, model: ErrorModel) -> Array:
    """B + ulp_G(|y| + B)/2 where results pass through a format G on their way to storage; an exact 0 stays exact."""
    if model.through is None:
        return bound
    rounded = half_ulp_at(magnitude + bound, model.through)
    total: Array = bound + np.where((magnitude == 0) & (bound == 0), 0, rounded)
    return total


def granted(bound: Array, magnitude: Array, fmt: Format, model: ErrorModel) -> tuple[Array, Array]:
    """B at storage, and ulp(|y| + B)/2: the value that is rounded may lie one binade above y."""
    at_storage = stored_through(bound, magnitude, model)
    return at_storage, half_ulp_at(magnitude + at_storage, fmt)


def tolerance(bound: Array, half_ulp: Array, fmt: Format, model: ErrorModel) -> Array:
    """T = B + ulp(|y| + B)/2, and one smallest normal more where flushing can hit the stored result."""
    flushed = fmt.smallest_normal if model.flush and fmt.emin == model.accumulate.emin else 0.0
    total: Array = bound + half_ulp + flushed
    return total


def half_ulp_at(magnitude: Array, fmt: Format) -> Array:
    """``ulp(v)/2`` of magnitudes in working precision, elementwise."""
    _, exponent = np.frexp(magnitude)
    # frexp gives 0 the exponent of 1/2; its unit is the smallest subnormal.
    exponent = np.where(magnitude == 0, fmt.emin, np.maximum(exponent - 1, fmt.emin)) - fmt.precision + 1
    half: Array = np.ldexp(magnitude.dtype.type(0.5), exponent)
    return half
