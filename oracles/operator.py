"""The operator record, its inputs, and the facts about rows that definitions, classes and bounds share."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.arithmetics import Definition
from oracles.bounds import ErrorModel
from oracles.classes import Classes
from oracles.formats import Array, Format

Mask = NDArray[np.bool_]

# Inputs that have a row for every row of x; the others are shared by all.
ROW_WISE = ("x", "mask", "residual")


@dataclass(frozen=True)
class Inputs:
    """What a kernel and the oracle are given: arrays in the storage format, and the very same parameters.

    ``arrays`` holds ``x`` (rows, n) and, where present, ``mask`` bool (rows, n), ``residual`` (rows, n), ``weight`` and
    ``bias`` (n,);
    ``parameters`` holds ``eps``. ``hides_infinity``: an element of -inf counts as masked (softmax family).
    """

    fmt: Format
    arrays: Mapping[str, Array]
    parameters: Mapping[str, float] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process without what was derived and cached here."""
        return Inputs, (self.fmt, dict(self.arrays), dict(self.parameters))

    @property
    def x(self) -> Array:
        return self.arrays["x"]

    @property
    def mask(self) -> Array | None:
        return self.arrays.get("mask")

    def optional(self, name: str, default: float) -> Array:
        """Residual, weight or bias in the working precision of bounds, or ``default`` where there is none."""
        array = self.arrays.get(name)
        return self.wide.type(default) if array is None else array.astype(self.wide)

    @property
    def wide(self) -> np.dtype[Any]:
        """What conditions and bounds are computed in: their own rounding is far below a percent, and products of
        two inputs do not overflow. (np.longdouble has 15 exponent bits where float64 has 11.)"""
        return np.dtype(np.longdouble if self.fmt.dtype == np.float64 else np.float64)

    @cached_property
    def x64(self) -> NDArray[np.float64]:
        """x exactly, in float64. A signalling NaN, as raw bits may hold, is a NaN; a wider sum may overflow."""
        with np.errstate(invalid="ignore", over="ignore"):
            return self.x.astype(np.float64)

    @cached_property
    def visible(self) -> Mask:
        """Where an element takes part by the mask, (rows, n)."""
        return np.ones(self.x.shape, np.bool_) if self.mask is None else self.mask

    def any_visible(self, condition: Array) -> Mask:
        """Whether a row has a visible element for which ``condition`` holds, (rows, 1)."""
        return np.logical_or.reduce(condition & self.visible, axis=-1, keepdims=True)

    @cached_property
    def has_nan(self) -> Mask:
        return self.any_visible(np.isnan(self.x64))

    @cached_property
    def has_pos_inf(self) -> Mask:
        return self.any_visible(np.isposinf(self.x64))

    @cached_property
    def has_neg_inf(self) -> Mask:
        return self.any_visible(np.isneginf(self.x64))

    def rows(self, start: int, stop: int) -> "Inputs":
        """The same inputs with rows ``start`` to ``stop`` only."""
        return self.at(slice(start, stop))

    def at(self, rows: Any) -> "Inputs":
        """The same inputs with some rows only, given as an index of NumPy's."""
        cut = {k: v[rows] if k in ROW_WISE else v for k, v in self.arrays.items()}
        return Inputs(self.fmt, cut, self.parameters)

    def digest(self) -> str:
        """A short hash of every input bit."""
        h = hashlib.sha256(self.fmt.name.encode())
        for name, array in sorted(self.arrays.items()):
            h.update(f"{name}{array.shape}".encode())
            h.update(np.packbits(array).tobytes() if array.dtype == np.bool_ else self.fmt.bits(array).tobytes())
        for name, value in sorted(self.parameters.items()):
            h.update(f"{name}{float(value).hex()}".encode())
        return h.hexdigest()[:16]


@dataclass(frozen=True)
class Output:
    """One result: its name and whether it has one element per input element or one per row."""

    name: str
    per_row: bool

    def shape(self, inputs: Inputs) -> tuple[int, ...]:
        return inputs.x.shape[:1] if self.per_row else inputs.x.shape


@dataclass(frozen=True)
class Operator:
    """One operator's exact semantics. Everything is per row, the last axis.

    Attributes:
        name: the key used everywhere.
        family: "sum", "softmax" or "norm": operators to which the same rows are hostile.
        optional: names of the inputs beside ``x`` that a call may carry.
        parameters: names of scalar parameters (always passed).
        outputs: what it returns.
        define: the definition, evaluated on the visible elements of one finite row.
        visible: which elements take part, (rows, n).
        classify: what each output element must be, given the inputs and the ``masked_row`` convention.
        condition: absolute condition numbers K = sum_j |x_j dy_i/dx_j|, one array per output.
        bound: error before storage B, one array per output (oracles.bounds).
        undecided: rows about which the bound says nothing, (rows,), given B; None where there are none.
        rational: the definition needs no exp, log or sqrt.
        sources: where definition and bound come from.
    """

    name: str
    family: str
    optional: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[Output, ...]
    define: Definition
    visible: Callable[[Inputs], Mask]
    classify: Callable[[Inputs, str], tuple[Classes, ...]]
    condition: Callable[[Inputs, tuple[Array, ...]], tuple[Array, ...]]
    bound: Callable[[Inputs, tuple[Array, ...], ErrorModel], tuple[Array, ...]]
    rational: bool
    sources: tuple[str, ...]
    undecided: Callable[[Inputs, tuple[Array, ...], tuple[Array, ...]], Mask] | None = None
