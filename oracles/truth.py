"""The truth: an operator's exact results for given inputs, enclosed and correctly rounded.

The definition is evaluated on whole arrays of rows first (:mod:`oracles.arithmetics.vectorised`). Elements whose
rounding or unit that leaves open, or whose enclosure is not far sharper than an ulp, are evaluated again, row by row,
on the row's visible elements: by fractions where the result is rational, else by python-flint's balls, else by
mpmath, with twice the precision each time. What is open at 4096 bits is a tie.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from oracles.arithmetics import BEST, RATIONAL, VECTORISED, Arithmetic
from oracles.classes import ElementClass
from oracles.enclosure import Enclosure, Ground
from oracles.formats import Array, Format
from oracles.operator import ROW_WISE, Inputs, Mask, Operator
from oracles.rounding import round_enclosure, round_fraction
from oracles.ulp import ulp, ulp_exponents

FIRST_PRECISION = 128
LAST_PRECISION = 4096
# Enclosures are at most this wide, in ulps of the storage format: a thousandth of the half ulp that is always granted.
SHARP = 2.0**-11
# Formats of more bits than these need double words throughout.
SINGLE_WORDS = 24


@dataclass(frozen=True)
class Truth:
    """The exact results of one output: enclosures, and what each element rounds to in the storage format.

    Masked elements hold an exact 0. What elements hold that are no VALUE says nothing.

    Attributes:
        decided: the enclosure decides the rounding; everywhere, unless elements were left open on purpose.
        ground: the weakest of what it stands on.
        arithmetics: names of the arithmetics that had a part in it.
    """

    enclosure: Enclosure
    rounded: Array
    decided: Mask
    ground: Ground
    arithmetics: frozenset[str]

    def at(self, rows: Any) -> "Truth":
        """Of some rows only, given as an index of NumPy's."""
        return replace(self, enclosure=self.enclosure[rows], rounded=self.rounded[rows], decided=self.decided[rows])

    @staticmethod
    def concatenate(parts: "Sequence[Truth]") -> "Truth":
        """Rows that follow each other, as one."""
        return Truth(
            Enclosure.concatenate([part.enclosure for part in parts]),
            np.concatenate([part.rounded for part in parts]),
            np.concatenate([part.decided for part in parts]),
            Ground.weakest({part.ground for part in parts}),
            frozenset().union(*(part.arithmetics for part in parts)),
        )


def exact_arithmetic(op: Operator) -> Arithmetic:
    """What decides in the end: fractions where the result is rational, else the best arithmetic installed."""
    return RATIONAL if op.rational else BEST


def is_fast(fmt: Format) -> bool:
    """Whether arrays of rows leave so little open in ``fmt`` that a truth costs little."""
    return VECTORISED is not None and fmt.precision <= SINGLE_WORDS


def compute_truth(
    op: Operator, inputs: Inputs, arithmetic: Arithmetic | None = None, escalate: bool = True
) -> tuple[Truth, ...]:
    """The exact results of ``op``, one :class:`Truth` per output.

    Args:
        arithmetic: evaluate every row in this one; by default arrays of rows first, and rows where those leave
            something open.
        escalate: evaluate open elements again. Without it they stay as wide as they are.
    """
    draft = Draft(op, inputs)
    if arithmetic is None and VECTORISED is not None:
        draft.enclose_all()
    if escalate or arithmetic is not None or VECTORISED is None:
        draft.decide(arithmetic or exact_arithmetic(op))
    return draft.truths()


class RowTruths:
    """The exact results of rows as they are asked for, each evaluated once; with the ground and the arithmetics of all
    that were evaluated together.

    Args:
        whole: computes those of all rows.
        escalate: as in :func:`compute_truth`, for some rows.
    """

    def __init__(
        self, op: Operator, inputs: Inputs, whole: Callable[[], tuple[Truth, ...]], escalate: bool = True
    ) -> None:
        self.op, self.inputs, self.escalate = op, inputs, escalate
        self._whole = whole
        self._all: tuple[Truth, ...] = ()
        self._batches: list[tuple[Truth, ...]] = []
        self._known: dict[int, tuple[int, int]] = {}  # row: its batch, and its place in that

    def all(self) -> tuple[Truth, ...]:
        """One :class:`Truth` per output."""
        self._all = self._all or self._whole()
        return self._all

    def of(self, rows: Sequence[int]) -> tuple[Truth, ...]:
        """Of at least one row, in the order asked for."""
        if self._all:
            return tuple(truth.at(list(rows)) for truth in self._all)
        missing = [row for row in dict.fromkeys(rows) if row not in self._known]
        if missing:
            self._known |= {row: (len(self._batches), k) for k, row in enumerate(missing)}
            self._batches.append(compute_truth(self.op, self.inputs.at(np.array(missing)), escalate=self.escalate))
        places: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            places.setdefault(self._known[row][0], []).append(place)
        order = np.argsort([place for some in places.values() for place in some])
        parts = [
            [truth.at([self._known[rows[place]][1] for place in some]) for truth in self._batches[batch]]
            for batch, some in places.items()
        ]
        return tuple(Truth.concatenate(same).at(order) for same in zip(*parts, strict=True))


class Draft:
    """Enclosures that get sharper, what they round to, and which elements are still open; lists are by output."""

    def __init__(self, op: Operator, inputs: Inputs) -> None:
        self.op, self.inputs = op, inputs
        self.visible = op.visible(inputs)
        shapes = [output.shape(inputs) for output in op.outputs]
        self.enclosures = [Enclosure.empty(shape) for shape in shapes]
        self.rounded = [np.zeros(shape, inputs.fmt.dtype) for shape in shapes]
        self.decided = [np.ones(shape, np.bool_) for shape in shapes]
        shown = [self.visible.any(axis=-1) if output.per_row else self.visible for output in op.outputs]
        self.open = [(c == ElementClass.VALUE) & s for c, s in zip(op.classify(inputs, "zero"), shown, strict=True)]
        self.grounds: set[Ground] = set()
        self.arithmetics: set[str] = set()

    def open_rows(self) -> list[int]:
        rows = [o.reshape(len(o), -1).any(axis=-1) for o in self.open if o.size]
        return np.flatnonzero(np.logical_or.reduce(rows)).tolist() if rows else []

    def enclose_all(self) -> None:
        """Every row at once, grouped by how many elements are visible, so that each group is an array."""
        assert VECTORISED is not None
        rows = np.array(self.open_rows(), dtype=np.intp)
        counts = self.visible[rows].sum(axis=-1)
        shared = shared_arguments(self.op, self.inputs)
        precise = self.op.rational or self.inputs.fmt.precision > SINGLE_WORDS
        for count in np.unique(counts).tolist():
            some = rows[counts == count]
            _, columns = np.nonzero(self.visible[some])
            places = some[:, None], columns.reshape(len(some), count)
            where = some if count == self.inputs.x.shape[-1] else places
            arguments = {**row_wise_arguments(self.op, self.inputs, where), **shared}
            results = VECTORISED.enclose(self.op.define, arguments, precise)
            for enclosure, output, result in zip(self.enclosures, self.op.outputs, results, strict=True):
                enclosure.put(some if output.per_row else places, result[:, 0] if output.per_row else result)
        self._note(VECTORISED, rows)

    def decide(self, arithmetic: Arithmetic) -> None:
        """Every open element, with as much precision as it takes."""
        rows = self.open_rows()
        for r in rows:
            row = Row(self.op, self.inputs, r, self.visible[r])
            results = arithmetic.evaluate(self.op.define, row.arguments(), FIRST_PRECISION)
            for enclosure, open_, place, result in zip(self.enclosures, self.open, row.places(), results, strict=True):
                wanted = open_[place]
                enclosure.put(_within(place, wanted), result.enclosure()[wanted])
        self._note(arithmetic, rows)
        for r in self.open_rows():
            self._decide(Row(self.op, self.inputs, r, self.visible[r]), arithmetic)

    def _note(self, arithmetic: Any, rows: Any) -> None:
        """New enclosures of some rows: what they round to, and what is open still."""
        if not len(rows):
            return
        self.grounds.add(arithmetic.ground)
        self.arithmetics.add(arithmetic.name)
        for k, enclosure in enumerate(self.enclosures):
            part, fmt = enclosure[rows], self.inputs.fmt
            self.rounded[k][rows], decided = round_enclosure(part, fmt)
            self.decided[k][rows] = decided | ~self.open[k][rows]
            settled = decided & _is_sharp(part, fmt)
            if arithmetic is VECTORISED:
                settled &= ~_unit_is_open(part, fmt)
            self.open[k][rows] &= ~settled

    def _decide(self, row: "Row", arithmetic: Arithmetic) -> None:
        """Evaluate a row with more and more precision, until its open elements are settled."""
        arguments, places, fmt = row.arguments(), row.places(), self.inputs.fmt
        wanted = row.open_elements(self.open)
        precision = FIRST_PRECISION
        while wanted:
            precision *= 2
            results = arithmetic.evaluate(self.op.define, arguments, precision)
            intervals = {(k, i): results[k].interval(i) for k, i in wanted}
            wanted = [place for place, ends in intervals.items() if not _settled(*ends, fmt, precision)]
            for k, i in intervals.keys() - wanted:
                low, high = intervals[k, i]
                where = row.index if self.op.outputs[k].per_row else (row.index, places[k][1][i])
                self.enclosures[k].put(where, Enclosure.around((low + high) / 2, (high - low) / 2))
                self.rounded[k][where] = _round_interval(low, high, fmt)
                self.decided[k][where] = True

    def truths(self) -> tuple[Truth, ...]:
        ground, names = Ground.weakest(self.grounds), frozenset(self.arithmetics)
        parts = zip(self.enclosures, self.rounded, self.decided, strict=True)
        return tuple(Truth(*part, ground, names) for part in parts)


def row_wise_arguments(op: Operator, inputs: Inputs, where: Any) -> dict[str, Any]:
    """The definition's arguments that have a row for each row, exactly: those of the elements ``where``."""
    names = ["x", *(name for name in op.optional if name in ROW_WISE and name != "mask")]
    with np.errstate(invalid="ignore"):  # signalling NaN
        return {name: inputs.arrays[name][where].astype(np.float64) for name in names}


def shared_arguments(op: Operator, inputs: Inputs) -> dict[str, Any]:
    """Its other arguments, exactly: weight, bias and parameters."""
    arrays, parameters = inputs.arrays, inputs.parameters
    shared = {k: arrays[k].astype(np.float64) for k in op.optional if k not in ROW_WISE and k in arrays}
    return {**shared, **{name: float(parameters[name]) for name in op.parameters}}


@dataclass(frozen=True)
class Row:
    """One row of the inputs and its visible elements, (n,)."""

    op: Operator
    inputs: Inputs
    index: int
    visible: Mask

    def arguments(self) -> dict[str, Any]:
        """The definition's: the visible elements, the other inputs and the parameters, exactly."""
        own = row_wise_arguments(self.op, self.inputs, (self.index, self.visible))
        return {**own, **shared_arguments(self.op, self.inputs)}

    def places(self) -> list[Any]:
        """Where the results belong: a per-row output at its row, the others where the row is visible."""
        r = self.index
        return [
            (slice(r, r + 1),) if output.per_row else (r, np.flatnonzero(self.visible)) for output in self.op.outputs
        ]

    def open_elements(self, still_open: list[Mask]) -> list[tuple[int, int]]:
        """Elements that are not decided yet, as (output, index into the row's results)."""
        return [
            (k, i)
            for k, (o, place) in enumerate(zip(still_open, self.places(), strict=True))
            for i in np.flatnonzero(o[place]).tolist()
        ]


def _within(place: tuple[Any, ...], wanted: Mask) -> tuple[Any, ...]:
    """The wanted ones of a row's places."""
    if len(place) == 1:
        return place if wanted.all() else (slice(0),)
    return place[0], place[1][wanted]


def _is_sharp(enclosure: Enclosure, fmt: Format) -> Mask:
    unit = np.clip(ulp_exponents(enclosure, fmt) - enclosure.exponent, -1000, 1000)
    sharp: Mask = enclosure.radius <= SHARP * np.exp2(unit)
    return sharp


def _unit_is_open(enclosure: Enclosure, fmt: Format) -> Mask:
    """Whether an enclosure reaches a power of two, where ulp(y) doubles: 1 - e^-40 has half the unit of 1.

    Asked of double words only. What 128 bits still do not tell from a power of two has the unit of its centre.
    """
    lo = np.where(np.signbit(enclosure.hi) == np.signbit(enclosure.lo), 1.0, -1.0) * np.abs(enclosure.lo)
    size = np.abs(enclosure.hi)
    distance = np.minimum(np.abs(size - 0.5 + lo), np.abs(1.0 - size - lo))
    is_open: Mask = (enclosure.radius > 0) & (distance <= enclosure.radius) & (enclosure.exponent > fmt.emin)
    return is_open


def _settled(low: Fraction, high: Fraction, fmt: Format, precision: int) -> bool:
    sharp = high - low <= Fraction(SHARP) * ulp((low + high) / 2, fmt)
    return precision >= LAST_PRECISION or (sharp and round_fraction(low, fmt) == round_fraction(high, fmt))


def _round_interval(low: Fraction, high: Fraction, fmt: Format) -> float:
    """What every point rounds to; where the ends differ, the tie between them, which goes to even."""
    below, above = round_fraction(low, fmt), round_fraction(high, fmt)
    if below == above or not np.isfinite([below, above]).all():
        return above if high > -low else below
    return round_fraction((Fraction(below) + Fraction(above)) / 2, fmt)
