"""The judge: computed results against the truth, element by element, under what the contract allows.

pass  <=>  |z_i - y_i| <= T_i = B_i + ulp(|y_i| + B_i)/2. B_i is the operator's bound (oracles), in the arithmetic the
contract names; where it is 0 (a maximum, a masked weight) only the correct rounding passes. An implementation that
claims ``max_ulp`` is judged by that claim instead. Classes come first: where the oracle demands NaN or an infinity,
nothing else will do, and where it demands a value a non-finite result is wrong, unless a value within B rounds to it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_impls.contract import Contract
from gpu_impls.outcome import Reason
from oracles.bounds import granted, tolerance
from oracles.classes import ElementClass, class_of
from oracles.enclosure import Enclosure, Floats
from oracles.formats import Array, Format
from oracles.operator import Inputs, Operator
from oracles.truth import Truth
from oracles.ulp import errors_in_ulps, ulp_exponents
from properties.domain import holds_subnormals, outside_domain

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Expectation:
    """What one contract allows of one output on given inputs: computed once, used for every run.

    Arrays have the output's shape. ``unjudged`` holds a reason, or None, per row; ``allowed`` is T, infinite where
    nothing is promised.
    """

    fmt: Format
    truth: Truth
    classes: NDArray[np.int8]
    magnitude: Array
    bound: Array
    half_ulp: Array
    allowed: Array
    condition: Floats
    unjudged: tuple[Reason | None, ...]
    max_ulp: float | None

    @property
    def judged(self) -> Flags:
        """Elements whose row is judged."""
        rows = np.array([reason is None for reason in self.unjudged], dtype=np.bool_)
        return np.broadcast_to(rows.reshape(-1, *[1] * (self.classes.ndim - 1)), self.classes.shape)


@dataclass(frozen=True)
class Judgement:
    """One output of one run, element by element.

    Attributes:
        compared: a class was demanded or a value promised.
        errors: in ULPs; NaN where no finite comparison was made.
        row_errors: in ULPs of the row's largest exact output.
        used: share of the allowed error that was used; NaN where not judged by a bound.
        misrounded: a finite result whose bits are not those of the correctly rounded value.
        special: the class is wrong.
        failed: judged, and wrong.
    """

    computed: Array
    expectation: Expectation
    compared: Flags
    errors: Floats
    row_errors: Floats
    used: Floats
    misrounded: Flags
    special: Flags
    over: Flags
    undecided: Flags

    @property
    def rounding_open(self) -> Flags:
        """Finite results where the truth leaves open which value is the correctly rounded one."""
        return ~np.isnan(self.errors) & ~self.expectation.truth.decided

    @property
    def failed(self) -> Flags:
        return (self.special | self.over) & self.expectation.judged

    def reason_at(self, index: tuple[int, ...]) -> Reason:
        """Why one element passed, failed or was not judged."""
        unjudged = self.expectation.unjudged[index[0]]
        if unjudged is not None:
            return unjudged
        if not self.compared[index]:
            return Reason.NOTHING
        if self.special[index]:
            return Reason.SPECIAL
        if self.over[index]:
            return Reason.OVER_BOUND if self.expectation.max_ulp is None else Reason.OVER_BUDGET
        return Reason.UNDECIDED if self.undecided[index] else Reason.WITHIN


def expect(op: Operator, inputs: Inputs, truths: tuple[Truth, ...], contract: Contract) -> tuple[Expectation, ...]:
    """What ``contract`` allows on ``inputs``, one :class:`Expectation` per output."""
    model = contract.error_model(inputs.fmt.name)
    values = tuple(t.enclosure.value(inputs.wide.type) for t in truths)
    classes = op.classify(inputs, contract.masked_row)
    with np.errstate(all="ignore"):  # rows of NaN and inf have no bound, and none is asked for
        bounds = op.bound(inputs, values, model)
        conditions = op.condition(inputs, values)
        why_not = _reasons(*unjudged(op, inputs, contract, values, bounds))
        expectations = []
        for truth, c, y, b, k in zip(truths, classes, values, bounds, conditions, strict=True):
            magnitude = np.abs(y)
            b, half = granted(b, magnitude, inputs.fmt, model)
            half = np.where(b == 0, _rounding_error(truth, inputs), half)
            allowed = tolerance(b, half, inputs.fmt, model)
            kappa = np.where(k == 0, 0.0, k / magnitude).astype(np.float64)
            budget = contract.max_ulp.get(inputs.fmt.name)
            expectations.append(Expectation(inputs.fmt, truth, c, magnitude, b, half, allowed, kappa, why_not, budget))
    return tuple(expectations)


def _rounding_error(truth: Truth, inputs: Inputs) -> Array:
    """How far the correctly rounded results lie from the exact ones, in working precision."""
    errors = errors_in_ulps(truth.rounded, truth.enclosure, inputs.fmt, inputs.wide.type)
    return errors * _units(truth.enclosure, inputs.fmt, inputs.wide.type)


def _units(exact: Enclosure, fmt: Format, dtype: type[np.floating]) -> Array:
    return np.ldexp(dtype(1), ulp_exponents(exact, fmt).astype(np.int32))


def unjudged(
    op: Operator, inputs: Inputs, contract: Contract, values: tuple[Array, ...], bounds: tuple[Array, ...]
) -> tuple[Flags, Flags]:
    """Rows about which the contract promises nothing, and rows about which the bound says nothing, (rows,)."""
    outside = outside_domain(op, inputs, contract)
    if contract.subnormals == "flush":
        outside |= holds_subnormals(op, inputs)
    blurred = np.zeros(len(inputs.x), np.bool_)
    if op.undecided is not None and inputs.fmt.name not in contract.max_ulp:
        blurred = op.undecided(inputs, values, bounds)
    return outside, blurred


def _reasons(outside: Flags, blurred: Flags) -> tuple[Reason | None, ...]:
    """Why each row is not judged, or None."""
    return tuple(
        Reason.OUTSIDE_DOMAIN if o else Reason.ILL_CONDITIONED if b else None
        for o, b in zip(outside.tolist(), blurred.tolist(), strict=True)
    )


def judge(computed: Array, e: Expectation) -> Judgement:
    """Compare one output with what is expected of it."""
    exact, fmt = e.truth.enclosure, e.fmt
    got = class_of(computed)
    value = e.classes == ElementClass.VALUE
    with np.errstate(all="ignore"):
        unpromised = value & np.isposinf(e.bound) & (e.max_ulp is None)
        compared = (e.classes != ElementClass.ANY) & ~unpromised
        wide = e.magnitude.dtype.type
        errors = errors_in_ulps(computed, exact, fmt, wide)
        units = _units(exact, fmt, wide)
        distance = errors * units
        slack = np.ldexp(exact.radius.astype(wide), np.clip(exact.exponent, -40_000, 40_000).astype(np.int32))
        overflows = e.magnitude + e.bound >= fmt.largest + _last_half_ulp(fmt, wide)
        right_infinity = np.isinf(computed.astype(np.float64)) & overflows & (np.sign(computed) == np.sign(exact.hi))
        special = compared & np.where(value, (got != ElementClass.VALUE) & ~right_infinity, got != e.classes)
        number = compared & value & (got == ElementClass.VALUE)
        limit = e.allowed if e.max_ulp is None else e.max_ulp * units
        over = number & (distance - slack > limit)
        undecided = number & ~over & (distance + slack > limit)
        used = _used(distance, e) if e.max_ulp is None else errors / e.max_ulp
        errors = np.where(number, errors, np.nan).astype(np.float64)
        off = fmt.bits(computed + fmt.dtype.type(0)) != fmt.bits(e.truth.rounded + fmt.dtype.type(0))
        used = np.where(number & e.judged, used, np.nan).astype(np.float64)
    return Judgement(
        computed=computed,
        expectation=e,
        compared=compared,
        errors=errors,
        row_errors=errors * _row_share(exact, fmt),
        used=used,
        misrounded=number & off & e.truth.decided,
        special=special,
        over=over,
        undecided=undecided,
    )


def _used(distance: Array, e: Expectation) -> Array:
    """Share of T, or of B beyond storage's half ulp in 16 bits, where the share of T would always be near 1."""
    spent, granted = distance, e.allowed
    if e.fmt.precision < 24:
        spent, granted = np.maximum(distance - e.half_ulp, 0), e.allowed - e.half_ulp
    return np.where(spent == 0, 0, spent / granted)


def _last_half_ulp(fmt: Format, dtype: type[np.floating]) -> Array:
    return np.ldexp(dtype(0.5), fmt.emax - fmt.precision + 1)


def _row_share(exact: Enclosure, fmt: Format) -> Floats:
    """``ulp(y_i)`` over the ulp of the row's largest exact output; 1 for one output per row."""
    units = ulp_exponents(exact, fmt)
    if units.ndim == 1:
        return np.ones(units.shape)
    return np.ldexp(1.0, (units - units.max(axis=-1, keepdims=True, initial=fmt.quantum_exponent)).astype(np.int32))
