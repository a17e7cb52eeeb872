"""rms_norm: ``y_i = x_i / sqrt(mean_j x_j^2 + eps) * weight_i + bias_i``.

Shapes: x (rows, n), weight and bias (n,) or None, eps >= 0 -> y (rows, n); no mask. A NaN makes the whole row NaN.
An infinite element becomes NaN and the finite ones 0 * weight (+ bias). A zero row gives 0 * weight (+ bias) if
eps > 0, NaN if eps = 0. Exact even where squares overflow or underflow the format. A weight or bias that is not
finite makes its element ANY. B. Zhang and R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.
"""

from typing import Any

import numpy as np

from oracles.arithmetics import Operations, Vector
from oracles.bounds import E_RSQRT, ErrorModel
from oracles.classes import Classes, ElementClass, choose
from oracles.formats import Array
from oracles.operator import Inputs, Operator, Output
from oracles.sum import visible


def affine(y: Vector, weight: Vector | None, bias: Vector | None) -> Vector:
    """``y * weight + bias``, each where present."""
    scaled = y if weight is None else y * weight
    return scaled if bias is None else scaled + bias


def define(
    a: Operations, x: Vector, eps: Any, weight: Vector | None = None, bias: Vector | None = None
) -> tuple[Vector, ...]:
    root = a.sqrt(a.sum(x * x) / x.shape[-1] + eps)
    return (affine(x / root, weight, bias),)


def unpromised(inputs: Inputs) -> Array:
    """Elements whose weight or bias is not finite, (n,)."""
    parts = [~np.isfinite(inputs.optional(name, 0.0)) for name in ("weight", "bias")]
    either: Array = parts[0] | parts[1]
    return either


def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
    infinite = np.isinf(inputs.x64)
    zero_row = (inputs.x == 0).all(axis=-1, keepdims=True) & (inputs.parameters["eps"] == 0)
    classes = choose(
        inputs.x.shape,
        (unpromised(inputs), ElementClass.ANY),
        (inputs.has_nan | zero_row | infinite, ElementClass.NAN),
    )
    return (classes,)


class Scaled:
    """p = x r w with r = (ms + eps)^-1/2, q = ms/(ms + eps) and a = x^2 r^2/n, in working precision."""

    def __init__(self, inputs: Inputs) -> None:
        n = max(inputs.x.shape[-1], 1)
        x = inputs.x.astype(inputs.wide)
        self.weight = inputs.optional("weight", 1.0)
        self.root = np.sqrt((x * x).sum(axis=-1, keepdims=True) / n + inputs.wide.type(inputs.parameters["eps"]))
        self.q = 1 - (np.sqrt(inputs.wide.type(inputs.parameters["eps"])) / self.root) ** 2
        z = x / self.root
        self.p = z * self.weight
        self.a = z * z / n


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K_i = |p_i| (1 + q - 2 a_i): x_i's own share is (1 - a_i), the others' sum to q - a_i."""
    scaled = Scaled(inputs)
    shares = np.maximum(1 + scaled.q - 2 * scaled.a, 0)  # they cancel in a row of one element
    return (np.where(scaled.p == 0, 0, np.abs(scaled.p) * shares),)


def inverse_root_error(rho: Array) -> Array:
    """f = (1 - rho)^-1/2 - 1, infinite from rho = 1 on; without cancellation, since rho may be near the roundoff."""
    f: Array = np.expm1(-np.log1p(-np.minimum(rho, 1)) / 2)
    return f


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    """B_i = |p_i| [f + (2 E_rs + 3.5) u] + u |y_i| [if bias] + eta (|w_i| + 2), f = (1 - rho)^-1/2 - 1.

    rho = q (h + 3) u is the relative error of ms + eps: each square and the division round, the sum adds h, eps
    dilutes all by q. Within a declared domain squares may still underflow one by one: + 2 eta/(ms + eps). The
    reciprocal root errs by E_rs ulps, the products and the division of the mean by 3.5 roundings. A cast of x r to
    storage before the weight costs a storage rounding, of half a smallest subnormal if x r is subnormal there:
    + max(u_F |p_i|, eta_F |w_i|/2).
    """
    scaled = Scaled(inputs)
    rho = scaled.q * (model.depth(inputs.wide.type(inputs.x.shape[-1])) + 3) * model.u
    if model.bounded_domain:
        rho = rho + 2 * model.eta / scaled.root**2
    relative = inverse_root_error(rho) + (2 * E_RSQRT + 3.5) * model.u
    size, weight = np.abs(scaled.p), np.abs(scaled.weight)
    # An infinite row's finite elements are 0 * weight: q is NaN there, and p is 0.
    result = np.where(size == 0, 0, size * relative) + model.eta * (weight + 2)
    if model.cast_before_weight:
        tiny = inputs.wide.type(inputs.fmt.smallest_subnormal) / 2
        result = result + np.maximum(inputs.fmt.unit_roundoff * size, tiny * weight)
    if "bias" in inputs.arrays:
        result = result + model.u * np.abs(exact[0])
    return (result,)


RMS_NORM = Operator(
    name="rms_norm",
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
    sources=("Zhang & Sennrich, NeurIPS 2019", "Higham, Accuracy and Stability, sections 3.1 and 4.2"),
)
