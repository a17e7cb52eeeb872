"""sum: ``y = sum_j x_j`` over the visible elements of a row.

Shapes: x (rows, n), mask (rows, n) or None -> y (rows,). A row without elements gives 0; NaN gives NaN, and so do
+inf and -inf together; one kind of infinity alone gives that infinity. Where ``sum |x_j|`` overflows the accumulator
the order of additions decides between inf, NaN and a number: nothing is promised (the bound is infinite).
"""

import numpy as np

from oracles.arithmetics import Operations, Vector
from oracles.bounds import ErrorModel
from oracles.classes import Classes, ElementClass, choose
from oracles.formats import Array
from oracles.operator import Inputs, Mask, Operator, Output


def define(a: Operations, x: Vector) -> tuple[Vector, ...]:
    return (a.sum(x),)


def visible(inputs: Inputs) -> Mask:
    return inputs.visible


def classify_reduction(inputs: Inputs, empty: ElementClass) -> tuple[Classes, ...]:
    """The classes of a sum or mean, a row without elements being ``empty``."""
    nothing = ~inputs.visible.any(axis=-1, keepdims=True)
    classes = choose(
        (len(inputs.x), 1),
        (nothing, empty),
        (inputs.has_nan | (inputs.has_pos_inf & inputs.has_neg_inf), ElementClass.NAN),
        (inputs.has_pos_inf, ElementClass.POS_INF),
        (inputs.has_neg_inf, ElementClass.NEG_INF),
    )
    return (classes[:, 0],)


def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
    return classify_reduction(inputs, empty=ElementClass.VALUE)


class Shown:
    """The visible elements in working precision, hidden ones 0, and their number, (rows, n) and (rows, 1)."""

    def __init__(self, inputs: Inputs) -> None:
        self.seen = inputs.visible
        self.x = np.where(self.seen, inputs.x.astype(inputs.wide), 0)
        self.count = self.seen.sum(axis=-1, keepdims=True).astype(inputs.wide)
        # About a pivot near the mean, rows of mean 1000 and spread 0.001 keep the digits of their spread.
        pivot = self.mean(self.x)
        self.offset = self.mean(self.hide(self.x - pivot))
        self.xbar = pivot + self.offset
        self.centred = self.hide((self.x - pivot) - self.offset)

    def hide(self, values: Array) -> Array:
        return np.where(self.seen, values, 0)

    def mean(self, values: Array) -> Array:
        mean: Array = values.sum(axis=-1, keepdims=True) / np.maximum(self.count, 1)
        return mean


def magnitude(inputs: Inputs) -> Array:
    """``sum |x_j|``, (rows,)."""
    shown = np.where(inputs.visible, inputs.x.astype(inputs.wide), 0)
    total: Array = np.abs(shown).sum(axis=-1)
    return total


def promise_where_no_overflow(bound: Array, inputs: Inputs, model: ErrorModel) -> Array:
    """The bound, and infinity where ``sum |x_j|``, rounded as it grows, may overflow the accumulator."""
    rounded = magnitude(inputs) * (1 + model.depth(inputs.visible.sum(axis=-1)) * model.u)
    return np.where(rounded > model.accumulate.largest, np.inf, bound)


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K = sum_j |x_j|."""
    return (magnitude(inputs),)


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    """B = h u sum_j |x_j| (Higham, section 4.2)."""
    h = model.depth(inputs.visible.sum(axis=-1).astype(inputs.wide))
    return (promise_where_no_overflow(h * model.u * magnitude(inputs), inputs, model),)


SUM = Operator(
    name="sum",
    family="sum",
    optional=("mask",),
    parameters=(),
    outputs=(Output("y", per_row=True),),
    define=define,
    visible=visible,
    classify=classify,
    condition=condition,
    bound=bound,
    rational=True,
    sources=("Higham, Accuracy and Stability, 2nd ed., section 4.2",),
)
