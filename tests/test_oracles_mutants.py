"""Every definition broken on purpose: the comparison with the second opinion must find each of them.

An oracle that is wrong in one of these ways would acquit every kernel that is wrong in the same way. The mutants are
written for one row at a time.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oracles.arithmetics import Arithmetic, Vector
from oracles.classes import Classes
from oracles.logsumexp import log_sum
from oracles.operator import Inputs, Mask, Operator
from oracles.rms_norm import affine
from oracles.truth import exact_arithmetic
from oracles.var import centred
from test_oracles_inputs import ALONE as OPERATORS
from test_oracles_inputs import INF, cases_for
from test_oracles_second_opinion import class_disagreements, value_disagreements

Outputs = tuple[Vector, ...]
Optional = Vector | None


def mean(a: Arithmetic, x: Vector) -> Vector:
    return a.sum(x) / len(x)


def log_2(a: Arithmetic, x: Vector) -> Vector:
    return a.log(x[:1] * 0 + 2)


def normalised(centre: Callable[..., Vector], root: Callable[..., Vector], after: Callable[..., Vector] = affine):
    """A norm from its parts: what is divided, what by, and what becomes of the quotient."""

    def define(a: Arithmetic, x: Vector, eps: Any, weight: Optional = None, bias: Optional = None) -> Outputs:
        return (after(centre(a, x) / root(a, x, eps), weight, bias),)

    return define


def as_it_is(a: Arithmetic, x: Vector) -> Vector:
    return x


def root_mean_square(a: Arithmetic, x: Vector, eps: Any) -> Vector:
    return a.sqrt(mean(a, x * x) + eps)


def from_mean(a: Arithmetic, x: Vector) -> Vector:
    return centred(a, x) / len(x)


def deviation(a: Arithmetic, x: Vector, eps: Any) -> Vector:
    c = from_mean(a, x)
    return a.sqrt(mean(a, c * c) + eps)


def bias_first(y: Vector, weight: Optional, bias: Optional) -> Vector:
    return affine(y if bias is None else y + bias, weight, None)


def weight_about_one(y: Vector, weight: Optional, bias: Optional) -> Vector:
    return affine(y, None if weight is None else weight + 1, bias)


NORM_MUTANTS: dict[str, Callable[[Any, Any], Any]] = {
    "eps-outside-the-root": lambda c, root: normalised(c, lambda a, x, eps: root(a, x, 0) + eps),
    "eps-halved": lambda c, root: normalised(c, lambda a, x, eps: root(a, x, eps / 2)),
    "eps-squared": lambda c, root: normalised(c, lambda a, x, eps: root(a, x, eps * eps)),
    "root-forgotten": lambda c, root: normalised(c, lambda a, x, eps: root(a, x, eps) * root(a, x, eps)),
    "weight-forgotten": lambda c, root: normalised(c, root, lambda y, w, b: affine(y, None, b)),
    "bias-forgotten": lambda c, root: normalised(c, root, lambda y, w, b: affine(y, w, None)),
    "bias-before-weight": lambda c, root: normalised(c, root, bias_first),
    "weight-about-one": lambda c, root: normalised(c, root, weight_about_one),
}

DEFINITIONS: dict[str, dict[str, Callable[..., Outputs]]] = {
    "sum": {
        "last-forgotten": lambda a, x: (a.sum(x[:-1]),),
        "first-counted-twice": lambda a, x: (a.sum(x) + x[:1],),
        "mean": lambda a, x: (mean(a, x),),
    },
    "mean": {
        "n-minus-1": lambda a, x: (a.sum(x) / max(len(x) - 1, 1),),
        "division-forgotten": lambda a, x: (a.sum(x),),
        "rounded-1/n": lambda a, x: (a.sum(x) * int(2.0**53 / len(x)) / 2**53,),
    },
    "var": {
        "ddof-1": lambda a, x: (_squares(a, x) / max(len(x) - 1, 1),),
        "mean-forgotten": lambda a, x: (mean(a, x * x),),
        "mean-squared-once": lambda a, x: (mean(a, x * x) - mean(a, x),),
        "division-forgotten": lambda a, x: (_squares(a, x),),
    },
    "max": {
        "first": lambda a, x: (x[:1],),
        "least": lambda a, x: (-a.max(-x),),
        "padded-with-0": lambda a, x: (a.max(np.append(x, x[:1] * 0)),),
        "magnitude": lambda a, x: (a.max(np.append(x, -x)),),
    },
    "logsumexp": {
        "maximum-alone": lambda a, x: (a.max(x),),
        "base-2": lambda a, x: (a.max(x) + log_sum(a, x) / log_2(a, x),),
        "ties-counted-once": lambda a, x: (a.max(x) + a.log1p(a.sum(a.exp(x - a.max(x)) * (1 - a.is_max(x)))),),
        "mean": lambda a, x: (a.max(x) + log_sum(a, x) - a.log(x[:1] * 0 + len(x)),),
    },
    "softmax": {
        "base-2": lambda a, x: (_shares(a, (x - a.max(x)) * log_2(a, x)),),
        "temperature": lambda a, x: (_shares(a, (x - a.max(x)) / 2),),
        "itself-not-counted": lambda a, x: (a.exp(x - a.max(x)) / (a.sum(a.exp(x - a.max(x))) + 1),),
        "first-forgotten": lambda a, x: (a.exp(x - a.max(x)) / a.sum(a.exp(x - a.max(x))[-2:]),),
    },
    "log_softmax": {
        "base-2": lambda a, x: (((x - a.max(x)) - log_sum(a, x)) / log_2(a, x),),
        "maximum-forgotten": lambda a, x: (x - log_sum(a, x),),
        "sum-forgotten": lambda a, x: (x - a.max(x),),
    },
    "rms_norm": {name: mutate(as_it_is, root_mean_square) for name, mutate in NORM_MUTANTS.items()}
    | {
        "mean-subtracted": normalised(from_mean, root_mean_square),
        "sum-for-mean": normalised(as_it_is, lambda a, x, eps: a.sqrt(a.sum(x * x) + eps)),
        "n-minus-1": normalised(as_it_is, lambda a, x, eps: a.sqrt(a.sum(x * x) / max(len(x) - 1, 1) + eps)),
    },
    "layer_norm": {name: mutate(from_mean, deviation) for name, mutate in NORM_MUTANTS.items()}
    | {
        "mean-forgotten": normalised(as_it_is, deviation),
        "root-mean-square": normalised(from_mean, root_mean_square),
        "rms-norm": normalised(as_it_is, root_mean_square),
        "ddof-1": normalised(from_mean, lambda a, x, eps: a.sqrt(_squares(a, x) / max(len(x) - 1, 1) + eps)),
    },
}


def _shares(a: Arithmetic, exponents: Vector) -> Vector:
    return a.exp(exponents) / a.sum(a.exp(exponents))


def _squares(a: Arithmetic, x: Vector) -> Vector:
    return a.sum(from_mean(a, x) * from_mean(a, x))


def seen_though_masked(op: Operator) -> Callable[[Inputs], Mask]:
    return lambda inputs: op.visible(inputs) | np.isfinite(inputs.x)


def forgetful(op: Operator, special: str) -> Callable[[Inputs, str], tuple[Classes, ...]]:
    """Classes decided as if one kind of special value, or the mask, were not there."""

    def classify(inputs: Inputs, masked_row: str) -> tuple[Classes, ...]:
        x = inputs.x.astype(np.float64)
        gone = {"nan": np.isnan(x), "inf": x == INF, "minus-inf": x == -INF}.get(special, np.zeros(x.shape, bool))
        arrays = inputs.arrays | {"x": np.where(gone, 1.0, x).astype(inputs.fmt.dtype)}
        kept = {k: v for k, v in arrays.items() if not (special == "mask" and k == "mask")}
        masked_row = "zero" if special == "convention" else masked_row
        return op.classify(Inputs(inputs.fmt, kept, inputs.parameters), masked_row)

    return classify


def mutants() -> list[Any]:
    broken = [(op, name, replace(OPERATORS[op], define=d)) for op, ds in DEFINITIONS.items() for name, d in ds.items()]
    masked = [op for op in OPERATORS.values() if "mask" in op.optional]
    broken += [(op.name, "mask-dropped", replace(op, visible=seen_though_masked(op))) for op in masked]
    return [pytest.param(op, id=f"{name}-{what}") for name, what, op in broken]


def forgetful_operators() -> list[Any]:
    pairs = [(op, special) for op in OPERATORS.values() for special in ("nan", "inf", "minus-inf")]
    pairs += [(op, "mask") for op in OPERATORS.values() if "mask" in op.optional]
    pairs += [(OPERATORS[name], "convention") for name in ("softmax", "log_softmax")]
    return [pytest.param(replace(op, classify=forgetful(op, s)), id=f"{op.name}-{s}") for op, s in pairs]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("mutant", mutants())
def test_a_broken_definition_is_found(mutant: Operator, dtype: str):
    finite = [case for case in cases_for(mutant.name, dtype) if case.regime != "specials"]
    found = [d for case in finite for d in value_disagreements(mutant, case, exact_arithmetic(mutant))]
    assert found


@pytest.mark.parametrize("mutant", forgetful_operators())
def test_a_forgotten_special_value_is_found(mutant: Operator):
    found = [d for case in cases_for(mutant.name, "float32") for d in class_disagreements(mutant, case, "nan")]
    assert found
