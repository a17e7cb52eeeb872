"""Bounds, against BOUNDS.md, sections 1 to 6, written out once more: plain loops over one row, in mpmath.

The oracle's bounds are vectorised, cancel with care and mask; these here do nothing of the kind.
"""

import importlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import oracles.bounds
from oracles.bounds import ErrorModel
from oracles.classes import ElementClass
from oracles.formats import FORMATS, Format
from oracles.operator import Inputs
from properties.case import Case
from test_oracles_inputs import ALONE as OPERATORS
from test_oracles_inputs import cases_for

E_EXP, E_LOG, E_RS, E_DIV, C_S = 3, 4, 2, 2, 3
F32, F64 = FORMATS["float32"], FORMATS["float64"]

MODELS = {
    "plain": ErrorModel(F32),
    "flush": ErrorModel(F32, flush=True),
    "lanes": ErrorModel(F32, summation="lanes:4"),
    "tree": ErrorModel(F32, summation="tree"),
    "compensated": ErrorModel(F32, summation="compensated"),
    "cast-and-domain": ErrorModel(F32, cast_before_weight=True, bounded_domain=True),
    "unfused": ErrorModel(F32, unfused_shift=True),
}


class Plain:
    """The bounds of one row of visible elements ``x``; methods return one number per output element."""

    def __init__(self, x: list[Any], model: ErrorModel, fmt: Format, weight: Any, bias: Any, eps: Any) -> None:
        self.x, self.n, self.model, self.fmt = x, len(x), model, fmt
        self.u, self.h = mpf(model.u), depth(model.summation, len(x), model.u)
        least = {F32.name: (-149, -126), F64.name: (-1074, -1022)}[model.accumulate.name]
        self.eta = mpf(2) ** least[model.flush]
        self.weight, self.bias, self.eps = weight or [mpf(1)] * self.n, bias, eps
        self.mean = sum(x) / self.n
        self.size = sum(abs(v) for v in x) / self.n
        self.spread = sum(abs(v - self.mean) for v in x) / self.n
        self.variance = sum((v - self.mean) ** 2 for v in x) / self.n

        self.promised = self.n * self.size <= model.accumulate.largest

    def sum(self) -> list[Any]:
        return [self.h * self.u * self.n * self.size if self.promised else mpf("inf")]

    def mean_(self) -> list[Any]:
        bound = ((self.h + 3) * self.size + 3 * self.spread) * self.u + self.eta
        return [bound if self.promised else mpf("inf")]

    def max(self) -> list[Any]:
        return [mpf(0)]

    def delta(self) -> Any:
        return self.u * ((self.h + 2) * self.size + 3 * self.spread)

    def var(self) -> list[Any]:
        sigma = mpmath.sqrt(self.variance)
        return [self.variance * (self.h + 8) * self.u + self.delta() ** 2 + 2 * self.delta() * sigma + 2 * self.eta]

    def softmax_parts(self) -> tuple[Any, ...]:
        """m, d, s, S and relS."""
        m = max(self.x)
        d = [m - v for v in self.x]
        total = sum(mpmath.exp(-v) for v in d)
        s = [mpmath.exp(-v) / total for v in d]
        off = sum(share for share, v in zip(s, d, strict=True) if v > 0)
        forward, backward = rescalings(self.x, s), rescalings(self.x[::-1], s[::-1])
        rb = max(forward, backward) + off * ceil_log2(self.n)
        mass = sum(share * v for share, v in zip(s, d, strict=True))
        relative = self.u * (C_S * mass + 2 * E_EXP * off + self.h + (2 * E_EXP + 2) * rb)
        return m, d, s, total, relative

    def shares(self, s: list[Any], i: int) -> Any:
        """|x_i| (1 - s_i) + sum over j != i of s_j |x_j|."""
        rest = sum(s[j] * abs(self.x[j]) for j in range(self.n) if j != i)
        return abs(self.x[i]) * sum(s[j] for j in range(self.n) if j != i) + rest

    def softmax(self) -> list[Any]:
        _, d, s, _, relative = self.softmax_parts()
        bounds = []
        for i in range(self.n):
            exponent = relative + self.u * (C_S * d[i] + 2 * E_EXP * (d[i] > 0) + 2 * E_DIV + 1)
            if self.model.unfused_shift:
                exponent += min(self.u * self.shares(s, i), mpf(1) / 4)
            bounds.append(s[i] * mpmath.expm1(exponent) + 2 * self.eta)
        return bounds

    def logsumexp(self) -> list[Any]:
        m, _, s, total, relative = self.softmax_parts()
        y = m + mpmath.log(total)
        bound = relative + self.u * (2 * E_LOG * abs(mpmath.log(total)) + 1 + abs(y))
        if self.model.unfused_shift:
            bound += self.u * (sum(s[j] * abs(self.x[j]) for j in range(self.n)) + abs(m))
        return [bound]

    def log_softmax(self) -> list[Any]:
        m, d, s, total, relative = self.softmax_parts()
        lse = m + mpmath.log(total)
        bounds = []
        for i in range(self.n):
            b = relative + self.u * (2 * E_LOG * abs(mpmath.log(total)) + 1 + d[i] + abs(self.x[i] - lse))
            bounds.append(b + (self.u * (self.shares(s, i) + abs(lse)) if self.model.unfused_shift else 0))
        return bounds

    def rms_norm(self) -> list[Any]:
        ms = sum(v * v for v in self.x) / self.n
        rho = ms / (ms + self.eps) * (self.h + 3) * self.u
        rho += 2 * self.eta / (ms + self.eps) if self.model.bounded_domain else 0
        f = 1 / mpmath.sqrt(1 - rho) - 1 if rho < 1 else mpf("inf")
        relative = f + (2 * E_RS + mpf("3.5")) * self.u

        def cast(v: Any, w: Any) -> Any:
            """Half an ulp of storage, of the smallest subnormal's size at least, times the weight."""
            size = abs(v * w) / mpmath.sqrt(ms + self.eps)
            return max(self.fmt.unit_roundoff * size, mpf(self.fmt.smallest_subnormal) / 2 * abs(w))

        return [
            (abs(v * w) / mpmath.sqrt(ms + self.eps) * relative if v * w else 0)
            + (self.u * abs(v * w / mpmath.sqrt(ms + self.eps) + self.bias[i]) if self.bias else 0)
            + self.eta * (abs(w) + 2)
            + (cast(v, w) if self.model.cast_before_weight else 0)
            for i, (v, w) in enumerate(zip(self.x, self.weight, strict=True))
        ]

    def layer_norm(self) -> list[Any]:
        total = self.variance + self.eps
        rho = self.var()[0] / total
        f = 1 / mpmath.sqrt(1 - rho) - 1 if rho < 1 else mpf("inf")
        if self.eps:
            f = min(f, mpmath.sqrt(total / self.eps) - 1)
        f = max(f, min(rho / 2, 1))
        bounds = []
        for i, (v, w) in enumerate(zip(self.x, self.weight, strict=True)):
            g, deviation = abs(w) / mpmath.sqrt(total), abs(v - self.mean)
            b = g * (1 + f) * (self.delta() + self.u * deviation) if g else 0
            b += g * deviation * (f + (2 * E_RS + mpf("3.5")) * self.u) if g * deviation else 0
            if self.bias:
                y = (v - self.mean) / mpmath.sqrt(total) * w + self.bias[i]
                b += self.u * (abs(y) + abs(self.bias[i]))
            bounds.append(b + self.u * g * (abs(v) + abs(self.mean)) + self.eta * (abs(w) + 2))
        return bounds


def depth(summation: str | None, n: int, u: float) -> Any:
    """Section 1."""
    claims = {
        None: n - 1,
        "lanes:4": math.ceil(n / 4) + 2 + 3,
        "tree": ceil_log2(n) + 3,
        "compensated": 2 + n * n * mpf(u),
    }
    return max(min(claims[summation], n - 1), 0)


def ceil_log2(n: int) -> int:
    return (n - 1).bit_length()


def rescalings(x: list[Any], s: list[Any]) -> Any:
    """sum over j of s_j times the number of strict running maxima after j."""
    new = [all(x[k] > v for v in x[:k]) for k in range(len(x))]
    return sum(s[j] * sum(new[j + 1 :]) for j in range(len(x)))


def plain_bounds(op: str, inputs: Inputs, model: ErrorModel, r: int) -> list[Any]:
    """The bounds of row ``r``'s visible elements."""
    x = [mpf(v) for v in inputs.x[r].astype(float)[OPERATORS[op].visible(inputs)[r]].tolist()]
    weight, bias = (
        [mpf(v) for v in inputs.arrays[name].astype(float).tolist()] if name in inputs.arrays else None
        for name in ("weight", "bias")
    )
    plain = Plain(x, model, inputs.fmt, weight, bias, mpf(inputs.parameters.get("eps", 0.0)))
    return getattr(plain, "mean_" if op == "mean" else op)()


def rows_of_values(case: Case, model: ErrorModel) -> Iterator[tuple[list[float], list[float]]]:
    """Each row's bounds, the oracle's and the plain ones, where every visible element is a value."""
    op, inputs = case.operator, case.inputs
    (classes,), visible = op.classify(inputs, "zero"), op.visible(inputs)
    exact = tuple(truth.enclosure.value(inputs.wide.type) for truth in case.truths)
    with np.errstate(all="ignore"):  # rows of NaN and inf have no bound
        (bound,) = op.bound(inputs, exact, model)
    for r in range(case.rows):
        shown = [0] if op.outputs[0].per_row else visible[r]
        if visible[r].any() and (np.atleast_1d(classes[r])[shown] == ElementClass.VALUE).all():
            got = [float(b) for b in np.atleast_1d(bound[r])[shown]]
            yield got, [float(b) for b in plain_bounds(case.op, inputs, model, r)]


@pytest.mark.parametrize("claim", MODELS)
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("op", OPERATORS)
def test_bounds_are_those_of_the_page(op: str, dtype: str, claim: str):
    model = replace(MODELS[claim], accumulate=F64 if dtype == "float64" else F32)
    compared = 0
    with mpmath.workdps(60):
        for case in cases_for(op, dtype):
            for got, wanted in rows_of_values(case, model):
                assert got == pytest.approx(wanted, rel=1e-6, abs=0)
                compared += len(got)
    assert compared > 50


@pytest.mark.parametrize("constant", ["E_EXP", "E_LOG", "E_RSQRT", "E_DIV", "C_SHIFT"])
def test_a_constant_that_drifts_is_found(constant: str, monkeypatch: pytest.MonkeyPatch):
    for name in ("logsumexp", "softmax", "log_softmax", "rms_norm", "layer_norm"):
        module = importlib.import_module(f"oracles.{name}")
        if hasattr(module, constant):
            monkeypatch.setattr(module, constant, getattr(oracles.bounds, constant) * 1.001)
    with mpmath.workdps(60):
        cases = [case for op in OPERATORS for case in cases_for(op, "float32")]
        rows = [row for case in cases for row in rows_of_values(case, MODELS["plain"])]
    assert any(got != pytest.approx(wanted, rel=1e-6, abs=0) for got, wanted in rows)
