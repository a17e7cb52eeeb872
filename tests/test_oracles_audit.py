"""The vectorised arithmetic audited, and every error term of it broken on purpose: the audit must find each."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from audit import AUDITS, broken, cases, finite_rows, misses, operators, primitive

import needs_flint  # noqa: F401
from oracles.arithmetics import vectorised
from oracles.catalogue import OPERATORS
from oracles.classes import ElementClass
from oracles.formats import FORMATS
from oracles.operator import Inputs
from oracles.truth import Draft, compute_truth
from properties.battery import regimes_for
from properties.case import Case
from properties.source import PCG64Source, normals
from test_oracles_inputs import given

# Relative width that is enough for every narrow format (what a plain interval sum needs 4,096 times over).
WIDTH = 2e-15
LARGEST_CONDITION = 1e3


@pytest.mark.parametrize("operation", AUDITS)
def test_what_an_operation_encloses_holds_every_corner_of_its_operands(operation: str):
    assert primitive(broken("vectorised", "CHUNK = 2**16", "CHUNK = 2**10"), operation) == 0


def test_enclosures_hold_what_mpmath_and_flint_find():
    assert operators(vectorised) == {}


DOUBLE_WORD, VECTORISED = "double_word", "vectorised"
BROKEN = {
    "error of a sum": ("sum", DOUBLE_WORD, "    error += t\n    return s, error", "    return s, error"),
    "error of a product": ("product", DOUBLE_WORD, "    error += a0 * b0\n", ""),
    "splitter": ("product", DOUBLE_WORD, "2.0**27 + 1", "2.0**30 + 1"),
    "rounding of errors, inward": ("product", DOUBLE_WORD, "OUTWARD = 1.0 + 2.0**-30", "OUTWARD = 1.0 - 2.0**-30"),
    "what a sum drops": ("sum", DOUBLE_WORD, "_short(np.abs(dropped_1) + np.abs(dropped_2))", "NOTHING"),
    "first of what a sum drops": ("sum", DOUBLE_WORD, "_short(np.abs(dropped_1) + np.abs(dropped_2))", "dropped_2"),
    "relative error in a sum": ("sum", DOUBLE_WORD, "term.relative * np.abs(term.hi) + SMALLEST", "0.0"),
    "absolute error in a sum": ("sum", DOUBLE_WORD, "absolute = a.absolute + b.absolute", "absolute = a.absolute"),
    "rounding of a product": ("product", DOUBLE_WORD, "OPERATION = 16 * U**2", "OPERATION = 0 * U**2"),
    "rounding of a quotient": ("quotient", DOUBLE_WORD, "OPERATION = 16 * U**2", "OPERATION = 0 * U**2"),
    "rounding of a root": ("root", DOUBLE_WORD, "OPERATION = 16 * U**2", "OPERATION = 0 * U**2"),
    "single words": ("product", DOUBLE_WORD, "(a.words + b.words - 1) * U", "0 * U"),
    "low parts left out of single words": ("product", DOUBLE_WORD, "(a.words + b.words - 1) * U", "U"),
    "single words in a quotient": ("quotient", DOUBLE_WORD, "(a.words + b.words - 1) * U", "0 * U"),
    "underflow of a product": ("product", DOUBLE_WORD, "UNDERFLOW * np.asarray(u", "0.0 * np.asarray(u"),
    "low part of a product": ("product", DOUBLE_WORD, "low += a.hi * b.lo + a.lo * b.hi", "low += a.hi * b.lo"),
    "relative error in a product": ("product", DOUBLE_WORD, "a.relative + b.relative + a.", "b.relative + a."),
    "both relative errors": ("product", DOUBLE_WORD, " + a.relative * b.relative\n", "\n"),
    "absolute error in a product": ("product", DOUBLE_WORD, "_times(a.absolute, b.hi) * (1", "NOTHING * (1"),
    "both absolute errors": ("product", DOUBLE_WORD, "        + a.absolute * b.absolute\n", ""),
    "largest of the row": ("product", DOUBLE_WORD, "largest = _largest(v)", "largest = v.min(axis=-1, keepdims=True)"),
    "integers of two words": ("quotient", DOUBLE_WORD, "float(value - int(hi))", "0.0 * float(value - int(hi))"),
    "divisor's error": ("quotient", DOUBLE_WORD, "relative = a.relative + beta", "relative = a.relative"),
    "divisor's error twice over": ("quotient", DOUBLE_WORD, "OUTWARD / (1 - beta)", "OUTWARD + 0 * beta"),
    "divisor that may be 0": ("quotient", DOUBLE_WORD, "np.where(beta < 0.5, ", "np.where(beta < 50.0, "),
    "dividend's error": ("quotient", DOUBLE_WORD, "(a.absolute + tiny) / d", "tiny / d"),
    "underflow of a quotient": ("quotient", DOUBLE_WORD, "tiny + (a.absolute + tiny) / d", "a.absolute / d"),
    "correction of a quotient": ("quotient", DOUBLE_WORD, "4 * U * np.abs(remainder) / denominator", "0.0"),
    "correction of a root": ("root", DOUBLE_WORD, "4 * U * np.abs(correction)", "0.0 * s"),
    "radicand's error": ("root", DOUBLE_WORD, "s * ratio / (2 * (1 - ratio))", "0.0 * s"),
    "radicand's error twice over": ("root", DOUBLE_WORD, "s * ratio / (2 * (1 - ratio))", "s * ratio / 2"),
    "radicand that may be 0": ("root", DOUBLE_WORD, "0.0, np.sqrt(a.hi + radius))", "0.0, 0.0 * s)"),
    "underflow of a root": ("root", DOUBLE_WORD, "np.sqrt(UNDERFLOW), 0.0)", "0.0, 0.0)"),
    "what a long sum drops": ("total", DOUBLE_WORD, "(np.abs(dropped_1) + np.abs(dropped_2)).sum", "(0 * low).sum"),
    "relative error in a long sum": ("total", DOUBLE_WORD, "if a.relative.any():\n        larg", "if 0:\n        larg"),
    "absolute error in a long sum": ("total", DOUBLE_WORD, "np.broadcast_to(a.absolute, hi.shape)", "(0 * hi)"),
    "last of an odd row": ("total", DOUBLE_WORD, "[v, np.zeros((*v.shape[:-1], 1))]", "[v[..., 1:], 0 * v[..., :2]]"),
    "relative error of an enclosure": ("enclosure", DOUBLE_WORD, "(self.relative * OUTWARD)", "(0 * self.relative)"),
    "low part lost in scaling": ("enclosure", DOUBLE_WORD, "radius + lost * 2.0**-999", "radius"),
    "radius lost in scaling": ("enclosure", DOUBLE_WORD, "(self.absolute > 0) * 2.0**-1000", "0.0"),
    "distance to the next float": ("exp", VECTORISED, "np.array(2 * U)", "np.array(U)"),
    "distance to the next float, log": ("log", VECTORISED, "np.array(2 * U)", "np.array(0.0)"),
    "smallest float": ("exp", VECTORISED, "np.inf, SMALLEST) if", "np.inf, 0.0) if"),
    "overflow": ("exp", VECTORISED, "np.where(overflows, np.inf, SMALLEST) if", "np.array(SMALLEST) if"),
    "exponent's low part": ("exp", VECTORISED, "value.hi * v.lo, value.relative", "0 * v.lo, value.relative"),
    "exponent's error": ("exp", VECTORISED, "2 * (v.lo * v.lo + radius)", "2 * v.lo * v.lo"),
    "change of a logarithm": ("log", VECTORISED, "change = v.lo / base", "change = 0 * v.lo / base"),
    "error of a logarithm's argument": ("log", VECTORISED, "radius / base + spread", "spread"),
    "square of that": ("log", VECTORISED, "radius / base + spread * spread + 4 * U * spread", "radius / base"),
    "base of log1p": ("log", VECTORISED, "v, 1 + v.hi)", "v, 2 + v.hi)"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_operation_is_found(what: str):
    operation, file, old, new = BROKEN[what]
    assert primitive(broken(file, old, new), operation) > 0


@pytest.mark.parametrize(
    "what", ["error of a sum", "single words", "distance to the next float", "relative error in a long sum"]
)
def test_a_broken_operation_is_found_in_operators_too(what: str):
    _, file, old, new = BROKEN[what]
    module = broken(file, old, new)
    assert any(misses(module, row) for case in cases() for row in finite_rows(case))


def widths(op: str, inputs: Inputs) -> np.ndarray:
    """Relative widths of the enclosures of values whose condition number is below the largest promised."""
    (truth,) = compute_truth(OPERATORS[op], inputs, escalate=False)
    e = truth.enclosure
    exact = np.abs(e.value())
    (condition,) = OPERATORS[op].condition(inputs, (e.value(),))
    (classes,) = OPERATORS[op].classify(inputs, "zero")
    with np.errstate(divide="ignore", invalid="ignore"):
        promised = (classes == ElementClass.VALUE) & (condition / exact < LARGEST_CONDITION) & (exact > 2.0**-126)
        return (2 * e.radius / np.abs(e.hi))[promised]


@pytest.mark.parametrize("op", ["softmax", "layer_norm"])
@pytest.mark.parametrize("n", [33, 4096, 131072])
def test_enclosures_are_tight_at_every_length(op: str, n: int):
    seen = 0
    for regime in regimes_for(op):
        if regime.fits(n) and regime.name not in ("masks", "specials", "arbitrary_bits"):
            found = widths(op, Case(op, "float32", regime.name, rows=1, n=n, seed=4).inputs)
            seen += len(found)
            assert found.max(initial=0.0) <= WIDTH, regime.name
    assert seen > 5 * n


def test_a_plain_sum_would_not_be_tight(monkeypatch: pytest.MonkeyPatch):
    """Recursive summation, with its own bound: what the trees of error-free transformations are for."""

    def recursive(v: "vectorised.DoubleWords") -> "vectorised.DoubleWords":
        total, n = np.cumsum(v.hi, axis=-1)[:, -1:], v.hi.shape[-1]
        return vectorised.DoubleWords(total, vectorised.NOTHING, v.relative + n * vectorised.U, v.absolute * n, True)

    monkeypatch.setattr(vectorised, "total", recursive)
    inputs = Case("softmax", "float32", "standard_normal", rows=1, n=4096).inputs
    assert widths("softmax", inputs).min() > 100 * WIDTH


def test_a_product_with_zero_is_zero():
    """Or every float64 row with a zero in it would be evaluated again."""
    words = vectorised.DoubleWords.exact
    for zero in (
        words(np.zeros((1, 2))) * words(np.full((1, 2), 3.7)),
        words(np.zeros((1, 2))) / words(np.full((1, 2), 3.7)),
    ):
        assert not zero.hi.any()
        assert not zero.radius.any()


@pytest.mark.parametrize("op", ["rms_norm", "layer_norm"])
@pytest.mark.parametrize("weight", [np.inf, np.nan])
def test_a_weight_that_is_not_finite_leaves_the_others_as_they_are(op: str, weight: float):
    rows = Case(op, "float32", "standard_normal", rows=4, n=40).inputs
    weights = np.ones(40, np.float32)
    weights[3] = weight
    draft = Draft(OPERATORS[op], replace(rows, arrays=rows.arrays | {"weight": weights}))
    draft.enclose_all()
    assert draft.open_rows() == []


@pytest.mark.parametrize("op", ["var", "layer_norm"])
def test_rows_whose_length_cubed_is_no_float(op: str):
    """n^3 of 300,007 has 55 bits. Against the same sums in fractions."""
    n = 300_007
    parameters = {"eps": 0.0} if op == "layer_norm" else {}
    inputs = Inputs(FORMATS["float64"], {"x": np.array(normals(PCG64Source(op), n)).reshape(1, n)}, parameters)
    (truth,) = compute_truth(OPERATORS[op], inputs, escalate=False)
    assert truth.arithmetics == {"double_words"}
    numbers = [Fraction(v) for v in inputs.x[0].tolist()]
    scale = max(v.denominator for v in numbers)
    whole = [int(v * scale) for v in numbers]
    variance = Fraction(n * sum(v * v for v in whole) - sum(whole) ** 2, (n * scale) ** 2)
    where = (0,) if op == "var" else (0, 17)
    middle = truth.enclosure.fraction(where)
    reach = Fraction(float(truth.enclosure.radius[where])) * Fraction(2) ** int(truth.enclosure.exponent[where])
    if op == "var":
        assert abs(middle - variance) <= reach
        assert float(truth.rounded[0]) == float(variance)
    else:
        square = (numbers[17] - Fraction(sum(whole), n * scale)) ** 2 / variance
        assert (abs(middle) - reach) ** 2 <= square <= (abs(middle) + reach) ** 2


@pytest.mark.parametrize("dtype", FORMATS)
def test_rows_of_large_mean_and_small_variance_are_decided_without_a_second_look(dtype: str):
    x = 1000 + np.arange(64, dtype=np.float64)[None, :] / (1 if dtype == "bfloat16" else 8)
    inputs = given(FORMATS[dtype], x.astype(FORMATS[dtype].dtype).astype(np.float64).tolist(), eps=1e-5)
    (truth,) = compute_truth(OPERATORS["layer_norm"], inputs)
    assert truth.arithmetics == {"double_words"}
