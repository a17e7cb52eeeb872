"""logsumexp: ``y = log(sum_j exp(x_j))`` over the visible elements of a row.

Shapes: x (rows, n), mask (rows, n) or None -> y (rows,). An element of -inf contributes nothing; a row without
elements gives -inf; a visible NaN gives NaN, also beside +inf; otherwise +inf gives +inf.

Also what the softmax family shares: :class:`Shift`, after P. Blanchard, D. J. Higham and N. J. Higham, "Accurately
computing the log-sum-exp and softmax functions", IMA J. Numer. Anal. 41 (2021).
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from oracles.arithmetics import Operations, Vector
from oracles.bounds import C_SHIFT, E_EXP, E_LOG, ErrorModel
from oracles.classes import Classes, ElementClass, choose
from oracles.formats import Array
from oracles.operator import Inputs, Mask, Operator, Output


def log_sum(a: Operations, x: Vector) -> Vector:
    """``log sum_j exp(x_j - max)``. The maxima are counted, not summed: what is left over keeps its digits where
    it is far below 1, and a row with one dominant element does not cost thousands of bits."""
    top = a.is_max(x)
    count = a.sum(top)
    rest = a.sum(a.exp(x - a.max(x)) * (1 - top))
    return a.log(count) + a.log1p(rest / count)


def define(a: Operations, x: Vector) -> tuple[Vector, ...]:
    return (a.max(x) + log_sum(a, x),)


def visible(inputs: Inputs) -> Mask:
    """Within the softmax family an element of -inf is a masked element."""
    hidden = np.isneginf(inputs.x64)
    return inputs.visible & ~hidden


def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
    nothing = ~visible(inputs).any(axis=-1, keepdims=True)
    classes = choose(
        (len(inputs.x), 1),
        (inputs.has_nan, ElementClass.NAN),
        (inputs.has_pos_inf, ElementClass.POS_INF),
        (nothing, ElementClass.NEG_INF),
    )
    return (classes[:, 0],)


@dataclass(frozen=True)
class Shift:
    """A row seen from its maximum m: d_j = m - x_j, the weights s_j = exp(-d_j)/S, and what its sums lose.

    ``s`` and ``d`` are 0 at elements that take no part. All arrays are (rows, n) or (rows, 1).
    """

    x: Array
    m: Array
    d: Array
    s: Array
    total: Array
    off: Array
    rescaled: Array
    count: Array

    @classmethod
    def of(cls, inputs: Inputs) -> "Shift":
        seen = visible(inputs)
        lowest = np.array(-np.inf, dtype=inputs.wide)
        shown = np.where(seen, inputs.x.astype(inputs.wide), lowest)
        m = shown.max(axis=-1, keepdims=True, initial=-np.inf)
        d = np.where(seen, m - shown, 0)
        e = np.where(seen, np.exp(-d), 0)
        total = e.sum(axis=-1, keepdims=True)
        s = e / np.where(total > 0, total, 1)
        off = np.where(d > 0, s, 0).sum(axis=-1, keepdims=True)
        count = seen.sum(axis=-1, keepdims=True).astype(inputs.wide)
        rescaled = rescalings(shown, s) + off * np.ceil(np.log2(np.maximum(count, 1)))
        return cls(np.where(seen, shown, 0), m, d, s, total, off, rescaled, count)

    def sum(self, values: Array) -> Array:
        total: Array = values.sum(axis=-1, keepdims=True)
        return total

    @property
    def mean_magnitude(self) -> Array:
        """sx = sum_j s_j |x_j|: logsumexp's absolute condition number."""
        return self.sum(self.s * np.abs(self.x))

    def others_magnitude(self) -> Array:
        """``|x_i| (1 - s_i) + sum_{j != i} s_j |x_j|``: log_softmax's absolute condition number."""
        own = np.abs(self.x)
        total: Array = own * (1 - self.s) + np.maximum(self.mean_magnitude - self.s * own, 0)
        return total

    def sum_error(self, model: ErrorModel) -> Array:
        """relS: the relative error of the computed S, in three passes, online with any tile, or by a tree of (m, l)
        pairs. Each term carries the roundings of its exponent and its exp (unless that is exp(0) = 1); the sum
        adds h; each rescaling by exp(m_old - m_new) < 1 costs another exp and two roundings."""
        relative: Array = model.u * (
            C_SHIFT * self.sum(self.s * self.d)
            + 2 * E_EXP * self.off
            + model.depth(self.count)
            + (2 * E_EXP + 2) * self.rescaled
        )
        return relative


@singledispatch
def rescalings(x: Any, s: Any) -> Any:
    """``sum_j s_j #(strict running maxima after j)``, (rows, 1): how often, on average over the mass, an online
    softmax rescales by something other than 1, whichever end of the row it starts from."""
    return np.maximum(_from_left(x, s), _from_left(x[:, ::-1], s[:, ::-1]))


def _from_left(x: Array, s: Array) -> Array:
    before = np.maximum.accumulate(x, axis=-1)[:, :-1]
    new = np.zeros(x.shape, np.bool_)
    new[:, 1:] = x[:, 1:] > before
    after = new.sum(axis=-1, keepdims=True) - np.cumsum(new, axis=-1)
    total: Array = (s * after).sum(axis=-1, keepdims=True)
    return total


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K = sum_j s_j |x_j|."""
    return (Shift.of(inputs).mean_magnitude[:, 0],)


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    """B = relS + u [2 E_log |log S| + 1 + |y|], absolute.

    log S inherits S's relative error and errs by E_log ulps of its own; the addition of m rounds once (|y|) after
    one rounding of storage for log S (1). With an unfused shift the maximum itself errs by a rounding:
    + u (sx + |m|).
    """
    shift = Shift.of(inputs)
    log_total = np.abs(np.log(shift.total))
    result = shift.sum_error(model) + model.u * (2 * E_LOG * log_total + 1 + np.abs(exact[0])[:, None])
    if model.unfused_shift:
        result = result + model.u * (shift.mean_magnitude + np.abs(shift.m))
    return (result[:, 0],)


LOGSUMEXP = Operator(
    name="logsumexp",
    family="softmax",
    optional=("mask",),
    parameters=(),
    outputs=(Output("y", per_row=True),),
    define=define,
    visible=visible,
    classify=classify,
    condition=condition,
    bound=bound,
    rational=False,
    sources=("Blanchard, Higham & Higham, IMA J. Numer. Anal. 41 (2021), algorithm 3.1 and section 4",),
)
