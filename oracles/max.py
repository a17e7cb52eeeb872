"""max: ``y = max_j x_j`` over the visible elements of a row.

Shapes: x (rows, n), mask (rows, n) or None -> y (rows,). A row without elements gives -inf; NaN gives NaN wherever
it stands; infinities are values like others. The result is one of the inputs, so the bound is 0.
"""

import numpy as np

from oracles.arithmetics import Operations, Vector
from oracles.bounds import ErrorModel
from oracles.classes import Classes, ElementClass, choose
from oracles.formats import Array
from oracles.operator import Inputs, Mask, Operator, Output


def define(a: Operations, x: Vector) -> tuple[Vector, ...]:
    return (a.max(x),)


def visible(inputs: Inputs) -> Mask:
    """-inf never decides a maximum that has a value."""
    return inputs.visible & ~np.isneginf(inputs.x64)


def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
    classes = choose(
        (len(inputs.x), 1),
        (inputs.has_nan, ElementClass.NAN),
        (inputs.has_pos_inf, ElementClass.POS_INF),
        (~visible(inputs).any(axis=-1, keepdims=True), ElementClass.NEG_INF),
    )
    return (classes[:, 0],)


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K = |y|: the largest element's own share."""
    return (np.abs(exact[0]),)


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    """B = 0."""
    return (np.zeros_like(exact[0]),)


MAX = Operator(
    name="max",
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
    sources=("IEEE 754-2019, section 9.6 (maximum)",),
)
