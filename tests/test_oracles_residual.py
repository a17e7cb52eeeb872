"""fused_add_rms_norm: two arrays of rows in, two results out, against rms_norm, mpmath and IEEE addition."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from faulty import found, made, registered
from gpu_impls.numpy.precision import load, store
from oracles.arithmetics import ARITHMETICS
from oracles.catalogue import OPERATORS
from oracles.classes import ElementClass
from oracles.formats import FORMATS, Format
from oracles.operator import Inputs, Operator
from oracles.rounding import round_floats, round_fraction
from oracles.truth import compute_truth
from properties.battery import regime_cases
from properties.case import Case, explicit_case
from test_oracles_inputs import INF, NAN, each_format, given

OP, NORM = OPERATORS["fused_add_rms_norm"], OPERATORS["rms_norm"]
N = ElementClass


def with_residual(inputs: Inputs, residual: list[list[float]] | np.ndarray) -> Inputs:
    rows = round_floats(np.atleast_2d(np.asarray(residual, np.float64)), inputs.fmt)
    return replace(inputs, arrays=inputs.arrays | {"residual": rows})


@each_format
def test_of_exact_sums_it_is_rms_norm_and_the_sums(fmt: Format):
    sums, residual = np.array([[1, 2, 3.5], [-4, 0, 8]]), np.array([[0.5, -1, 2], [1, 1, -8]])
    s, x = (given(fmt, rows.tolist(), weight=[1, 0.5, -2], eps=1e-3) for rows in (sums, sums - residual))
    inputs = with_residual(x, residual)
    (y, updated), (norm,) = compute_truth(OP, inputs), compute_truth(NORM, s)
    assert fmt.hex(y.rounded) == fmt.hex(norm.rounded)
    assert updated.rounded.tolist() == s.x.tolist()
    assert (updated.enclosure.radius == 0).all()


Exact = list[tuple[mpmath.mpf, Fraction]]


def exact(row: np.ndarray, residual: np.ndarray, eps: float, weight: np.ndarray | None) -> Exact:
    """The formula again, with 300 bits."""
    sums = [Fraction(a) + Fraction(b) for a, b in zip(row.tolist(), residual.tolist(), strict=True)]
    with mpmath.workprec(300):
        numbers = [mpmath.mpf(s.numerator) / s.denominator for s in sums]
        root = mpmath.sqrt(mpmath.fsum(v * v for v in numbers) / len(numbers) + mpmath.mpf(eps))
        weights = [1.0] * len(sums) if weight is None else weight.tolist()
        return [(v / root * w, s) for v, w, s in zip(numbers, weights, sums, strict=True)]


def fraction(value: mpmath.mpf) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return (-1) ** sign * int(mantissa) * Fraction(2) ** int(exponent)


def compared(op: Operator, case: Case) -> list[bool]:
    """Whether each value is within its enclosure and correctly rounded, both results of finite rows."""
    fmt, (y, updated) = case.fmt, compute_truth(op, case.inputs, None if op is OP else ARITHMETICS["mpmath"])
    wide = {name: array.astype(np.float64) for name, array in case.inputs.arrays.items()}
    right = []
    for r in range(case.rows):
        x, residual = wide["x"][r], wide["residual"][r]
        if np.isfinite([x, residual]).all():
            for i, (value, s) in enumerate(exact(x, residual, case.inputs.parameters["eps"], wide.get("weight"))):
                reach = Fraction(float(y.enclosure.radius[r, i])) * Fraction(2) ** int(y.enclosure.exponent[r, i])
                norm = fraction(value)
                held = abs(y.enclosure.fraction((r, i)) - norm) <= reach + abs(norm) / 2**290
                rounded = (float(y.rounded[r, i]), float(updated.rounded[r, i]))
                right.append(held and rounded == (round_fraction(norm, fmt), round_fraction(s, fmt)))
    return right


def cases(dtype: str, lengths: tuple[int, ...]) -> list[Case]:
    drawn = regime_cases("fused_add_rms_norm", dtype, lengths)
    return [replace(case, rows=2, weight=case.n == 33) for case in drawn]


@each_format
def test_values_are_those_of_the_formula(fmt: Format):
    """On every regime."""
    right = [one for case in cases(fmt.name, (7, 33)) for one in compared(OP, case)]
    assert all(right)
    assert len(right) > 800


MUTANTS = {
    "residual forgotten": lambda a, x, residual, eps, weight=None: (*NORM.define(a, x, eps, weight), x + residual),
    "old residual": lambda a, x, residual, eps, weight=None: (*NORM.define(a, x + residual, eps, weight), residual),
    "weight forgotten": lambda a, x, residual, eps, weight=None: (*NORM.define(a, x + residual, eps), x + residual),
    "difference": lambda a, x, residual, eps, weight=None: (*NORM.define(a, x - residual, eps, weight), x + residual),
}


@pytest.mark.parametrize("define", MUTANTS.values(), ids=MUTANTS)
def test_a_broken_definition_is_found(define: Callable[..., Any]):
    assert not all(one for case in cases("float32", (33,)) for one in compared(replace(OP, define=define), case))


@pytest.mark.parametrize(
    ("x", "residual", "y", "updated"),
    [
        ([1, NAN], [1, 1], [N.NAN, N.NAN], [N.VALUE, N.NAN]),
        ([1, 1], [NAN, 1], [N.NAN, N.NAN], [N.NAN, N.VALUE]),
        ([INF, 1], [1, 1], [N.NAN, N.VALUE], [N.POS_INF, N.VALUE]),
        ([1, 1], [1, -INF], [N.VALUE, N.NAN], [N.VALUE, N.NEG_INF]),
        ([INF, 1], [-INF, 1], [N.NAN, N.NAN], [N.NAN, N.VALUE]),
        ([INF, 1], [INF, 1], [N.NAN, N.VALUE], [N.POS_INF, N.VALUE]),
        ([1, -2], [-1, 2], [N.VALUE, N.VALUE], [N.VALUE, N.VALUE]),
    ],
)
@each_format
def test_special_rows(fmt: Format, x: list[float], residual: list[float], y: list[N], updated: list[N]):
    inputs = with_residual(given(fmt, x, eps=1e-6), residual)
    assert [c[0].tolist() for c in OP.classify(inputs, "zero")] == [y, updated]


def test_a_row_that_cancels_is_a_zero_row():
    cancelled = with_residual(given(FORMATS["float32"], [1, -2], eps=0.0), [-1, 2])
    assert OP.classify(cancelled, "zero")[0].tolist() == [[N.NAN, N.NAN]]
    (y, updated) = compute_truth(OP, replace(cancelled, parameters={"eps": 1e-6}))
    assert y.rounded.tolist() == updated.rounded.tolist() == [[0, 0]]


def test_rows_do_not_depend_on_their_batch():
    case = Case("fused_add_rms_norm", "float32", "heavy_tail", rows=5, n=17)
    whole = compute_truth(OP, case.inputs)
    for r in range(5):
        for one, all_ in zip(compute_truth(OP, case.inputs.rows(r, r + 1)), whole, strict=True):
            assert one.enclosure[0].value().tolist() == all_.enclosure[r].value().tolist()
    slow = compute_truth(OP, case.inputs, ARITHMETICS["mpmath"])
    assert [t.rounded.tolist() for t in slow] == [t.rounded.tolist() for t in whole]


def test_the_condition_is_that_of_its_derivatives():
    """By differences of the formula, relative in x and in the residual."""
    case = Case("fused_add_rms_norm", "float64", "standard_normal", rows=1, n=6, weight=True)
    x, residual, weight = (case.inputs.arrays[name].ravel() for name in ("x", "residual", "weight"))
    claimed = OP.condition(case.inputs, tuple(t.enclosure.value() for t in case.truths))
    step = 2.0**-20
    total = np.zeros((2, 6))
    for which in (0, 1):
        for j in range(6):
            changed = [[x.copy(), residual.copy()] for _ in range(2)]
            for sign, pair in zip((1, -1), changed, strict=True):
                pair[which][j] *= 1 + sign * step
            up, down = (exact(*pair, case.inputs.parameters["eps"], weight) for pair in changed)
            total += [[abs(float(u[k] - d[k])) / (2 * step) for u, d in zip(up, down, strict=True)] for k in (0, 1)]
    assert (claimed[0][0] >= total[0] * (1 - 1e-6)).all()
    assert (claimed[0][0] <= 2 * total[0]).all()
    assert np.allclose(claimed[1][0], total[1], rtol=1e-6)


def off(factor: float, which: int):
    """The right kernel with one of its results off by a factor."""
    right = registered("fused_add_rms_norm", "unrounded").function

    def kernel(x, residual, weight=None, eps=1e-6):
        results = list(right(x, residual, weight, eps))
        results[which] = store(load(results[which]) * results[which].dtype.type(factor), like=x)
        return tuple(results)

    return kernel


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("factor", [1 + 2.0**-12, 1 - 2.0**-12])
def test_results_off_by_a_little_are_found(factor: float, which: int):
    case = Case("fused_add_rms_norm", "float32", "standard_normal", rows=4, n=33)
    kernel = made("fused_add_rms_norm", off(factor, which), domain=(1e-15, 1e15), summation="tree")
    assert found(kernel, case) == {"accuracy"}


def test_a_sum_that_overflows_storage_excuses_a_norm_that_reads_it_there():
    x = np.array([[60000.0, 1.0, 2.0]], np.float16)
    case = explicit_case("fused_add_rms_norm", "float16", "absorbed", {"x": x, "residual": x})
    assert found(registered("fused_add_rms_norm", "rounded"), case) == set()
    undeclared = replace(registered("fused_add_rms_norm", "rounded_undeclared"), name="x")
    assert found(undeclared, case) == {"accuracy"}


def test_cases_carry_their_residual():
    case = Case("fused_add_rms_norm", "bfloat16", "near_ties", rows=2, n=5, weight=True)
    assert case.inputs.arrays["residual"].shape == (2, 5)
    assert case.inputs.arrays["residual"].tobytes() != case.inputs.x.tobytes()
    written = explicit_case(case.op, case.dtype, case.regime, dict(case.inputs.arrays), case.eps)
    again = Case.parse(written.id)
    assert again == written
    assert again.inputs.digest() == case.inputs.digest()
    assert case.inputs.rows(1, 2).arrays["residual"].tolist() == case.inputs.arrays["residual"][1:].tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fused_add_rms_norm:float32:absorbed:1x1:x=3f800000", "has an x and no residual: expected residual_bits=BITS"),
        ("fused_add_rms_norm:float32:absorbed:1x1:s0:residual_bits=3f800000", "without x: expected x=BITS too"),
        ("rms_norm:float32:absorbed:1x1:x=3f800000:residual_bits=3f800000", "rms_norm takes no residual"),
        (
            "fused_add_rms_norm:float32:absorbed:1x2:x=0.0:residual_bits=0",
            "residual_bits holds 1 elements: expected",
        ),
    ],
)
def test_a_residual_too_few_or_too_many(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        _ = Case.parse(text).inputs
