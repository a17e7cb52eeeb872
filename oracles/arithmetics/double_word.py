"""Double words: pairs of float64 with a radius, elementwise on arrays, every rounding accounted for.

A :class:`DoubleWords` holds ``y`` with ``|y - (hi + lo)| <= relative |hi| + absolute``, u = 2**-53. Sums are made of
error-free transformations, and their error is what those drop, computed: an exact sum has none, and a difference of
nearly equal numbers keeps all its digits. Products, quotients and roots have the bounds proved below, in the style
of M. Joldes, J.-M. Muller and V. Popescu, "Tight and rigorous error bounds for basic building blocks of double-word
arithmetic", ACM Trans. Math. Softw. 44(2), 2017. What overflows becomes NaN or infinite in some part, and then
:meth:`DoubleWords.enclosure` says that nothing is known.
"""

from dataclasses import dataclass
from typing import Union

import numpy as np

from oracles.enclosure import Enclosure, Floats

U = 2.0**-53
# Roundings of the errors themselves: at most 2**22 additions, each by a relative u.
OUTWARD = 1.0 + 2.0**-30
# A product, quotient or root of double words errs by at most 12 u**2 relative.
OPERATION = 16 * U**2
# Products whose errors underflow lose at most a few of the smallest subnormals.
UNDERFLOW = 2.0**-1060
SMALLEST = 2.0**-1074
_SPLITTER = 2.0**27 + 1
NOTHING: Floats = np.zeros(())

Operand = Union["DoubleWords", float]


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """``a + b`` rounded, and the error, exactly (Knuth, TAOCP 2, section 4.2.2)."""
    s = a + b
    t = s - a
    error = s - t
    np.subtract(a, error, out=error)
    np.subtract(b, t, out=t)
    error += t
    return s, error


def split(a: Floats) -> tuple[Floats, Floats]:
    """Two halves of 26 bits whose sum is ``a`` (Veltkamp)."""
    c = _SPLITTER * a
    high = c - (c - a)
    return high, a - high


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """``a * b`` rounded, and the error: exact unless it underflows (Dekker, Numer. Math. 18, 1971)."""
    p = a * b
    (a1, a0), (b1, b0) = split(a), split(b)
    error = a1 * b1
    error -= p
    error += a1 * b0
    error += a0 * b1
    error += a0 * b0
    return p, error


@dataclass(frozen=True)
class DoubleWords:
    """``|y - (hi + lo)| <= relative |hi| + absolute``, elementwise; the parts broadcast, and NOTHING costs nothing.

    Most errors are shared by a row, and say so by their shape, (rows, 1) or (): that spares the work of an array.

    Attributes:
        hi, lo: the centre, ``|lo| <= u |hi|``.
        relative, absolute: not negative.
        precise: products and quotients are double words too; else they are single words, within a few u, which is
            enough for 24 bits and half the work.
    """

    hi: Floats
    lo: Floats
    relative: Floats
    absolute: Floats
    precise: bool

    @classmethod
    def exact(cls, values: Floats | float, precise: bool = True) -> "DoubleWords":
        return cls(np.atleast_1d(np.asarray(values, np.float64)), NOTHING, NOTHING, NOTHING, precise)

    @classmethod
    def sum_of(cls, hi: Floats, lo: Floats, relative: Floats, absolute: Floats, precise: bool) -> "DoubleWords":
        """Two parts of any size as a double word: exactly their sum."""
        hi, lo = two_sum(hi, lo)
        return cls(hi, _short(lo), relative * OUTWARD, _short(absolute * OUTWARD), precise)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.hi.shape

    @property
    def words(self) -> int:
        return 2 if self.lo.ndim else 1

    @property
    def is_plain(self) -> bool:
        """Floats that hold themselves."""
        return self.words == 1 and not self.relative.any() and not self.absolute.any()

    @property
    def radius(self) -> Floats:
        """Both errors together."""
        relative = self.relative * np.abs(self.hi) if self.relative.any() else NOTHING
        return (relative + self.absolute) * OUTWARD

    def __add__(self, other: Operand) -> "DoubleWords":
        return add(self, _operand(other))

    def __sub__(self, other: Operand) -> "DoubleWords":
        return add(self, -_operand(other))

    def __rsub__(self, other: float) -> "DoubleWords":
        return add(_operand(other), -self)

    def __neg__(self) -> "DoubleWords":
        return DoubleWords(-self.hi, -self.lo, self.relative, self.absolute, self.precise)

    def __mul__(self, other: Operand) -> "DoubleWords":
        return multiply(self, _operand(other))

    def __truediv__(self, other: Operand) -> "DoubleWords":
        return divide(self, _operand(other))

    __radd__, __rmul__ = __add__, __mul__

    def enclosure(self, shape: tuple[int, ...]) -> Enclosure:
        """As mantissa and exponent, broadcast to ``shape``; what is not finite is unknown."""
        hi, exponent = np.frexp(self.hi)
        radius = np.abs(hi) * (self.relative * OUTWARD)
        lo = self.lo
        if lo.ndim:
            lo = np.ldexp(self.lo, -exponent)
            lost = np.ldexp(lo, exponent) != self.lo  # far below, but on one side: 1 - 2**-1074 is less than 1
            lo, radius = np.where(lost, np.copysign(2.0**-1000, self.lo), lo), radius + lost * 2.0**-999
        if self.absolute.any():
            # What underflows in the scaling is still not 0.
            least = (self.absolute > 0) * 2.0**-1000
            scaled = np.ldexp(self.absolute, -exponent.min())
            if scaled.size == hi.size or scaled.max() > 2.0**-300:  # more than nothing, even for the smallest element
                scaled = np.ldexp(self.absolute, -exponent)
            radius = radius + np.maximum(scaled, least) * OUTWARD
        enclosure = Enclosure(*(np.broadcast_to(a, shape) for a in (hi, lo, exponent.astype(np.int64), radius)))
        return enclosure.where(np.isfinite(hi + radius) & np.isfinite(lo))


def _operand(value: Operand) -> DoubleWords:
    """Numbers as they are: integers, such as n cubed, up to 106 bits."""
    if isinstance(value, DoubleWords):
        return value
    hi = float(value)
    lo = float(value - int(hi)) if isinstance(value, int) else 0.0
    return DoubleWords(np.array([hi]), _short(np.array([lo])), NOTHING, NOTHING, True)


def _short(part: Floats) -> Floats:
    """A part that is 0 everywhere, as NOTHING."""
    return part if part.any() else NOTHING


def _times(error: Floats, v: Floats) -> Floats:
    """``error * |v|``; an error that is one for the row stays so, by the row's largest element if that is finite."""
    if not error.any():
        return NOTHING
    if not error.ndim or error.shape[-1] == 1:
        largest = _largest(v)
        if np.isfinite(largest).all():
            return error * largest
    return error * np.abs(v)


def _largest(v: Floats) -> Floats:
    largest: Floats = np.maximum(v.max(axis=-1, keepdims=True), -v.min(axis=-1, keepdims=True))
    return largest


def add(a: DoubleWords, b: DoubleWords) -> DoubleWords:
    """``a + b``: exact but for what two of the additions of low parts drop, which is computed."""
    hi, low = two_sum(a.hi, b.hi)
    absolute = a.absolute + b.absolute
    for term in (a, b):
        if term.relative.any():
            absolute = absolute + (term.relative * np.abs(term.hi) + SMALLEST)
    if a.words + b.words > 2:
        lows, dropped_1 = two_sum(a.lo, b.lo)
        low, dropped_2 = two_sum(low, lows)
        hi, low = two_sum(hi, low)
        absolute = absolute + _short(np.abs(dropped_1) + np.abs(dropped_2))
    return DoubleWords(hi, _short(low), NOTHING, absolute * OUTWARD, a.precise and b.precise)


def multiply(a: DoubleWords, b: DoubleWords) -> DoubleWords:
    """``a * b``.

    Double words: exact where both are single. Otherwise a.lo b.lo is dropped (u**2) and the products and sums of low
    parts round (1 + 1 + 2 + 3 u**2): 8 u**2 in all. Single words: u for the rounding and for each low part dropped;
    but floats times one number stay exact, because differences are taken of them next (n x - sum x).
    """
    relative = a.relative + b.relative + a.relative * b.relative
    absolute = (
        _times(a.absolute, b.hi) * (1 + b.relative)
        + _times(b.absolute, a.hi) * (1 + a.relative)
        + a.absolute * b.absolute
    )
    precise = a.precise and b.precise
    if not precise and not (a.is_plain and b.is_plain and b.hi.size == 1):
        relative = (relative + _dropped(a, b)) * OUTWARD
        return DoubleWords(a.hi * b.hi, NOTHING, relative, (UNDERFLOW + absolute) * OUTWARD, False)
    hi, low = two_product(a.hi, b.hi)
    # A product with 0 is 0, to the last bit of float64.
    underflows = (np.abs(hi) < 2.0**-900) & (a.hi != 0) & (b.hi != 0) if precise else True
    absolute = absolute + UNDERFLOW * np.asarray(underflows)
    if a.words + b.words > 2:
        low += a.hi * b.lo + a.lo * b.hi
        relative = relative + OPERATION
    return DoubleWords.sum_of(hi, low, relative, absolute, precise)


def _dropped(a: DoubleWords, b: DoubleWords) -> float:
    """The relative error of one rounding, and of low parts left out."""
    return (a.words + b.words - 1) * U


def divide(a: DoubleWords, b: DoubleWords) -> DoubleWords:
    """``a / b``; where b's interval holds 0 nothing is known.

    With beta the relative error of b, the quotient q of any two points lies within |q| beta / (1 - beta), and
    a's errors over |b| (1 - beta), of the centre's. Double words: q = a.hi / b.hi rounded and one correction, the
    remainder over b.hi. The remainder of single words is exact (Dekker), and what the correction rounds is
    proportional to it. Low parts add 6 u**2 |a| of roundings; the correction, at most 3 u |q|, rounds and lacks b.lo:
    6 u**2 |q| more. Single words: u for the rounding and for each low part dropped.
    """
    q = a.hi / b.hi
    denominator = np.abs(b.hi)
    beta = (b.relative + b.absolute / denominator) * OUTWARD
    spread = np.where(beta < 0.5, OUTWARD / (1 - beta), np.inf)
    precise = a.precise and b.precise
    tiny = UNDERFLOW * (a.hi != 0) if precise else UNDERFLOW
    absolute = tiny + (a.absolute + tiny) / denominator.min(axis=-1, keepdims=True) * spread
    relative = a.relative + beta
    if not precise:
        relative = (relative + _dropped(a, b)) * spread
        return DoubleWords(q, NOTHING, relative * OUTWARD, absolute * OUTWARD, False)
    product, error = two_product(q, b.hi)
    remainder = (a.hi - product) - error
    if a.words + b.words > 2:
        remainder = (remainder + a.lo) - q * b.lo
        relative = relative + OPERATION
    else:
        absolute = absolute + 4 * U * np.abs(remainder) / denominator
    return DoubleWords.sum_of(q, remainder / b.hi, relative * spread, absolute, True)


def square_root(a: DoubleWords) -> DoubleWords:
    """``sqrt(a)`` by one Newton step: within 5 u**2 of the centre's root, or 2 u of the step where ``a`` is single.

    With r the radius over the centre, a point's root lies within s r / 2 (1 - r) of the centre's root s where
    r <= 1/2, and within sqrt(a + radius) anywhere.
    """
    s = np.sqrt(a.hi)
    product, error = two_product(s, s)
    remainder = ((a.hi - product) - error) + a.lo
    positive = s > 0
    divisor = np.where(positive, s, 1.0)
    correction = np.where(positive, remainder / (2 * divisor), 0.0)
    rounding = OPERATION * s if a.lo.ndim else 4 * U * np.abs(correction)
    radius = np.broadcast_to(a.radius, s.shape)
    ratio = np.where(positive & (radius <= a.hi / 2), radius / np.where(positive, a.hi, 1.0), np.inf)
    far = np.where(radius == 0, 0.0, np.sqrt(a.hi + radius))
    inherited = np.where(ratio <= 0.5, s * ratio / (2 * (1 - ratio)) + UNDERFLOW * (radius > 0), far)
    underflow = np.where(positive & (a.hi < 2.0**-900), np.sqrt(UNDERFLOW), 0.0)
    return DoubleWords.sum_of(s, correction, NOTHING, inherited * OUTWARD + rounding + underflow, a.precise)


def total(a: DoubleWords) -> DoubleWords:
    """The sum along the last axis, which stays with length 1: a tree of error-free transformations.

    Errors of the high parts are added to the low parts, whose errors are dropped: the error is their sum.
    """
    hi, low = a.hi, a.lo
    dropped = np.broadcast_to(a.absolute, hi.shape).sum(axis=-1, keepdims=True)
    if a.relative.any():
        largest = np.max(a.relative, axis=-1, keepdims=True) if a.relative.ndim else a.relative
        dropped = dropped + (largest * np.abs(hi).sum(axis=-1, keepdims=True) + hi.shape[-1] * SMALLEST)
    while hi.shape[-1] > 1:
        hi, error = two_sum(*_halves(hi))
        if low.ndim:
            low, dropped_1 = two_sum(*_halves(low))
            low, dropped_2 = two_sum(low, error)
            dropped = dropped + (np.abs(dropped_1) + np.abs(dropped_2)).sum(axis=-1, keepdims=True)
        else:
            low = _short(error)
    return DoubleWords.sum_of(hi, low, NOTHING, dropped, True)


def _halves(v: Floats) -> tuple[Floats, Floats]:
    """Both halves of the last axis, an odd one filled up with a 0."""
    width = v.shape[-1]
    if width % 2:
        v = np.concatenate([v, np.zeros((*v.shape[:-1], 1))], axis=-1)
    half = (width + 1) // 2
    return v[..., :half], v[..., half:]
