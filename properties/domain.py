"""Which rows a contract lets us judge: its domain, and what flushing subnormals excuses."""

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from gpu_impls.contract import Contract
from oracles.formats import Array
from oracles.operator import Inputs, Operator
from oracles.sum import Shown

Rows = NDArray[np.bool_]

# Operators whose intermediates are of the size of n max|x|^2, and of n max|x|.
_SQUARES = ("var", "rms_norm", "fused_add_rms_norm", "layer_norm")
_SUMS = ("sum", "mean")
# Operators that subtract the mean: their variance must not vanish against the domain.
_CENTRED = ("var", "layer_norm")


def outside_domain(op: Operator, inputs: Inputs, contract: Contract) -> Rows:
    """Rows about which the contract promises nothing, (rows,).

    Within (lo, hi): every non-zero finite |x_i| lies between them; for layer_norm and var the variance plus eps is 0
    or at least lo^2; and n max|x|^2 (n max|x| for sums) is at most a quarter of the accumulator's largest value.
    """
    if contract.domain is None:
        return np.zeros(len(inputs.x), np.bool_)
    lo, hi = contract.domain
    size = _finite_magnitudes(op, inputs)
    largest = size.max(axis=-1, initial=0.0)
    smallest = np.where(size > 0, size, np.inf).min(axis=-1, initial=np.inf)
    outside = (largest > hi) | (smallest < lo)
    limit = contract.accumulate_in(inputs.fmt.name).largest / 4
    n = op.visible(inputs).sum(axis=-1)
    if op.name in _SQUARES:
        outside |= n * largest**2 > limit
    if op.name in _SUMS:
        outside |= n * largest > limit
    if op.name in _CENTRED:
        outside |= _variance_vanishes(inputs, lo)
    return outside


def _finite_magnitudes(op: Operator, inputs: Inputs) -> Array:
    """|x| in working precision, that of its sum with the residual where there is one; 0 where hidden or not finite
    (those rows are about classes, not sizes)."""
    with np.errstate(invalid="ignore"):  # inf - inf
        x = np.abs(inputs.x.astype(inputs.wide) + inputs.optional("residual", 0.0))
    return np.where(op.visible(inputs) & np.isfinite(x), x, 0)


def _variance_vanishes(inputs: Inputs, lo: float) -> Rows:
    with np.errstate(all="ignore"):
        shown = Shown(inputs)
        total = shown.mean(shown.centred**2)[:, 0] + inputs.parameters.get("eps", 0.0)
    return (total > 0) & (total < inputs.wide.type(lo) ** 2)


def holds_subnormals(op: Operator, inputs: Inputs) -> Rows:
    """Rows with a visible subnormal input, (rows,): a kernel that flushes may read it as 0."""
    sizes = [_finite_magnitudes(op, inputs)]
    if "residual" in inputs.arrays:  # what is added, not the sum alone
        sizes += [np.abs(inputs.x.astype(inputs.wide)), np.abs(inputs.optional("residual", 0.0))]
    tiny = inputs.fmt.smallest_normal
    return reduce(np.logical_or, [((size > 0) & (size < tiny)).any(axis=-1) for size in sizes])
