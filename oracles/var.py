"""var: ``y = sum_j (x_j - xbar)^2 / n`` (population variance, ddof 0) over the visible elements of a row.

Shapes: x (rows, n), mask (rows, n) or None -> y (rows,). n = 1 gives 0; a row without elements, with NaN or with an
infinity gives NaN. Condition and bound after T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing
the sample variance", Amer. Stat. 37 (1983).
"""

import numpy as np

from oracles.arithmetics import Operations, Vector
from oracles.bounds import ErrorModel
from oracles.classes import Classes, ElementClass, choose
from oracles.formats import Array
from oracles.operator import Inputs, Operator, Output
from oracles.sum import Shown, visible


def centred(a: Operations, x: Vector) -> Vector:
    """``n (x - xbar)`` as n x - sum x: exactly 0 where it is 0, whatever 1/n rounds to."""
    c: Vector = x * x.shape[-1] - a.sum(x)
    return c


def define(a: Operations, x: Vector) -> tuple[Vector, ...]:
    c = centred(a, x)
    return (a.sum(c * c) / x.shape[-1] ** 3,)


def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
    spoilt = inputs.has_nan | inputs.has_pos_inf | inputs.has_neg_inf
    nothing = ~inputs.visible.any(axis=-1, keepdims=True)
    return (choose((len(inputs.x), 1), (spoilt | nothing, ElementClass.NAN))[:, 0],)


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K = (2/n) sum_j |x_j (x_j - xbar)|; kappa is at most twice Chan, Golub and LeVeque's sqrt(1 + n xbar^2/S)."""
    shown = Shown(inputs)
    return (2 * shown.mean(np.abs(shown.x * shown.centred))[:, 0],)


def mean_error(shown: Shown, model: ErrorModel) -> Array:
    """delta = u [(h + 2) mean|x| + 3 mean|x - xbar|]: how far the subtracted mean may lie from xbar, (rows, 1)."""
    size, spread = (shown.mean(np.abs(v)) for v in (shown.x, shown.centred))
    delta: Array = model.u * ((model.depth(shown.count) + 2) * size + 3 * spread)
    return delta


def variance_bound(shown: Shown, variance: Array, model: ErrorModel) -> Array:
    """B_var = sigma^2 (h + 8) u + delta^2 + 2 delta sigma + 2 eta, (rows, 1).

    The sum of squares' own roundings; delta^2 is the two-pass algorithm's term, 2 delta sigma Welford's (each
    update multiplies two deviations from running means). E[x^2] - E[x]^2 has u kappa^2 and falls outside at short n.
    """
    delta, h = mean_error(shown, model), model.depth(shown.count)
    result: Array = variance * (h + 8) * model.u + delta**2 + 2 * delta * np.sqrt(variance) + 2 * model.eta
    return result


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    return (variance_bound(Shown(inputs), exact[0][:, None], model)[:, 0],)


VAR = Operator(
    name="var",
    family="norm",
    optional=("mask",),
    parameters=(),
    outputs=(Output("y", per_row=True),),
    define=define,
    visible=visible,
    classify=classify,
    condition=condition,
    bound=bound,
    rational=True,
    sources=("Chan, Golub & LeVeque, Amer. Stat. 37 (1983)", "Higham, Accuracy and Stability, section 1.9"),
)
