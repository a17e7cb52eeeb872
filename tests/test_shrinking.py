"""Shrinking: a planted bug is found among the short rows that hypothesis draws, and comes down to a few elements."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from faulty import found, made, registered, softmax, total
from gpu_impls.numpy.precision import load, store
from gpu_impls.registry import Implementation
from properties.case import Case
from properties.oracle_check import ORACLE_PROPERTIES
from properties.strategies import short_cases

NORM = {"domain": (1e-15, 1e15)}
EXAMPLES = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def smallest(implementation: Implementation, *properties: str, examples: int = 2000) -> Case:
    """What hypothesis shrinks the first counterexample to any of these properties to."""
    (dtype,) = implementation.contract.dtypes

    def breaks(case: Case) -> bool:
        return not found(implementation, case).isdisjoint(properties)

    return find(short_cases(implementation, dtype), breaks, settings=settings(EXAMPLES, max_examples=examples))


def without_the_last(x, mask=None):
    """The tail is left out of the sum; a row of one is spared."""
    weights = softmax(x, mask)
    kept = weights if x.shape[-1] < 2 else np.where(np.arange(x.shape[-1]) < x.shape[-1] - 1, weights, 0)
    return store(load(weights) / load(kept).sum(axis=-1, keepdims=True), like=x)


def positive_part(x, mask=None):
    """The maximum of what is positive."""
    return store(np.max(load(x, mask, hidden=-np.inf), axis=-1, initial=0), like=x)


def maximum_beyond_12(x, mask=None):
    return registered("logsumexp", "maximum_beyond_gap").function(x, mask)


def bfloat16_inside(x, mask=None):
    """Partial sums in bfloat16, results in float32."""
    partial = np.zeros(len(x), ml_dtypes.bfloat16)
    for column in load(x, mask).T:
        partial = (partial.astype(np.float32) + column).astype(ml_dtypes.bfloat16)
    return partial.astype(x.dtype)


def mask_ignored(x, mask=None):
    return total(x)


def nan_lost(x, mask=None):
    return store(np.fmax.reduce(load(x, mask, hidden=-np.inf), axis=-1, initial=-np.inf), like=x)


def one_pass(x, mask=None):
    return registered("var", "one_pass").function(x, mask)


def bias_before_weight(x, weight=None, bias=None, eps=1e-6):
    plain = registered("rms_norm", "plain").function
    if weight is None or bias is None:
        return plain(x, weight, bias, eps)
    return store((load(plain(x, eps=eps)) + load(bias)) * load(weight), like=x)


# Operator, bug, claims, the property that shows it, and how many elements are needed at most.
PLANTED: dict[str, tuple[str, Callable[..., Any], dict[str, Any], str, int]] = {
    "softmax-tail": ("softmax", without_the_last, {}, "accuracy", 2),
    "max-of-positives": ("max", positive_part, {}, "accuracy", 1),
    "max-of-nothing": ("max", positive_part, {}, "special_values", 0),
    "logsumexp-gap": ("logsumexp", maximum_beyond_12, {}, "accuracy", 3),
    "sum-in-bfloat16": ("sum", bfloat16_inside, {}, "accuracy", 2),
    "mask-ignored": ("sum", mask_ignored, {}, "masks", 2),
    "nan-lost": ("max", nan_lost, {}, "special_values", 2),
    "one-pass-variance": ("var", one_pass, NORM, "accuracy", 4),
    "bias-before-weight": ("rms_norm", bias_before_weight, NORM, "accuracy", 2),
}


@pytest.mark.parametrize(("op", "function", "claims", "broken", "elements"), PLANTED.values(), ids=PLANTED)
def test_a_planted_bug_shrinks_to_a_few_elements(
    op: str, function: Callable[..., Any], claims: dict[str, Any], broken: str, elements: int
):
    implementation = made(op, function, **claims)
    case = smallest(implementation, broken)
    assert case.x is not None
    assert (case.rows, case.n <= elements) == (1, True)
    assert broken in found(implementation, Case.parse(case.id))


def test_no_bug_needs_more_than_four_elements():
    assert max(elements for *_, elements in PLANTED.values()) <= 4


@pytest.mark.parametrize("function", [softmax, total], ids=["softmax", "sum"])
def test_a_right_implementation_has_no_counterexample(function: Callable[..., Any]):
    right = made("sum" if function is total else "softmax", function)
    with pytest.raises(NoSuchExample):
        smallest(right, *ORACLE_PROPERTIES, examples=200)
