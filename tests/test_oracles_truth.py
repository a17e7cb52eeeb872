"""The truth where a first look does not decide it: ties, values beside ties, cancellation, exact zeros, overflow."""

import numpy as np
import pytest

import needs_flint  # noqa: F401
import oracles.truth
from oracles.arithmetics import ARITHMETICS
from oracles.formats import FORMATS, Format
from oracles.operator import Inputs, Operator
from oracles.rounding import round_enclosure
from oracles.truth import FIRST_PRECISION, SHARP, RowTruths, Truth, compute_truth
from oracles.ulp import ulp_exponents
from properties.masks import hostile_values
from test_oracles_inputs import ALONE as OPERATORS
from test_oracles_inputs import INF, NAN, arguments, each_format, each_operator, given

each_ball_arithmetic = pytest.mark.parametrize("arithmetic", ["flint", "mpmath"])

# Rows of a norm with eps = 0 that come out exact though mean and root are not dyadic: a ball always straddles.
THREE = [1.0] + [0.0] * 8  # rms_norm: root 1/3, so 3, 0, ...
TWO = [1.0, 0.0, 0.0, 0.0, 0.0]  # layer_norm: mean 1/5, deviation 2/5, so 2, -1/2, ...


def truth(op: str, inputs: Inputs, arithmetic: str | None = None) -> Truth:
    (only,) = compute_truth(OPERATORS[op], inputs, ARITHMETICS[arithmetic] if arithmetic else None)
    return only


def decided_at_once(op: str, inputs: Inputs, arithmetic: str) -> list[bool]:
    """Whether the first precision settles each element of a row without masks."""
    others = {k: v.astype(np.float64) for k, v in inputs.arrays.items() if k != "x"}
    row = {"x": inputs.x[0].astype(np.float64), **others, **inputs.parameters}
    (result,) = ARITHMETICS[arithmetic].evaluate(OPERATORS[op].define, row, FIRST_PRECISION)
    return round_enclosure(result.enclosure(), inputs.fmt)[1].tolist()


def affine(fmt: Format, op: str, weight: float, bias: float) -> Inputs:
    """The row whose first output is 3 (rms_norm) or 2 (layer_norm) times ``weight``, plus ``bias``."""
    row = THREE if op == "rms_norm" else TWO
    return given(fmt, row, weight=[weight] * len(row), bias=[bias] * len(row), eps=0.0)


@each_ball_arithmetic
@each_format
@pytest.mark.parametrize(("op", "y"), [("rms_norm", 3), ("layer_norm", 2)])
def test_ties_through_weight_and_bias_go_to_even(op: str, y: int, fmt: Format, arithmetic: str):
    step = 4 * fmt.unit_roundoff  # of a format's numbers from 2 to 4
    for steps, right in ((0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0) if y == 3 else (3.5, 4)):
        for sign in (1, -1):
            inputs = affine(fmt, op, sign, sign * steps * step)
            assert not decided_at_once(op, inputs, arithmetic)[0]
            assert float(truth(op, inputs, arithmetic).rounded[0, 0]) == sign * (y + right * step)


@each_ball_arithmetic
@each_format
def test_ties_among_subnormals_go_to_even(fmt: Format, arithmetic: str):
    """Halves of the smallest subnormal: the other elements of the row are -1/2."""
    least = fmt.smallest_subnormal
    for weight, right in ((1, 0), (3, 2), (5, 2), (7, 4)):
        inputs = affine(fmt, "layer_norm", -weight * least, 0.0)
        assert truth("layer_norm", inputs, arithmetic).rounded[0].tolist() == [-2 * weight * least] + 4 * [
            right * least
        ]


@each_ball_arithmetic
@each_format
def test_the_tie_at_the_overflow_threshold_is_infinite(fmt: Format, arithmetic: str):
    half_step = 2.0 ** (fmt.emax - fmt.precision)
    for sign in (1, -1):
        inputs = affine(fmt, "layer_norm", sign * fmt.largest / 2, sign * half_step)
        assert float(truth("layer_norm", inputs, arithmetic).rounded[0, 0]) == sign * INF
        inputs = affine(fmt, "layer_norm", sign * fmt.largest / 2, sign * half_step / 2)
        assert float(truth("layer_norm", inputs, arithmetic).rounded[0, 0]) == sign * fmt.largest


@each_ball_arithmetic
@each_format
@pytest.mark.parametrize("weight", [1.0, 2.0**9, 2.0**-9, -3.0], ids=str)
def test_what_cancels_to_nothing_is_zero(fmt: Format, weight: float, arithmetic: str):
    for op, y in (("rms_norm", 3), ("layer_norm", 2)):
        result = truth(op, affine(fmt, op, weight, -y * weight), arithmetic)
        assert float(result.rounded[0, 0]) == 0
        ball = result.enclosure[0, 0]
        assert abs(float(ball.hi)) <= float(ball.radius)


def test_huge_terms_that_cancel_raise_no_warning():
    result = truth("layer_norm", affine(FORMATS["float64"], "layer_norm", 1e300, -2e300))
    assert float(result.rounded[0, 0]) == 0


NEAR_TIES = [([1.0, -256.0], -258.0), ([2.0, -800.0], -804.0), ([-254.0, 3.0], -258.0)]


@each_ball_arithmetic
@pytest.mark.parametrize(("row", "right"), NEAR_TIES, ids=["gap-257", "gap-802", "swapped"])
def test_values_that_an_exponential_keeps_from_a_tie(row: list[float], right: float, arithmetic: str):
    """log_softmax is -gap - exp(-gap): just beyond a midpoint of bfloat16, which would go to the even neighbour."""
    inputs = given(FORMATS["bfloat16"], row)
    lower = int(np.argmin(row))
    assert not decided_at_once("log_softmax", inputs, arithmetic)[lower]
    assert float(truth("log_softmax", inputs, arithmetic).rounded[0, lower]) == right


def test_without_more_precision_they_would_be_wrong(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(oracles.truth, "LAST_PRECISION", 512)
    wrong = [truth("log_softmax", given(FORMATS["bfloat16"], row)).rounded[0].min() for row, _ in NEAR_TIES]
    assert [float(w) for w in wrong] == [-258, -800, -258]  # 512 bits are enough for gaps of 257, not of 802


@each_ball_arithmetic
def test_long_gaps_keep_the_digits_of_the_small_output(arithmetic: str):
    near, far = (truth("log_softmax", given(FORMATS["float64"], [0.0, gap]), arithmetic) for gap in (-200.0, -800.0))
    assert near.rounded[0, 0] == -1.3838965267367376e-87
    assert near.rounded[0, 1] == -200
    assert far.rounded[0].tolist() == [0, -800]
    exact = truth("logsumexp", given(FORMATS["float64"], [0.0, -700.0]), arithmetic)
    assert exact.rounded[0] == 9.85967654375977e-305


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_that_no_pair_of_floats_holds(sign: int):
    """A midpoint of float64 and one smallest subnormal: 2100 binades below, it decides."""
    fmt = FORMATS["float64"]
    for tiny, right in ((2.0**-1074, 2.0**1000 + 2.0**948), (-(2.0**-1074), 2.0**1000), (0.0, 2.0**1000)):
        row = [sign * v for v in (2.0**1000, 2.0**947, tiny)]
        assert float(truth("sum", given(fmt, row)).rounded[0]) == sign * right


@each_format
def test_ties_of_means_go_to_even(fmt: Format):
    step = 2 * fmt.unit_roundoff
    rows = [[1 + k * step, 1 + (k + 1) * step] for k in range(6)]
    assert truth("mean", given(fmt, rows)).rounded.tolist() == [1 + step * right for right in (0, 2, 2, 4, 4, 6)]


@each_operator
@each_format
def test_enclosures_are_far_sharper_than_an_ulp(fmt: Format, op: Operator):
    """Also where an output nearly cancels: digits of errors are printed from them."""
    cancelling = given(fmt, [1, 2, 4], weight=[1, 1, 1], bias=[1.3365, -1.3363, 0.26726], eps=0.0)
    inputs = cancelling if op.family == "norm" and op.parameters else arguments(op, fmt)
    e = truth(op.name, inputs).enclosure
    with np.errstate(under="ignore"):
        assert (np.ldexp(e.radius, (e.exponent - ulp_exponents(e, fmt)).astype(np.int32)) <= SHARP).all()


@each_operator
@each_format
def test_rows_do_not_depend_on_their_batch(fmt: Format, op: Operator):
    """Specials among them; hidden elements and elements without a value hold an exact 0."""
    rows = [[1, 2, 3], [INF, 1, 0], [NAN, -1, 4], [-INF, 5, 5], [0, 0, 0], [-INF] * 3, [1, 1, 2]]
    masks = [[True, True, False], [True] * 3, [False, True, True], [True] * 3, [False] * 3, [True] * 3, [True] * 3]
    inputs = given(fmt, rows, mask=masks if "mask" in op.optional else None, eps=0.5 if op.parameters else None)
    whole = truth(op.name, inputs)
    for r in range(len(rows)):
        alone = truth(op.name, inputs.rows(r, r + 1))
        assert fmt.hex(whole.rounded[r : r + 1]) == fmt.hex(alone.rounded)
        assert whole.enclosure[r].value().tolist() == alone.enclosure[0].value().tolist()
    if not op.outputs[0].per_row and "mask" in op.optional:
        hidden = ~op.visible(inputs)
        assert (whole.enclosure[hidden].value() == 0).all()
        assert (whole.enclosure[hidden].radius == 0).all()


@pytest.mark.parametrize("name", [name for name, op in OPERATORS.items() if "mask" in op.optional])
@each_format
def test_what_a_mask_hides_changes_no_bit(fmt: Format, name: str):
    row, mask = np.array([3.0, 0, -1, 0, 2.5, 0.5]), np.array([True, False, True, False, True, True])
    reference = truth(name, given(fmt, row[mask])).rounded
    for hidden in hostile_values(row.astype(fmt.dtype), mask, fmt).astype(np.float64).tolist():
        contents = np.where(mask, row, hidden)
        rounded = truth(name, given(fmt, contents, mask=mask)).rounded
        shown = rounded if OPERATORS[name].outputs[0].per_row else rounded[:, mask]
        assert fmt.hex(shown) == fmt.hex(reference)


def test_the_tie_rule_is_the_only_guess():
    """What 4096 bits do not tell from a midpoint counts as one: here exp(-4112) = 2**-5932 would break the tie."""
    assert float(truth("log_softmax", given(FORMATS["bfloat16"], [16.0, -4096.0])).rounded[0, 1]) == -4096


ROWS = Inputs(FORMATS["float32"], {"x": np.random.default_rng(0).normal(size=(9, 17)).astype(np.float32)})


def by_row(rows: list[int], truths: tuple[Truth, ...]) -> None:
    """What was asked for is what the whole has there."""
    for found, whole in zip(truths, compute_truth(OPERATORS["softmax"], ROWS), strict=True):
        assert np.array_equal(found.rounded, whole.rounded[rows])
        assert np.array_equal(found.enclosure.hi, whole.enclosure.hi[rows])
        assert np.array_equal(found.decided, whole.decided[rows])


def test_rows_are_evaluated_once_however_often_they_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    evaluated = []

    def counting(op: Operator, inputs: Inputs, **how: bool) -> tuple[Truth, ...]:
        evaluated.extend(inputs.x[:, 0].tolist())
        return compute_truth(op, inputs, **how)

    monkeypatch.setattr(oracles.truth, "compute_truth", counting)
    truths = RowTruths(OPERATORS["softmax"], ROWS, whole=lambda: pytest.fail("nobody asked for all"))
    for rows in ([4], [7, 1], [1, 4, 7], [8, 4, 0, 1], [3, 3]):
        by_row(rows, truths.of(rows))
    assert sorted(evaluated) == sorted(ROWS.x[[0, 1, 3, 4, 7, 8], 0].tolist())


def test_rows_of_what_is_known_as_a_whole_are_not_evaluated(monkeypatch: pytest.MonkeyPatch):
    whole = compute_truth(OPERATORS["softmax"], ROWS)
    truths = RowTruths(OPERATORS["softmax"], ROWS, whole=lambda: whole)
    assert truths.all() is whole
    monkeypatch.setattr(oracles.truth, "compute_truth", lambda *_, **__: pytest.fail("evaluated again"))
    by_row([5, 2], truths.of([5, 2]))
