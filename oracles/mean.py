"""mean: ``y = sum_j x_j / n`` over the visible elements of a row, n their number.

Shapes: x (rows, n), mask (rows, n) or None -> y (rows,). A row without elements gives NaN; NaN and infinities as in
sum, and nothing is promised where ``sum |x_j|`` overflows the accumulator.
"""

import numpy as np

from oracles.arithmetics import Operations, Vector
from oracles.bounds import ErrorModel
from oracles.classes import Classes, ElementClass
from oracles.formats import Array
from oracles.operator import Inputs, Operator, Output
from oracles.sum import Shown, classify_reduction, magnitude, promise_where_no_overflow, visible


def define(a: Operations, x: Vector) -> tuple[Vector, ...]:
    return (a.sum(x) / x.shape[-1],)


def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
    return classify_reduction(inputs, empty=ElementClass.NAN)


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K = sum_j |x_j| / n."""
    return (magnitude(inputs) / np.maximum(inputs.visible.sum(axis=-1), 1),)


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    """B = [(h + 3) sum |x_j| + 3 sum |x_j - xbar|] u/n + eta.

    The sum's h, a division or the product with a rounded 1/n and its rounding; the second term covers running means
    (Welford), whose updates round in proportion to the deviations. The quotient may underflow.
    """
    shown = Shown(inputs)
    spread = shown.mean(np.abs(shown.centred))[:, 0]
    h = model.depth(shown.count)[:, 0]
    size = shown.mean(np.abs(shown.x))[:, 0]
    result = ((h + 3) * size + 3 * spread) * model.u + model.eta
    return (promise_where_no_overflow(result, inputs, model),)


MEAN = Operator(
    name="mean",
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
    sources=("Higham, Accuracy and Stability, 2nd ed., sections 1.9 and 4.2",),
)
