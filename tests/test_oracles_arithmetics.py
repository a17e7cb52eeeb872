"""The arithmetics against each other: two roads to one value must meet, and a wrong one must be seen to miss.

Every operator's definition is evaluated in each arithmetic on drawn rows; the intervals of each pair must overlap and
the pairs of floats must hold their intervals.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from needs_flint import flint
from oracles.arithmetics import ARITHMETICS, BEST, RATIONAL, Arithmetic
from oracles.arithmetics.flint import Balls, Flint
from oracles.arithmetics.protocol import Vector, objects
from oracles.enclosure import Enclosure, Ground
from oracles.formats import FORMATS, Format
from oracles.operator import Operator
from oracles.truth import compute_truth, exact_arithmetic
from properties.regimes import REGIMES
from properties.source import PCG64Source
from test_oracles_inputs import ALONE as OPERATORS
from test_oracles_inputs import NAN, arguments, each_format, each_operator

Row = Mapping[str, Any]
PRECISION = 128
DUST = Fraction(1, 2**1100)

each_arithmetic = pytest.mark.parametrize("arithmetic", ARITHMETICS.values(), ids=ARITHMETICS)
each_ball_arithmetic = pytest.mark.parametrize("name", ["flint", "mpmath"])


def drawn_rows(op: Operator) -> list[Row]:
    """One finite row of every regime that ``op`` has, in formats in turn, with weights and biases."""
    rows: list[Row] = []
    finite = [r for r in REGIMES.values() if op.family in r.families and r.name not in ("specials", "arbitrary_bits")]
    for i, regime in enumerate(finite):
        fmt = list(FORMATS.values())[i % len(FORMATS)]
        n = max(regime.min_length, 7 + i)
        row: dict[str, Any] = {"x": regime.row(PCG64Source(op.name, i), n, fmt).astype(np.float64)}
        for k, name in enumerate(n for n in op.optional if n != "mask"):
            row[name] = PCG64Source(name, i).integers(-9, 9, n) / 4.0 if (i + k) % 3 else None
        rows.append(row | ({"eps": float(np.float32(1e-5))} if op.parameters else {}))
    return rows


def misses(op: Operator, one: Arithmetic, other: Arithmetic) -> int:
    """How many elements' intervals do not overlap."""
    return sum(len(apart(*(a.evaluate(op.define, row, PRECISION)[0] for a in (one, other)))) for row in drawn_rows(op))


def apart(one: Any, other: Any) -> list[int]:
    return [i for i in range(len(one.enclosure().hi)) if not _overlap(one.interval(i), other.interval(i))]


def _overlap(one: tuple[Fraction, Fraction], other: tuple[Fraction, Fraction]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def interval_of(enclosure: Enclosure, i: int) -> tuple[Fraction, Fraction]:
    reach = Fraction(float(enclosure.radius[i])) * Fraction(2) ** int(enclosure.exponent[i])
    return enclosure.fraction((i,)) - reach, enclosure.fraction((i,)) + reach


def pairs_of(op: Operator) -> list[tuple[str, str]]:
    return [("flint", "mpmath")] + ([("rational", "flint"), ("rational", "mpmath")] if op.rational else [])


@pytest.mark.parametrize(
    ("op", "one", "other"),
    [pytest.param(op, *p, id=f"{op.name}-{'-'.join(p)}") for op in OPERATORS.values() for p in pairs_of(op)],
)
def test_two_arithmetics_agree(op: Operator, one: str, other: str):
    assert misses(op, ARITHMETICS[one], ARITHMETICS[other]) == 0


@each_operator
@each_ball_arithmetic
def test_pairs_of_floats_hold_the_value_and_are_sharp(op: Operator, name: str):
    """The value as four times the precision tells it, give or take what is far below every format."""
    for row in drawn_rows(op):
        first, fine = (ARITHMETICS[name].evaluate(op.define, row, bits)[0] for bits in (PRECISION, 4 * PRECISION))
        enclosure = first.enclosure()
        for i in range(len(enclosure.hi)):
            (low, high), (fine_low, fine_high) = interval_of(enclosure, i), fine.interval(i)
            assert low - DUST <= fine_low <= fine_high <= high + DUST
            coarse_low, coarse_high = first.interval(i)
            assert high - low <= 4 * (coarse_high - coarse_low) + abs(coarse_high) / 2**100 + DUST


SKEW = flint.arb(2) ** -100  # far below anything a float shows, far above a ball's radius


class SkewedExp(Flint):
    """exp wrong in proportion to its argument: a common factor would cancel in softmax."""

    def exp(self, v: Vector) -> Vector:
        return objects([e * (1 + SKEW * x) for e, x in zip(super().exp(v), v, strict=True)])


class SkewedSum(Flint):
    def sum(self, v: Vector) -> Vector:
        return super().sum(v) * (1 + SKEW)


class Overconfident(Flint):
    """Half the digits, and balls that do not admit it."""

    def evaluate(self, definition: Callable[..., Any], row: Row, precision: int) -> Sequence[Balls]:
        results = super().evaluate(definition, row, precision // 2)
        return [Balls(objects([v.mid() for v in r.values]), precision) for r in results]


@pytest.mark.parametrize("wrong", [SkewedSum(), Overconfident()], ids=["skewed", "overconfident"])
@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "max"])
def test_a_wrong_arithmetic_is_seen_to_miss(name: str, wrong: Arithmetic):
    assert misses(OPERATORS[name], wrong, ARITHMETICS["mpmath"]) > 0


@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax"])
def test_an_exp_wrong_in_its_30th_digit_is_seen(name: str):
    assert misses(OPERATORS[name], SkewedExp(), ARITHMETICS["mpmath"]) > 0


def test_an_mpmath_wrong_at_one_precision_widens_its_radius(monkeypatch: pytest.MonkeyPatch):
    """It is never believed alone: the second precision shows it, and the rounding is left open, not wrong."""
    right, op = mpmath.exp, OPERATORS["logsumexp"]
    wrong = lambda x: right(x) * (1 + mpmath.mpf(2) ** -20 if mpmath.mp.prec == PRECISION else 1)  # noqa: E731
    row = {"x": np.array([1.0, 3.0, 2.0])}
    proved = ARITHMETICS["flint"].evaluate(op.define, row, PRECISION)[0]
    monkeypatch.setattr(mpmath, "exp", wrong)
    doubtful = ARITHMETICS["mpmath"].evaluate(op.define, row, PRECISION)[0]
    assert (doubtful.enclosure().radius > 2.0**-24).all()
    assert apart(doubtful, proved) == []
    inputs = arguments(op, FORMATS["float32"])
    rounded = compute_truth(op, inputs, ARITHMETICS["mpmath"])[0].rounded
    assert rounded.tolist() == compute_truth(op, inputs, ARITHMETICS["flint"])[0].rounded.tolist()


@each_format
@each_operator
def test_both_arithmetics_give_the_same_bits(op: Operator, fmt: Format):
    inputs = arguments(op, fmt)
    (slow,), (fast,) = (compute_truth(op, inputs, ARITHMETICS[name]) for name in ("mpmath", "flint"))
    assert fmt.hex(slow.rounded) == fmt.hex(fast.rounded)
    assert (slow.ground, fast.ground) == (Ground.MPMATH, Ground.PROVED)


@each_operator
def test_rational_results_go_through_fractions(op: Operator):
    assert exact_arithmetic(op) is (RATIONAL if op.rational else BEST)
    assert BEST is ARITHMETICS["flint"]
    assert compute_truth(op, arguments(op, FORMATS["float32"]))[0].ground is Ground.PROVED


@pytest.mark.parametrize("function", ["exp", "log", "log1p", "sqrt"])
def test_fractions_refuse_what_is_not_rational(function: str):
    with pytest.raises(TypeError, match=f"^{function} is not rational: declare the operator with rational=False"):
        getattr(RATIONAL, function)(objects([Fraction(1)]))


@pytest.mark.parametrize("name", [name for name, op in OPERATORS.items() if not op.rational])
def test_fractions_refuse_irrational_operators(name: str):
    with pytest.raises(TypeError, match="is not rational"):
        compute_truth(OPERATORS[name], arguments(OPERATORS[name], FORMATS["float32"]), RATIONAL)


@each_arithmetic
def test_no_precision_is_left_behind(arithmetic: Arithmetic):
    before = mpmath.mp.prec, flint.ctx.prec
    arithmetic.evaluate(OPERATORS["mean"].define, {"x": np.array([1.0, 2.0])}, 777)
    with pytest.raises(RuntimeError, match="broken"):
        arithmetic.evaluate(_broken, {"x": np.array([1.0])}, 777)
    assert (mpmath.mp.prec, flint.ctx.prec) == before


def _broken(a: Arithmetic, x: Vector) -> tuple[Vector, ...]:
    raise RuntimeError("broken")


@each_ball_arithmetic
def test_numbers_too_small_to_write_out_are_zero_give_or_take_what_they_are(name: str):
    result = ARITHMETICS[name].evaluate(OPERATORS["softmax"].define, {"x": np.array([0.0, -1e30])}, PRECISION)[0]
    low, high = result.interval(1)
    assert -DUST < low < 0 < high < DUST
    assert 0 < interval_of(result.enclosure(), 1)[1] < DUST


@each_ball_arithmetic
def test_of_what_is_not_a_number_nothing_is_known(name: str):
    result = ARITHMETICS[name].evaluate(lambda a, x: (x - x,), {"x": np.array([np.inf, NAN, 1.0])}, PRECISION)[0]
    assert result.enclosure().radius.tolist()[:2] == [np.inf, np.inf]
    assert result.enclosure().value().tolist()[2] == 0


@each_arithmetic
def test_maxima_of_equal_elements_are_all_marked(arithmetic: Arithmetic):
    define = lambda a, x: (a.is_max(x) * x - x, a.is_max(x) * x)  # noqa: E731
    rest, top = arithmetic.evaluate(define, {"x": np.array([3.0, -1.0, 3.0, -0.0])}, PRECISION)
    assert rest.enclosure().value().tolist() == [0, 1, 0, 0]
    assert top.enclosure().value().tolist() == [3, 0, 3, 0]
