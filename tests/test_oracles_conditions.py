"""Condition numbers K_i = sum_j |x_j dy_i/dx_j|, against derivatives taken numerically at 120 digits."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from oracles.arithmetics import ARITHMETICS
from oracles.arithmetics.protocol import objects
from oracles.formats import FORMATS, Format
from oracles.operator import Inputs
from oracles.sum import Shown
from oracles.truth import compute_truth
from properties.regimes import REGIMES
from properties.source import PCG64Source
from test_oracles_inputs import ALONE as OPERATORS
from test_oracles_inputs import each_format, given

F32 = FORMATS["float32"]
N = 7
BALANCED = ("standard_normal", "moderate_logits", "large_mean_small_variance", "near_ties")
DOMINATED = ("gap", "absorbed", "heavy_tail")


def row(regime: str) -> list[float]:
    return REGIMES[regime].row(PCG64Source("condition", regime), N, F32).astype(float).tolist()


def inputs_of(op: str, regime: str, masked: bool) -> Inputs:
    """A row, weights and biases for the norms, and elsewhere a mask that hides two elements."""
    if op in ("rms_norm", "layer_norm"):
        affine = {"weight": [1, -2, 0.5, 3, 1, 0, 1], "bias": [1, 1, -1, 0, 2, 5, 9]} if masked else {}
        return given(F32, row(regime), eps=1e-5, **affine)
    return given(F32, row(regime), mask=[True, False, True, True, True, False, True] if masked else None)


def numerical(op: str, inputs: Inputs) -> list[float]:
    """K of every output that a visible element has, by central differences."""
    x = [mpf(v) for v in inputs.x[0, OPERATORS[op].visible(inputs)[0]].astype(float).tolist()]
    others: dict[str, Any] = {
        name: objects([mpf(v) for v in inputs.arrays[name].astype(float).tolist()])
        for name in ("weight", "bias")
        if name in inputs.arrays
    }
    if inputs.parameters:
        others["eps"] = mpf(inputs.parameters["eps"])

    def outputs(moved: list[Any]) -> Any:
        return OPERATORS[op].define(ARITHMETICS["mpmath"], objects(moved), **others)[0]

    total: Any = 0
    for j, v in enumerate(x):
        h = mpf(10) ** -40 * (abs(v) or 1)
        ahead, behind = (outputs([*x[:j], v + s * h, *x[j + 1 :]]) for s in (1, -1))
        total = total + np.array([abs(v * d / (2 * h)) for d in ahead - behind])
    return [float(k) for k in total]


def claimed(op: str, inputs: Inputs) -> tuple[list[float], list[float]]:
    """K of every visible element, and its magnitude."""
    operator = OPERATORS[op]
    exact = tuple(t.enclosure.value() for t in compute_truth(operator, inputs))
    (k,) = operator.condition(inputs, exact)
    shown = [0] if operator.outputs[0].per_row else operator.visible(inputs)[0]
    return np.atleast_1d(k[0])[shown].tolist(), np.abs(np.atleast_1d(exact[0][0])[shown]).tolist()


@pytest.mark.parametrize("masked", [False, True], ids=["bare", "masked"])
@pytest.mark.parametrize("regime", BALANCED + DOMINATED)
@pytest.mark.parametrize("op", [name for name in OPERATORS if name != "layer_norm"])
def test_conditions_are_sums_of_derivatives(op: str, regime: str, masked: bool):
    inputs = inputs_of(op, regime, masked)
    with mpmath.workdps(120):
        right = numerical(op, inputs)
    for k, y, wanted in zip(*claimed(op, inputs), right, strict=True):
        # 1 - s_i cancels where one element has all the mass; softmax multiplies that by s_i.
        lost = {"softmax": y, "log_softmax": 1.0}.get(op, 0.0) * 1e-15 * float(np.abs(inputs.x.astype(float)).max())
        assert k == pytest.approx(wanted, rel=1e-6, abs=lost)


@pytest.mark.parametrize("masked", [False, True], ids=["bare", "masked"])
@pytest.mark.parametrize("regime", BALANCED + DOMINATED)
def test_the_condition_of_layer_norm_is_an_upper_bound(regime: str, masked: bool):
    """Within a factor of 3, unless one element has most of the variance: there the derivatives cancel."""
    inputs = inputs_of("layer_norm", regime, masked)
    with mpmath.workdps(120):
        right = np.array(numerical("layer_norm", inputs))
    upper = np.array(claimed("layer_norm", inputs)[0])
    assert (right <= upper * (1 + 1e-9)).all()
    assert (upper <= 3 * right).all() or regime in DOMINATED


@each_format
def test_deviations_from_the_mean_keep_their_digits(fmt: Format):
    """Of rows whose elements are a few of the format's steps apart: bounds and conditions are made of them."""
    steps = [Fraction(k) for k in (0, 3, 1, 6, 2, 7, 4)]
    inputs = given(fmt, [float(64 + k * 128 * Fraction(fmt.unit_roundoff)) for k in steps])
    right = [float((k - sum(steps) / len(steps)) * 128 * Fraction(fmt.unit_roundoff)) for k in steps]
    assert [float(v) for v in Shown(inputs).centred[0]] == pytest.approx(right, rel=1e-12, abs=0)


def test_ill_conditioned_rows_are_told_from_good_ones():
    """A variance of mean 1000 and spread 0.01 against one of mean 0; kappa = K / |y|."""
    kappas = []
    for mean, spread in ((1000.0, 0.01), (0.0, 1.0)):
        (k,), (y,) = claimed("var", given(F32, [mean + spread * v for v in (-1, 1, -2, 2)]))
        kappas.append(k / y)
    assert kappas[0] > 5e4
    assert kappas[1] == 2
