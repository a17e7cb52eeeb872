"""The audit of the vectorised arithmetic: exact and 300-bit values must lie within what it encloses.

AUDITS draw operands for every operation, with low parts and errors, and look at the corners of their intervals;
:func:`operators` draws rows of every regime. Both take the arithmetic to audit, so that a broken one, made
by :func:`broken`, can be seen to fail.
"""

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np

from oracles.arithmetics import ARITHMETICS, double_word, vectorised
from oracles.catalogue import OPERATORS
from oracles.classes import ElementClass
from oracles.enclosure import Enclosure
from oracles.formats import FORMATS
from oracles.operator import ROW_WISE
from oracles.truth import SINGLE_WORDS, Row
from properties.battery import regimes_for
from properties.case import Case

PRECISION = 300
COUNT = 20  # operands at a time
Words = Any  # double_word.DoubleWords, perhaps of a broken module
Interval = tuple[Fraction, Fraction]

FILES = {"double_word": double_word.__file__, "vectorised": vectorised.__file__}


def broken(file: str, old: str, new: str) -> ModuleType:
    """The vectorised arithmetic, loaded anew with one place of its source changed."""
    modules = {}
    kept = sys.modules[double_word.__name__]
    try:
        for name, path in FILES.items():
            source = Path(path).read_text()
            if name == file:
                assert source.count(old) == 1, f"{old!r} is {source.count(old)} times in {name}: expected once"
                source = source.replace(old, new)
            module = ModuleType(f"oracles.arithmetics.{name}")
            module.__file__ = path
            sys.modules[module.__name__], before = module, sys.modules[module.__name__]
            exec(compile(source, path, "exec"), module.__dict__)
            modules[name] = module
            if name == "vectorised":
                sys.modules[module.__name__] = before
    finally:
        sys.modules[double_word.__name__] = kept
    return modules["vectorised"]


# The operations


def operands(v: ModuleType, seed: int, count: int, exponent: int = 0, positive: bool = False) -> Words:
    """A row of double words with low parts and every kind of error, around 2**exponent."""
    draw = np.random.default_rng(seed)
    hi = np.ldexp(draw.uniform(1, 2, count), draw.integers(-20, 20, count) + exponent)
    hi *= 1.0 if positive else draw.choice([-1.0, 1.0], count)
    lo = hi * draw.uniform(-1, 1, count) * 2.0**-54
    relative = np.array([[(0.0, 2.0**-60, 2.0**-20)[seed % 3]]])
    absolute = np.abs(hi) * draw.choice([0.0, 2.0**-70, 2.0**-25], count)
    return v.DoubleWords(hi[None, :], lo[None, :], relative, absolute[None, :], True)


def plain(v: ModuleType, seed: int, count: int, exponent: int = 0) -> Words:
    """A row of floats that hold themselves."""
    return v.DoubleWords.exact(operands(v, seed, count, exponent).hi)


def shared(v: ModuleType, words: Words) -> Words:
    """The same with one absolute error for the row."""
    one = np.abs(words.hi).min(axis=-1, keepdims=True) * 2.0**-25
    return v.DoubleWords(words.hi, words.lo, words.relative, one, words.precise)


def coarse(v: ModuleType, words: Words) -> Words:
    """The same, in the single words that narrow formats are content with."""
    return v.DoubleWords(words.hi, words.lo, words.relative, words.absolute, False)


def centre_and_reach(words: Words, i: int) -> Interval:
    hi, lo, relative, absolute = (
        Fraction(float(np.broadcast_to(part, words.hi.shape)[0, i]))
        for part in (words.hi, words.lo, words.relative, words.absolute)
    )
    return hi + lo, relative * abs(hi) + absolute


def corners(words: Words, i: int) -> tuple[Fraction, ...]:
    middle, reach = centre_and_reach(words, i)
    return (middle - reach, middle, middle + reach) if reach else (middle,)


def holds(result: Words, i: int, value: Fraction) -> bool:
    middle, reach = centre_and_reach(result, i)
    return abs(value - middle) <= reach


def binary(result: Words, a: Words, b: Words, exact: Callable[[Fraction, Fraction], Fraction]) -> int:
    """How many corners of the operands the result does not hold."""
    pairs = ((i, p, q) for i in range(a.hi.size) for p, q in product(corners(a, i), corners(b, i)))
    return sum(not holds(result, i, exact(p, q)) for i, p, q in pairs)


def unary(result: Words, a: Words, holds_at: Callable[[Words, int, Fraction], bool]) -> int:
    return sum(not holds_at(result, i, p) for i in range(a.hi.size) for p in corners(a, i))


def root(result: Words, i: int, value: Fraction) -> bool:
    """Whether it holds sqrt(value): by squares."""
    middle, reach = centre_and_reach(result, i)
    return value < 0 or max(middle - reach, Fraction(0)) ** 2 <= value <= (middle + reach) ** 2


def function(name: str) -> Callable[[Words, int, Fraction], bool]:
    def holds_at(result: Words, i: int, value: Fraction) -> bool:
        with mpmath.workprec(PRECISION):
            exact = getattr(mpmath, name)(mpmath.mpf(value.numerator) / value.denominator)
            sign, mantissa, exponent, _ = exact._mpf_
        return holds(result, i, (-1) ** sign * int(mantissa) * Fraction(2) ** int(exponent))

    return holds_at


def primitive(v: ModuleType, name: str) -> int:
    """Misses of one operation."""
    with np.errstate(all="ignore"):
        return sum(AUDITS[name](v))


def _pairs(v: ModuleType) -> Iterator[tuple[Words, Words]]:
    """Double words, one and two of them, floats, and what coarse operations get."""
    for seed in range(9):  # each kind of relative error with each
        a, b = operands(v, seed, COUNT), operands(v, 30 + seed // 3, COUNT)
        yield a, b
        yield shared(v, a), b
        yield a, shared(v, b)
        yield a, plain(v, seed, COUNT)
        yield plain(v, seed, COUNT), b
        yield plain(v, seed, COUNT), plain(v, 50 + seed, COUNT)
        yield coarse(v, a), coarse(v, b)
        yield coarse(v, plain(v, seed, COUNT)), b
        yield coarse(v, plain(v, seed, COUNT)), plain(v, 50 + seed, COUNT)


def _sums(v: ModuleType) -> Iterator[int]:
    for a, b in _pairs(v):
        yield binary(a + b, a, b, lambda p, q: p + q)
        yield binary(a - b, a, b, lambda p, q: p - q)
    far = operands(v, 7, COUNT, exponent=-53)
    yield binary(operands(v, 6, COUNT) + far, operands(v, 6, COUNT), far, lambda p, q: p + q)


def _products(v: ModuleType) -> Iterator[int]:
    tiny = operands(v, 3, COUNT, exponent=-530), plain(v, 4, COUNT, exponent=-530)
    for a, b in (*_pairs(v), tiny, (plain(v, 5, COUNT, exponent=-520), tiny[1])):
        yield binary(a * b, a, b, lambda p, q: p * q)


def _quotients(v: ModuleType) -> Iterator[int]:
    tiny = plain(v, 5, COUNT, exponent=-1000), plain(v, 6, COUNT, exponent=30)
    for a, b in (*_pairs(v), tiny, (plain(v, 5, COUNT, exponent=-1010), plain(v, 6, COUNT, exponent=-40))):
        yield binary(a / b, a, b, lambda p, q: p / q)
    if hasattr(v, "CHUNK"):  # integers; the device multiplies its own
        a, cube = plain(v, 3, COUNT), 300_007**3
        yield sum(not holds(a / cube, i, p / cube) for i in range(COUNT) for p in corners(a, i))
    wide = v.DoubleWords(np.array([[1.0, 1.0]]), v.NOTHING, v.NOTHING, np.array([[1.5, 0.75]]), True)
    yield int(np.isfinite((plain(v, 1, 2) / wide).radius[0, 0]))


def _roots(v: ModuleType) -> Iterator[int]:
    for seed in range(6):
        a = operands(v, seed, COUNT, positive=True)
        yield unary(v.square_root(a), a, root)
        a = v.DoubleWords.exact(np.abs(plain(v, seed, COUNT).hi))
        yield unary(v.square_root(a), a, root)
        a = v.DoubleWords.exact(np.abs(plain(v, seed, COUNT, exponent=-1000).hi))
        yield unary(v.square_root(a), a, root)
    near_zero = v.DoubleWords(np.array([[0.0, 1.0, 1.0]]), v.NOTHING, v.NOTHING, np.array([[2.0, 0.9, 0.45]]), True)
    yield unary(v.square_root(near_zero), near_zero, root)


def _totals(v: ModuleType) -> Iterator[int]:
    for seed, count in enumerate((1, 2, 3, 17, 64, 100)):
        for a in (operands(v, seed, count), plain(v, seed, count), coarse(v, operands(v, seed + 9, count))):
            corner_sums = [sum(corners(a, i)[end] for i in range(count)) for end in (0, -1)]
            yield sum(not holds(v.total(a), 0, value) for value in corner_sums)
        spread = v.DoubleWords.exact(np.concatenate([plain(v, seed, count, e).hi for e in (0, -60, 70)], axis=-1))
        yield not holds(v.total(spread), 0, sum(Fraction(x) for x in spread.hi[0].tolist()))


def _exponentials(v: ModuleType) -> Iterator[int]:
    for seed in range(6):
        a = operands(v, seed, COUNT, exponent=-14)
        for argument in (a, v.DoubleWords.exact(a.hi), v.DoubleWords.sum_of(a.hi, a.lo, v.NOTHING, v.NOTHING, True)):
            yield unary(v.VECTORISED.exp(argument), argument, function("exp"))
    ends = v.DoubleWords.exact(np.array([[-745.0, -744.5, -740.0, -800.0, -1e30, 710.0, 0.0]]))
    result = v.VECTORISED.exp(ends)
    yield sum(not function("exp")(result, i, Fraction(float(ends.hi[0, i]))) for i in range(4))
    yield int(np.isfinite(np.broadcast_to(result.absolute, ends.shape)[0, 5]))


def _logarithms(v: ModuleType) -> Iterator[int]:
    for seed in range(6):
        a = operands(v, seed, COUNT, positive=True)
        for argument in (a, v.DoubleWords.exact(a.hi), v.DoubleWords.sum_of(a.hi, a.lo, v.NOTHING, v.NOTHING, True)):
            for name in ("log", "log1p"):
                yield unary(getattr(v.VECTORISED, name)(argument), argument, function(name))
    tiny = v.DoubleWords.exact(np.array([[2.0**-1074, 2.0**-1022, 1e-300, 0.0]]))
    yield unary(v.VECTORISED.log1p(tiny), tiny, function("log1p"))


def _enclosures(v: ModuleType) -> Iterator[int]:
    beside = np.array([[1.0, 2.0**1000, 0.5, -1.0]]), np.array([[-(2.0**-1074), -(2.0**-1074), 2.0**-1070, 2.0**-1074]])
    below = v.DoubleWords(*beside, v.NOTHING, v.NOTHING, True)
    yield _outside(below, below.enclosure(below.shape))
    for seed, exponent in enumerate((0, 900, -900, 0, 900)):
        a = operands(v, seed, COUNT, exponent)
        if seed > 2:
            a = v.DoubleWords(a.hi, a.lo, v.NOTHING, np.full(a.shape, 2.0**-1074), True)
        yield _outside(a, a.enclosure(a.shape))


def _outside(words: Words, enclosure: Enclosure) -> int:
    """Corners that an enclosure of them does not hold."""
    found = 0
    for i in range(words.hi.size):
        reach = Fraction(float(enclosure.radius[0, i])) * Fraction(2) ** int(enclosure.exponent[0, i])
        found += sum(abs(p - enclosure.fraction((0, i))) > reach for p in corners(words, i))
    return found


AUDITS: dict[str, Callable[[ModuleType], Iterator[int]]] = {
    "sum": _sums,
    "product": _products,
    "quotient": _quotients,
    "root": _roots,
    "total": _totals,
    "exp": _exponentials,
    "log": _logarithms,
    "enclosure": _enclosures,
}


# The operators


def cases(lengths: tuple[int, ...] = (33,), seed: int = 3) -> Iterator[Case]:
    """Two rows of every regime, in the formats in turn."""
    turn = 0
    for op in OPERATORS:
        for regime in regimes_for(op):
            for n in lengths:
                if regime.fits(n):
                    turn += 1
                    affine = {name: turn % 2 == 1 for name in ("weight", "bias") if name in OPERATORS[op].optional}
                    dtype = list(FORMATS)[turn % len(FORMATS)]
                    yield Case(op, dtype, regime.name, rows=2, n=n, seed=seed, **affine)


def finite_rows(case: Case) -> Iterator[Row]:
    op, inputs = case.operator, case.inputs
    visible = op.visible(inputs)
    classes, *_ = op.classify(inputs, "zero")
    for r in range(case.rows):
        seen = visible[r].any() and (classes.reshape(case.rows, -1)[r] == ElementClass.VALUE).any()
        row = Row(op, inputs, r, visible[r])
        if seen and all(np.isfinite(row.arguments()[name]).all() for name in ROW_WISE if name in row.arguments()):
            yield row


def misses(v: ModuleType, row: Row) -> int:
    """Elements of a row whose enclosure does not hold what mpmath and python-flint find at 300 bits."""
    arguments, precise = row.arguments(), row.op.rational or row.inputs.fmt.precision > SINGLE_WORDS
    one_row = {name: value[None, :] if name in ROW_WISE else value for name, value in arguments.items()}
    enclosures = v.VECTORISED.enclose(row.op.define, one_row, precise)
    found = 0
    for name in ("mpmath", "flint"):
        references = ARITHMETICS[name].evaluate(row.op.define, arguments, PRECISION)
        for enclosed, reference in zip(enclosures, references, strict=True):
            for i in np.flatnonzero(np.isfinite(enclosed.radius[0])).tolist():
                middle = enclosed.fraction((0, i))
                reach = Fraction(float(enclosed.radius[0, i])) * Fraction(2) ** int(enclosed.exponent[0, i])
                low, high = reference.interval(i)
                found += low > middle + reach or high < middle - reach
    return found


def operators(v: ModuleType) -> dict[str, int]:
    """Misses by case."""
    found = {case.id: sum(misses(v, row) for row in finite_rows(case)) for case in cases()}
    return {case: count for case, count in found.items() if count}
