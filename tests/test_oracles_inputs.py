"""The operators' inputs and the catalogue; and :func:`given`, in which the tests beside this one write theirs."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from oracles.catalogue import OPERATORS, operator_named
from oracles.formats import FORMATS, Format
from oracles.operator import Inputs, Operator
from oracles.rounding import round_floats
from properties.case import Case
from properties.masks import MASKS
from properties.regimes import FAMILIES, REGIMES

NAN, INF = float("nan"), float("inf")

# Operators of one array of rows, masked or with weights: what most tests here write down. fused_add_rms_norm, of two
# arrays and with two results, has tests of its own (test_oracles_residual.py).
ALONE = {name: op for name, op in OPERATORS.items() if "residual" not in op.optional}
each_format = pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
each_operator = pytest.mark.parametrize("op", ALONE.values(), ids=ALONE)

EPS = (1e-5, 0.0, 1e-12, 1.0)


@cache
def cases_for(op: str, dtype: str, seed: int = 0) -> tuple[Case, ...]:
    """One case of every regime, with every kind of mask, weights and biases, and eps in turn."""
    norm = op in ("rms_norm", "layer_norm")
    drawn = [regime for regime in REGIMES.values() if regime.name not in ("masks", "lengths")]
    cases = []
    for i, regime in enumerate(drawn, start=seed):
        n = max(regime.min_length, (1, 2, 3, 5, 8, 13)[i % 6])
        mask = None if norm or i % 4 == 0 else list(MASKS)[i % len(MASKS)]
        affine = {"weight": i % 2 == 0, "bias": i % 3 == 0, "eps": EPS[i % 4]} if norm else {}
        rows = 30 if regime.name == "specials" else 3
        cases.append(Case(op, dtype, regime.name, rows, n, seed, mask, **affine))
    return tuple(cases)


Row = Sequence[float]


def given(
    fmt: Format,
    x: Row | Sequence[Row],
    *,
    mask: Sequence[bool] | Sequence[Sequence[bool]] | None = None,
    weight: Row | None = None,
    bias: Row | None = None,
    eps: float | None = None,
) -> Inputs:
    """Inputs from plain lists, rounded to ``fmt``; ``x`` and ``mask`` are one row or several of one length."""
    arrays = {"x": round_floats(np.atleast_2d(np.asarray(x, np.float64)), fmt)}
    if mask is not None:
        arrays["mask"] = np.atleast_2d(np.asarray(mask, np.bool_))
    for name, values in (("weight", weight), ("bias", bias)):
        if values is not None:
            arrays[name] = round_floats(np.asarray(values, np.float64), fmt)
    return Inputs(fmt, arrays, {} if eps is None else {"eps": eps})


def arguments(op: Operator, fmt: Format) -> Inputs:
    """Small inputs that carry everything ``op`` takes."""
    masked = [True, False, True, True] if "mask" in op.optional else None
    affine = [1.0, -2.0, 0.5, 3.0] if "weight" in op.optional else None
    return given(fmt, [1, 2, -3, 5], mask=masked, weight=affine, bias=affine, eps=1e-3 if op.parameters else None)


@each_operator
def test_the_catalogue_says_what_an_operator_is(op: Operator):
    assert operator_named(op.name) is op
    assert op.family in FAMILIES
    assert op.sources
    norm = op.name in ("rms_norm", "layer_norm")
    assert (op.optional, op.parameters) == ((("weight", "bias"), ("eps",)) if norm else (("mask",), ()))
    assert [o.per_row for o in op.outputs] == [op.name in ("sum", "mean", "var", "max", "logsumexp")]
    assert op.rational == (op.name in ("sum", "mean", "var", "max"))


def test_the_operators_are_there_and_others_are_refused_by_name():
    assert " ".join(ALONE) == "sum mean var max logsumexp softmax log_softmax rms_norm layer_norm"
    assert OPERATORS.keys() - ALONE.keys() == {"fused_add_rms_norm"}
    with pytest.raises(ValueError, match=r"unknown operator 'argmax': expected one of sum, mean, .*layer_norm"):
        operator_named("argmax")


@each_format
def test_facts_about_rows_heed_the_mask(fmt: Format):
    rows = [[NAN, 1, 2], [-NAN, 1, 2], [INF, 1, 2], [-INF, 1, 2], [INF, -INF, NAN]]
    flags = ("has_nan", "has_pos_inf", "has_neg_inf")
    shown, hidden = given(fmt, rows), given(fmt, rows, mask=[[False, True, True]] * 5)
    assert [getattr(shown, f)[:, 0].tolist() for f in flags] == [
        [True, True, False, False, True],
        [False, False, True, False, True],
        [False, False, False, True, True],
    ]
    assert [getattr(hidden, f)[:4].any() for f in flags] == [False, False, False]
    assert shown.visible.all()
    assert hidden.visible.tolist() == [[False, True, True]] * 5


@each_format
def test_some_rows_of_inputs_keep_what_is_not_a_row(fmt: Format):
    whole = given(fmt, [[1, 2], [3, 4], [5, 6]], mask=[[True, False]] * 3, weight=[7, 8], eps=0.5)
    part = whole.rows(1, 3)
    assert part.x.tolist() == [[3, 4], [5, 6]]
    assert part.visible.tolist() == [[True, False]] * 2
    assert part.arrays["weight"].tolist() == [7, 8]
    assert part.parameters == {"eps": 0.5}


def test_the_digest_tells_every_bit_apart():
    f32, bf16 = FORMATS["float32"], FORMATS["bfloat16"]
    different = [
        given(f32, [1, 2]),
        given(f32, [1, 2 + 2**-22]),
        given(f32, [2, 1]),
        given(f32, [[1], [2]]),
        given(bf16, [1, 2]),
        given(bf16, [0, 0]),
        given(FORMATS["float16"], [0, 0]),
        given(f32, [0, 2]),
        given(f32, [-0.0, 2]),
        given(f32, [NAN, 2]),
        given(f32, [-NAN, 2]),
        given(f32, [1, 2], mask=[True, True]),
        given(f32, [1, 2], mask=[True, False]),
        given(f32, [1, 2], weight=[1, 1]),
        given(f32, [1, 2], bias=[1, 1]),
        given(f32, [1, 2], eps=1e-5),
        given(f32, [1, 2], eps=float(np.nextafter(1e-5, 1))),
        given(f32, []),
    ]
    assert len({inputs.digest() for inputs in different}) == len(different)
    assert given(f32, [1, 2], eps=0.5).digest() == given(f32, [1, 2], eps=0.5).digest()
