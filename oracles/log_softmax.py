"""log_softmax: ``y_i = x_i - log(sum_j exp(x_j))`` over the visible elements of a row.

Shapes: x (rows, n), mask (rows, n) or None -> y (rows, n). As softmax, with -inf in the place of 0: masked elements
and elements of -inf are -inf, and so is a row without visible elements (or NaN by ``masked_row``).
"""

import numpy as np

from oracles.arithmetics import Operations, Vector
from oracles.bounds import E_LOG, ErrorModel
from oracles.classes import Classes, ElementClass
from oracles.formats import Array
from oracles.logsumexp import Shift, log_sum, visible
from oracles.operator import Inputs, Operator, Output
from oracles.softmax import classify as classify_softmax


def define(a: Operations, x: Vector) -> tuple[Vector, ...]:
    return ((x - a.max(x)) - log_sum(a, x),)


def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
    return classify_softmax(inputs, masked_row, masked=ElementClass.NEG_INF)


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K_i = |x_i| (1 - s_i) + sum_{j != i} s_j |x_j|."""
    return (Shift.of(inputs).others_magnitude(),)


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    """B_i = relS + u [2 E_log |log S| + 1 + d_i + |y_i|].

    log S as in logsumexp; the shift x_i - m rounds once (d_i), the difference once more (|y_i|). With an unfused
    shift, x - logsumexp(x), the rounding of the large logsumexp stays: + u (K_i + |m + log S|).
    """
    shift = Shift.of(inputs)
    log_total = np.log(shift.total)
    result = shift.sum_error(model) + model.u * (2 * E_LOG * np.abs(log_total) + 1 + shift.d + np.abs(exact[0]))
    if model.unfused_shift:
        result = result + model.u * (shift.others_magnitude() + np.abs(shift.m + log_total))
    return (result,)


LOG_SOFTMAX = Operator(
    name="log_softmax",
    family="softmax",
    optional=("mask",),
    parameters=(),
    outputs=(Output("y", per_row=False),),
    define=define,
    visible=visible,
    classify=classify,
    condition=condition,
    bound=bound,
    rational=False,
    sources=("Blanchard, Higham & Higham, IMA J. Numer. Anal. 41 (2021), section 4",),
)
