"""softmax: ``y_i = exp(x_i) / sum_j exp(x_j)`` over the visible elements of a row.

Shapes: x (rows, n), mask (rows, n) or None -> y (rows, n). Masked elements, and elements of -inf, are exactly 0. A
row without visible elements follows the named convention ``masked_row``: zeros or NaN. A visible NaN or +inf makes
every visible element NaN (inf - inf in the shifted form); what the masked ones hold then is not promised.
"""

import numpy as np

from oracles.arithmetics import Operations, Vector
from oracles.bounds import C_SHIFT, E_DIV, E_EXP, ErrorModel
from oracles.classes import Classes, ElementClass, choose
from oracles.formats import Array
from oracles.logsumexp import Shift, visible
from oracles.operator import Inputs, Operator, Output


def define(a: Operations, x: Vector) -> tuple[Vector, ...]:
    e = a.exp(x - a.max(x))
    return (e / a.sum(e),)


def classify(inputs: Inputs, masked_row: str, masked: ElementClass = ElementClass.VALUE) -> tuple[Classes, ...]:
    """``masked`` is the class of a masked element: VALUE (0 exactly) here, NEG_INF for log_softmax."""
    seen = visible(inputs)
    spoilt = inputs.has_nan | inputs.has_pos_inf
    empty = ~seen.any(axis=-1, keepdims=True)
    classes = choose(
        inputs.x.shape,
        (spoilt & seen, ElementClass.NAN),
        (spoilt, ElementClass.ANY),
        (empty, ElementClass.NAN if masked_row == "nan" else masked),
        (~seen, masked),
    )
    return (classes,)


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K_i = s_i [ |x_i| (1 - s_i) + sum_{j != i} s_j |x_j| ]."""
    shift = Shift.of(inputs)
    return (shift.s * shift.others_magnitude(),)


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    """B_i = s_i expm1( relS + u [c_s d_i + 2 E_exp (d_i > 0) + 2 E_div + 1] ) + 2 eta.

    The numerator's exponent carries c_s roundings of d_i and its exp E_exp ulps; the quotient, or the product with
    a reciprocal, E_div ulps and a rounding. Two operations may underflow. Masked elements are exactly 0. With an
    unfused shift the exponent errs by u kappa_i more, capped at 1/4.
    """
    shift = Shift.of(inputs)
    relative = shift.sum_error(model) + model.u * (C_SHIFT * shift.d + 2 * E_EXP * (shift.d > 0) + 2 * E_DIV + 1)
    if model.unfused_shift:
        relative = relative + np.minimum(model.u * shift.others_magnitude(), 0.25)
    seen = visible(inputs)
    # s underflows to 0 long before its exponent's bound would matter: 0 * inf is 0 here.
    scaled = np.where(shift.s > 0, shift.s * np.expm1(relative), 0)
    return (np.where(seen, scaled + 2 * model.eta, 0),)


SOFTMAX = Operator(
    name="softmax",
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
    sources=("Blanchard, Higham & Higham, IMA J. Numer. Anal. 41 (2021), algorithm 3.2 and section 4",),
)
