"""Whole arrays of rows at once, proved: double words, and exponentials and logarithms that are correctly rounded.

crival's functions are CORE-MATH's (A. Sibidanov, P. Zimmermann and S. Glondu, "The CORE-MATH project", ARITH 2022):
at a float64 they give the two neighbouring floats around the exact value, or that value. What an argument's low part
and radius add is bounded to second order. About 100 times faster than mpmath, with about 2**-53 of relative radius
behind an exponential and 2**-100 elsewhere; who needs more asks python-flint.
"""

from collections.abc import Callable, Mapping
from typing import Any

import ival
import numpy as np

from oracles.arithmetics.double_word import NOTHING, SMALLEST, DoubleWords, U, square_root, total
from oracles.arithmetics.protocol import Definition
from oracles.enclosure import Enclosure, Floats, Ground

# Elements evaluated at a time: a few dozen temporaries of this size stay in the caches of one core.
CHUNK = 2**16
# glibc hands every temporary of 128 KiB back to the system, and gets it again page by page, until it has seen a larger
# one freed: twice the time of everything here.
np.empty(31 * 2**17)


class Vectorised:
    """Double words over arrays of rows."""

    name = "double_words"
    ground = Ground.PROVED

    def enclose(self, definition: Definition, rows: Mapping[str, Any], precise: bool) -> tuple[Enclosure, ...]:
        """``definition`` on all rows of ``x`` (rows, n), n >= 1; the other arguments as in ``Arithmetic.evaluate``, or
        (rows, n) too.

        ``precise``: in double words throughout, for storage formats of more than 24 bits.
        """
        count, n = rows["x"].shape
        own = {name: value for name, value in rows.items() if np.ndim(value) == 2}
        shared = {name: _number(value) for name, value in rows.items() if name not in own}
        step = max(1, CHUNK // n)
        parts = []
        with np.errstate(all="ignore"):  # what overflows is unknown, and says so
            for start in range(0, count, step):
                some = {name: DoubleWords.exact(value[start : start + step], precise) for name, value in own.items()}
                results = definition(self, **some, **shared)
                height = min(step, count - start)
                parts.append([r.enclosure(np.broadcast_shapes(r.shape, (height, 1))) for r in results])
        return tuple(Enclosure.concatenate(same) for same in zip(*parts, strict=True))

    def exp(self, v: DoubleWords) -> DoubleWords:
        """exp(hi) exp(lo + rho), |rho| <= radius < 1/4: the second factor is 1 + lo within 2 (lo**2 + radius).

        A larger lo belongs to a hi beyond 2**50, where the exponential overflows or lies below every float: 0 and
        the smallest float hold it as they stand.
        """
        value = _correctly_rounded(ival.exp, v)
        radius = v.radius
        if not v.lo.ndim and not radius.any():
            return value
        spread = np.where(radius < 0.25, 2 * (v.lo * v.lo + radius) + 4 * U * np.abs(v.lo), np.inf)
        absolute = 2 * value.absolute + value.hi * spread
        return DoubleWords.sum_of(value.hi, value.hi * v.lo, value.relative, absolute, False)

    def log(self, v: DoubleWords) -> DoubleWords:
        """log(hi) + log1p(d/hi), d = lo + rho."""
        return _logarithm(ival.log, v, v.hi)

    def log1p(self, v: DoubleWords) -> DoubleWords:
        """log1p(hi) + log1p(d/(1 + hi)), d = lo + rho."""
        return _logarithm(ival.log1p, v, 1 + v.hi)

    def sqrt(self, v: DoubleWords) -> DoubleWords:
        return square_root(v)

    def sum(self, v: DoubleWords) -> DoubleWords:
        return total(v)

    def max(self, v: DoubleWords) -> DoubleWords:
        return DoubleWords.exact(v.hi.max(axis=-1, keepdims=True))

    def is_max(self, v: DoubleWords) -> DoubleWords:
        return DoubleWords.exact((v.hi == v.hi.max(axis=-1, keepdims=True)).astype(np.float64))


def _number(value: Any) -> Any:
    """Weights as a row of double words, parameters as they are; None stays None."""
    return DoubleWords.exact(value[None, :]) if isinstance(value, np.ndarray) else value


def _correctly_rounded(function: Callable[[Any], Any], v: DoubleWords) -> DoubleWords:
    """An elementary function at ``v.hi``: the float at or below its value, and the distance to the next."""
    points = ival.Interval.__new__(ival.Interval)  # its constructor sorts out what these points are not, at a third
    points.lo = points.hi = np.ascontiguousarray(v.hi)  # of the price of the exponential
    bounds = function(points)
    overflows = np.isinf(bounds.hi)
    beyond = np.where(overflows, np.inf, SMALLEST) if overflows.any() else np.array(SMALLEST)
    return DoubleWords(bounds.lo, NOTHING, np.array(2 * U), beyond, False)


def _logarithm(function: Callable[[Any], Any], v: DoubleWords, base: Floats) -> DoubleWords:
    """The logarithm at ``hi``, and the change d/base that low part and radius bring, within its square."""
    value, radius = _correctly_rounded(function, v), v.radius
    change = v.lo / base
    spread = (np.abs(v.lo) + radius) / base
    # log1p(t) is t within t**2 for |t| <= 1/2; base, the quotient and its radius round.
    inherited = np.where(spread < 0.5, radius / base + spread * spread + 4 * U * spread, np.inf)
    absolute = value.absolute + inherited + value.relative * np.abs(value.hi)
    return DoubleWords.sum_of(value.hi, change, NOTHING, absolute, True)


VECTORISED = Vectorised()
