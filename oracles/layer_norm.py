"""layer_norm: ``y_i = (x_i - xbar) / sqrt(var(x) + eps) * weight_i + bias_i`` (var with ddof 0).

Shapes: x (rows, n), weight and bias (n,) or None, eps >= 0 -> y (rows, n); no mask. A NaN or an infinity makes the
whole row NaN. Zero variance gives the bias if eps > 0 (judged by the bound: the computed mean need not be exact); if
eps = 0 it is 0/0, which rounding may hide: nothing is promised, except NaN where every partial sum is exact (n = 1,
zero rows). A weight or bias that is not finite makes its element ANY. J. L. Ba, J. R. Kiros and G. E. Hinton,
"Layer normalization", arXiv 1607.06450 (2016).
"""

from typing import Any

import numpy as np

from oracles.arithmetics import Operations, Vector
from oracles.bounds import E_RSQRT, ErrorModel
from oracles.classes import Classes, ElementClass, choose
from oracles.formats import Array
from oracles.operator import Inputs, Mask, Operator, Output
from oracles.rms_norm import affine, inverse_root_error, unpromised
from oracles.sum import Shown, visible
from oracles.var import centred, mean_error, variance_bound


def define(
    a: Operations, x: Vector, eps: Any, weight: Vector | None = None, bias: Vector | None = None
) -> tuple[Vector, ...]:
    n, c = x.shape[-1], centred(a, x)
    root = a.sqrt(a.sum(c * c) / n**3 + eps)
    return (affine(c / (root * n), weight, bias),)


def constant_rows(inputs: Inputs) -> Mask:
    """Rows whose elements are all equal: zero variance, (rows, 1)."""
    constant: Mask = (inputs.x == inputs.x[:, :1]).all(axis=-1, keepdims=True)
    return constant


def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
    zero_over_zero = constant_rows(inputs) & (inputs.parameters["eps"] == 0)
    exact_sums = (inputs.x == 0).all(axis=-1, keepdims=True) | (inputs.x.shape[-1] == 1)
    classes = choose(
        inputs.x.shape,
        (unpromised(inputs), ElementClass.ANY),
        (inputs.has_nan | inputs.has_pos_inf | inputs.has_neg_inf, ElementClass.NAN),
        (zero_over_zero & exact_sums, ElementClass.NAN),
        (zero_over_zero, ElementClass.ANY),
    )
    return (classes,)


class Standardised:
    """V = sigma^2 + eps, r = V^-1/2, z = (x - xbar) r, g = |w| r, in working precision."""

    def __init__(self, inputs: Inputs) -> None:
        self.shown = Shown(inputs)
        self.eps = inputs.wide.type(inputs.parameters["eps"])
        self.variance = self.shown.mean(self.shown.centred**2)
        self.total = self.variance + self.eps
        self.z = self.shown.centred / np.sqrt(self.total)
        self.g = np.abs(inputs.optional("weight", 1.0)) / np.sqrt(self.total)


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K_i = g_i [ |x_i| + mean|x| + |z_i| mean|x z| ], an upper bound of sum_j |x_j dy_i/dx_j|."""
    std = Standardised(inputs)
    x = np.abs(std.shown.x)
    return (std.g * (x + std.shown.mean(x) + np.abs(std.z) * std.shown.mean(x * np.abs(std.z))),)


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    """B_i = g_i (1 + f)(delta + u |x_i - xbar|) + |p_i| [f + (2 E_rs + 3.5) u]
    + u (|y_i| + |b_i|) [if bias] + u g_i (|x_i| + |xbar|) + eta (|w_i| + 2).

    rho = B_var/V is the relative error of the computed variance plus eps, and f that of its reciprocal root; the
    true variance is not negative, so f never exceeds sqrt(V/eps) - 1 unless rho itself is small. delta is the error
    of the subtracted mean. The term in |x_i| + |xbar| admits x a + (b - xbar a). Covers two-pass, Welford and
    Chan's merges.
    """
    std = Standardised(inputs)
    shown, u = std.shown, model.u
    rho = variance_bound(shown, std.variance, model) / std.total
    f = np.maximum(np.minimum(inverse_root_error(rho), np.sqrt(std.total / std.eps) - 1), np.minimum(rho / 2, 1))
    p = std.g * np.abs(shown.centred)
    weight = np.abs(inputs.optional("weight", 1.0))
    result = (
        std.g * (1 + f) * (mean_error(shown, model) + u * np.abs(shown.centred))
        + np.where(p == 0, 0, p * (f + (2 * E_RSQRT + 3.5) * u))
        + u * std.g * (np.abs(shown.x) + np.abs(shown.xbar))
        + model.eta * (weight + 2)
    )
    if "bias" in inputs.arrays:
        result = result + u * (np.abs(exact[0]) + np.abs(inputs.optional("bias", 0.0)))
    return (result,)


def undecided(inputs: Inputs, exact: tuple[Array, ...], bounds: tuple[Array, ...]) -> Mask:
    """Rows whose largest bound exceeds half their largest output: the data leave nothing to judge (roughly mean/std
    above 1.7e7/n in float32). A constant row's bound is about the bias alone and stays."""
    promised = ~unpromised(inputs)
    size, slack = (np.where(promised, np.abs(v), 0).max(axis=-1, initial=0.0) for v in (exact[0], bounds[0]))
    rows: Mask = (slack > size / 2) & ~constant_rows(inputs)[:, 0]
    return rows


LAYER_NORM = Operator(
    name="layer_norm",
    family="norm",
    optional=("weight", "bias"),
    parameters=("eps",),
    outputs=(Output("y", per_row=False),),
    define=define,
    visible=visible,
    classify=classify,
    condition=condition,
    bound=bound,
    rational=False,
    sources=("Ba, Kiros & Hinton, arXiv 1607.06450", "Chan, Golub & LeVeque, Amer. Stat. 37 (1983)"),
    undecided=undecided,
)
