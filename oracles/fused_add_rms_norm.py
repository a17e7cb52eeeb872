"""fused_add_rms_norm: ``s_i = x_i + residual_i``, ``y_i = s_i / sqrt(mean_j s_j^2 + eps) * weight_i``; both come out.

Shapes: x and residual (rows, n), weight (n,) or None, eps >= 0 -> y (rows, n), updated (rows, n); no mask. ``updated``
is s, by IEEE addition: NaN for opposite infinities, infinite for one; its sign of zero is not compared. ``y`` is
rms_norm of s, its special rows included. Which s it is, the sum or what was stored of it, is the contract's
``statistics``; exact values are those of the sum. vLLM's fused_add_rms_norm reads the stored one, FlashInfer's does
not.
"""

from typing import Any

import numpy as np

from oracles import rms_norm
from oracles.arithmetics import Operations, Vector
from oracles.bounds import ErrorModel
from oracles.classes import Classes, ElementClass, choose
from oracles.formats import Array
from oracles.operator import Inputs, Operator, Output
from oracles.rms_norm import Scaled
from oracles.sum import visible


def define(a: Operations, x: Vector, residual: Vector, eps: Any, weight: Vector | None = None) -> tuple[Vector, ...]:
    s = x + residual
    return (*rms_norm.define(a, s, eps, weight), s)


def parts(inputs: Inputs) -> tuple[Array, Array]:
    """x and residual in working precision."""
    x, residual = (inputs.arrays[name].astype(inputs.wide) for name in ("x", "residual"))
    return x, residual


def summed(inputs: Inputs) -> Inputs:
    """What rms_norm is given: the sums, in working precision."""
    x, residual = parts(inputs)
    with np.errstate(invalid="ignore"):  # inf - inf
        others = {name: array for name, array in inputs.arrays.items() if name == "weight"}
        return Inputs(inputs.fmt, {"x": x + residual, **others}, inputs.parameters)


def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
    of = summed(inputs)
    s = of.x
    updated = choose(
        s.shape,
        (np.isnan(s), ElementClass.NAN),
        (np.isposinf(s), ElementClass.POS_INF),
        (np.isneginf(s), ElementClass.NEG_INF),
    )
    return (*rms_norm.classify(of, masked_row), updated)


def condition(inputs: Inputs, exact: tuple[Array, ...]) -> tuple[Array, ...]:
    """K_i = g_i [ |x_i| + |r_i| + |z_i| mean_j |z_j| (|x_j| + |r_j|) ] for y, g = |w|/root and z = s/root.

    For s it is |x_i| + |r_i|.
    """
    of = summed(inputs)
    scaled = Scaled(of)
    x, residual = parts(inputs)
    size, z = np.abs(x) + np.abs(residual), np.abs(of.x / scaled.root)
    others = z * (z * size).sum(axis=-1, keepdims=True) / max(size.shape[-1], 1)
    return (np.abs(scaled.weight) / scaled.root * (size + others), size)


def bound(inputs: Inputs, exact: tuple[Array, ...], model: ErrorModel) -> tuple[Array, ...]:
    """B_i = B_i of rms_norm at s + u_s K_i + eta_s g_i (1 + |z_i|) for y; 0 for s, or u |s_i| + eta.

    K is rms_norm's condition number at s, g = |w|/root. Each s_j rounds once in the accumulator (u, eta), and once more
    in storage where that is what the norm sees (u_F, eta_F): u_s and eta_s are their sums; of a row with a sum that
    overflows storage such a norm promises nothing. The stored s is the correct
    rounding where the accumulator has storage's precision p, or 2 p + 2 and more (S. A. Figueroa, "When is double
    rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
    """
    of, fmt = summed(inputs), inputs.fmt
    scaled = Scaled(of)
    (of_norm,), (k,) = rms_norm.bound(of, exact[:1], model), rms_norm.condition(of, exact[:1])
    u = model.u + (fmt.unit_roundoff if model.rounded_statistics else 0.0)
    eta = model.eta + (fmt.smallest_subnormal if model.rounded_statistics else 0.0)
    spread = np.abs(scaled.weight) / scaled.root * (1 + np.abs(of.x / scaled.root))
    innocuous = model.accumulate.precision == fmt.precision or model.accumulate.precision >= 2 * fmt.precision + 2
    of_sum = np.zeros_like(exact[1]) if innocuous else model.u * np.abs(exact[1]) + model.eta
    of_y = of_norm + u * k + np.where(np.isfinite(spread), eta * spread, 0)
    if model.rounded_statistics:
        overflows = (np.abs(of.x) * (1 + fmt.unit_roundoff) >= fmt.largest).any(axis=-1, keepdims=True)
        of_y = np.where(overflows, np.inf, of_y)
    return (of_y, of_sum)


FUSED_ADD_RMS_NORM = Operator(
    name="fused_add_rms_norm",
    family="norm",
    optional=("residual", "weight"),
    parameters=("eps",),
    outputs=(Output("y", per_row=False), Output("updated", per_row=False)),
    define=define,
    visible=visible,
    classify=classify,
    condition=condition,
    bound=bound,
    rational=False,
    sources=("Zhang & Sennrich, NeurIPS 2019", "Figueroa, SIGNUM Newsletter 30(3), 1995"),
)
