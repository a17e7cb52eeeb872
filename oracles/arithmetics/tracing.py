"""Traced values: a definition, or a bound, run once with nodes in the place of numbers, to be written as device code.

Definitions see :class:`Enclosed` nodes, which do what double words do. Bounds are written for NumPy's arrays and see
:class:`Plain` nodes, float64 on the device, which take part in NumPy's functions (NEP 13 and 18); the row's length and
every other number is told them as it is, and becomes an argument of the kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


@dataclass(frozen=True, eq=False)
class Node:
    """One value.

    Attributes:
        code: C++ with ``{0}``, ``{1}`` for the arguments; of a reduction, what it begins with.
        arguments: what it is computed from.
        reduction: "sum", "max" or "rescaled" of its arguments over the row, or "".
        varies: it has a value for every element, not one for the row.
        type: of the value, on the device.
    """

    code: str
    arguments: "tuple[Node, ...]" = ()
    reduction: str = ""
    varies: bool = False
    type: ClassVar[str]

    @cached_property
    def text(self) -> str:
        """The whole expression: nodes of the same text are the same value."""
        arguments = [a.text for a in self.arguments]
        return f"{self.reduction}({', '.join(arguments)})" if self.reduction else self.code.format(*arguments)

    @cached_property
    def stage(self) -> int:
        """After how many loops over the row it is known."""
        return max((a.stage for a in self.arguments), default=0) + bool(self.reduction)


class Enclosed(Node):
    """A number in double words."""

    type = "Words"

    @property
    def shape(self) -> "tuple[None, Enclosed]":
        """Rows are told apart nowhere; their length is a number like others."""
        return None, Enclosed("exact(n)")

    def __add__(self, other: Any) -> "Enclosed":
        return call("add", self, other)

    def __radd__(self, other: Any) -> "Enclosed":
        return call("add", other, self)

    def __sub__(self, other: Any) -> "Enclosed":
        return call("subtract", self, other)

    def __rsub__(self, other: Any) -> "Enclosed":
        return call("subtract", other, self)

    def __mul__(self, other: Any) -> "Enclosed":
        return call("multiply", self, other)

    def __rmul__(self, other: Any) -> "Enclosed":
        return call("multiply", other, self)

    def __truediv__(self, other: Any) -> "Enclosed":
        return call("divide", self, other)

    def __pow__(self, power: int) -> "Enclosed":
        return self if power == 1 else self * self ** (power - 1)


def call(function: str, *arguments: Any) -> Enclosed:
    """A device function of nodes and numbers."""
    nodes = tuple(a if isinstance(a, Node) else Enclosed(f"exact({float(a)!r})") for a in arguments)
    places = ", ".join(f"{{{i}}}" for i in range(len(nodes)))
    return Enclosed(f"{function}({places})", nodes, varies=any(a.varies for a in nodes))


class Tracer:
    """The operations of definitions, on nodes."""

    def exp(self, v: Enclosed) -> Enclosed:
        return call("exponential", v)

    def log(self, v: Enclosed) -> Enclosed:
        return call("log_of", v)

    def log1p(self, v: Enclosed) -> Enclosed:
        return call("log1p_of", v)

    def sqrt(self, v: Enclosed) -> Enclosed:
        return call("square_root", v)

    def sum(self, v: Enclosed) -> Enclosed:
        return Enclosed("exact(0.0)", (v,), reduction="sum")

    def max(self, v: Enclosed) -> Enclosed:
        return Enclosed("exact(-INFINITY)", (v,), reduction="max")

    def is_max(self, v: Enclosed) -> Enclosed:
        return call("is_equal", v, self.max(v))


# What NumPy's functions are on the device. A boolean is 1 or 0.
_FUNCTIONS: dict[Callable[..., Any], str] = {
    np.add: "{0} + {1}",
    np.subtract: "{0} - {1}",
    np.multiply: "{0} * {1}",
    np.true_divide: "{0} / {1}",
    np.negative: "-{0}",
    np.absolute: "fabs({0})",
    np.maximum: "larger({0}, {1})",
    np.minimum: "-larger(-{0}, -{1})",
    np.exp: "exp({0})",
    np.expm1: "expm1({0})",
    np.log: "log({0})",
    np.log1p: "log1p({0})",
    np.log2: "log2_of({0})",
    np.sqrt: "sqrt({0})",
    np.ceil: "ceil({0})",
    np.ldexp: "{0} * power_of_two(max(int({1}), -1022))",
    np.greater: "{0} > {1}",
    np.less: "{0} < {1}",
    np.equal: "{0} == {1}",
    np.isfinite: "isfinite({0})",
    np.isneginf: "{0} == -INFINITY",
    np.bitwise_and: "{0} != 0 && {1} != 0",
    np.bitwise_or: "{0} != 0 || {1} != 0",
    np.logical_or: "{0} != 0 || {1} != 0",
    np.invert: "{0} == 0",
    np.where: "{0} != 0 ? {1} : {2}",
    np.zeros_like: "0.0",
}


@dataclass(frozen=True, eq=False)
class Trace:
    """What the nodes of one tracing share: the row's length, and the numbers they met, in order of appearance."""

    n: int
    numbers: list[float] = field(default_factory=list)

    def row(self, code: str) -> "Plain":
        """An input: its element ``[i]``."""
        return Plain(code, varies=True, trace=self)

    def node(self, value: Any) -> "Plain":
        """A number, or an array that is the same one throughout; a node as it is.

        Raises:
            TypeError: anything else.
        """
        if isinstance(value, Plain):
            return value
        array = np.asarray(value)
        first = array.flat[0] if array.size else None
        if first is None or array.dtype.kind not in "biuf" or not (array == first).all():
            raise TypeError(f"{value!r} in a traced computation: expected a number")
        if float(first) not in self.numbers:
            self.numbers.append(float(first))
        return Plain(f"number_{self.numbers.index(float(first))}", trace=self)


@dataclass(frozen=True, eq=False)
class Plain(Node, NDArrayOperatorsMixin):
    """A float64 of one row's, or of each element's, as NumPy's code for (rows, n) and (rows, 1) sees it."""

    trace: Trace = field(kw_only=True)
    type = "double"
    dtype: ClassVar[Any] = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return 1, self.trace.n

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        raise TypeError(f"the truth of a traced value decides what is computed: {self.text}")

    def astype(self, dtype: Any) -> "Plain":
        """float64 holds all of the formats that are traced. Raises ``TypeError`` for anything narrower."""
        if np.dtype(dtype) != self.dtype:
            raise TypeError(f"a traced value as {np.dtype(dtype)}: expected float64")
        return self

    def __getitem__(self, where: Any) -> "Plain":
        """``[:, :1]``, an input's first element; ``[:, 0]`` and ``[:, None]`` of one value a row.

        Raises:
            TypeError: another index.
        """
        if where == (slice(None), slice(None, 1)) and self.varies and not self.arguments:
            return Plain(self.code.replace("[i]", "[0]"), trace=self.trace)
        if where in ((slice(None), 0), (slice(None), None)) and not self.varies:
            return self
        raise TypeError(f"[{where}] of a traced value, {self.text}")

    def __array_ufunc__(self, function: Any, method: str, *arguments: Any, out: Any = None, **how: Any) -> Any:
        """A result in place, of ``|=``, is a new value."""
        in_place = out is None or out == (arguments[0],)
        return self._apply(function, arguments) if method == "__call__" and in_place and not how else NotImplemented

    def __array_function__(self, function: Any, types: Any, arguments: Any, how: Any) -> Any:
        indices = function is np.where and len(arguments) == 1
        return NotImplemented if how or indices else self._apply(function, arguments)

    def _apply(self, function: Any, arguments: Any) -> Any:
        if function is np.frexp:  # its mantissa is nowhere asked for; its exponent is a double too
            return None, self._call("exponent_of({0})", arguments)
        if function is np.power:
            base, power = arguments
            if power not in (1, 2, 3):
                raise TypeError(f"a traced value to the power of {power}: expected 1, 2 or 3")
            return base if power == 1 else base * base ** (power - 1)
        if function is np.true_divide and not self.trace.node(arguments[1]).varies:  # once for the row
            return arguments[0] * self._call("1.0 / {0}", arguments[1:])
        return self._call(_FUNCTIONS[function], arguments) if function in _FUNCTIONS else NotImplemented

    def _call(self, code: str, arguments: Any) -> "Plain":
        nodes = tuple(self.trace.node(a) for a in arguments)
        return Plain(f"({code})", nodes, varies=any(a.varies for a in nodes), trace=self.trace)

    def reduce(self, kind: str, first: str, axis: int, *others: "Plain") -> "Plain":
        """Over the row.

        Raises:
            TypeError: another axis, or a value that is one for the row already.
        """
        if axis != -1 or not self.varies:
            raise TypeError(f"{kind} of a traced value over axis {axis}: expected the row's elements, over axis -1")
        return Plain(first, (self, *others), reduction=kind, trace=self.trace)

    def sum(self, axis: int, keepdims: bool = False) -> "Plain":
        return self.reduce("sum", "0.0", axis)

    def max(self, axis: int, keepdims: bool = False, initial: float = -np.inf) -> Any:
        return self._apply(np.maximum, (self.reduce("max", "-INFINITY", axis), initial))

    def min(self, axis: int, keepdims: bool = False, initial: float = np.inf) -> Any:
        return -(-self).max(axis, keepdims, -initial)

    def any(self, axis: int, keepdims: bool = False) -> Any:
        return self.max(axis) > 0

    def all(self, axis: int, keepdims: bool = False) -> Any:
        return self.min(axis) > 0

    def rescaled(self, s: "Plain") -> "Plain":
        """Weights ``s`` by how often a running maximum of this grows after them (oracles/logsumexp.py, both ways)."""
        return self.reduce("rescaled", "0.0", -1, s)
