"""Calling an implementation: fresh arrays in, checked arrays out, and every way it can misbehave as a reason."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_impls.backends import BACKENDS, Backend
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation
from oracles.catalogue import operator_named
from oracles.formats import Array, Format
from oracles.operator import Inputs

# Words before and after an ``out`` buffer, and the bits they and the unwritten buffer hold: a NaN with a payload that
# no computation produces, so that an element still holding it was not written.
GUARD_WORDS = 64


@dataclass(frozen=True)
class Run:
    """What came of one call: outputs, or the reason why there are none."""

    outputs: tuple[Array, ...] = ()
    reason: Reason | None = None
    detail: str = ""


# How an implementation gets run: in this process by :func:`call`, or in a child by ``gpu_impls.isolation.Isolated``.
Runner = Callable[..., Run]


def unsupported(implementation: Implementation, inputs: Inputs) -> str | None:
    """Why this call is outside of what the implementation offers, or None."""
    agreed = implementation.contract
    if inputs.fmt.name not in agreed.dtypes:
        return f"{inputs.fmt.name} is not among its dtypes ({', '.join(agreed.dtypes)})"
    if not agreed.takes_length(inputs.x.shape[-1]):
        return f"n = {inputs.x.shape[-1]} is outside of min_length, max_length"
    for name in inputs.arrays:
        if name != "x" and name not in implementation.parameters:
            return f"it has no {name} parameter"
    return BACKENDS[agreed.backend].missing()


def refused(backend: Backend, arrays: dict[str, Array], with_out: bool) -> str | None:
    """Why the backend cannot be handed these arrays as they lie in memory, or an ``out`` buffer; None if it can."""
    if with_out and not backend.writable:
        return f"{backend.name} arrays are immutable: no out buffer"
    return next(filter(None, map(backend.refuses, arrays.values())), None)


def call(
    implementation: Implementation,
    inputs: Inputs,
    arrange: Callable[[Array], Array] = np.array,
    with_out: bool = False,
) -> Run:
    """Run ``implementation`` on copies of ``inputs``.

    Args:
        arrange: lays out the copy of ``x``; a C-contiguous, writable array by default.
        with_out: hand it a poisoned ``out`` buffer between guard words (it must take one).
    """
    reason = unsupported(implementation, inputs)
    if reason:
        return Run(reason=Reason.NOT_SUPPORTED, detail=reason)
    backend = BACKENDS[implementation.contract.backend]
    arrays = {name: arrange(a) if name == "x" else np.array(a) for name, a in inputs.arrays.items()}
    reason = refused(backend, arrays, with_out)
    if reason:
        return Run(reason=Reason.NOT_SUPPORTED, detail=reason)
    expected = [(o.shape(inputs), inputs.fmt) for o in operator_named(implementation.op).outputs]
    guarded = [Guarded(*e) for e in expected] if with_out else []
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            returned = _hand_over(implementation, backend, arrays, inputs.parameters, guarded)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a kernel may raise anything; that is its outcome, not ours
        told = _told(error)
        return Run(reason=Reason.CRASHED if backend.ruined_by(told) else Reason.RAISED, detail=told)
    outputs = tuple(g.buffer for g in guarded) or returned
    problem = _input_changed(inputs, arrays) or _wrong_outputs(outputs, expected) or _wrong_buffers(guarded, returned)
    if problem:
        return problem
    return Run(tuple(np.array(o) for o in outputs))


def _hand_over(
    implementation: Implementation,
    backend: Backend,
    arrays: dict[str, Array],
    parameters: Mapping[str, float],
    guarded: list["Guarded"],
) -> tuple[Any, ...]:
    """Call it with the backend's arrays, bring back what it did to them, and turn what it returns into ours; None
    stays, all else is foreign."""
    lent = {name: backend.lend(a) for name, a in arrays.items()}
    buffers = [backend.lend(g.buffer) for g in guarded]
    keywords: dict[str, Any] = {k: v.native for k, v in lent.items() if k != "x"}
    keywords |= {k: v for k, v in parameters.items() if k in implementation.parameters}
    if buffers:
        keywords["out"] = buffers[0].native if len(buffers) == 1 else tuple(b.native for b in buffers)
    result = implementation.function(lent["x"].native, **keywords)
    for handed in (*lent.values(), *buffers):
        handed.bring_back()
    returned = result if isinstance(result, tuple) else (result,)
    ours = [backend.to_numpy(r) for r in returned]
    return tuple(Foreign(r) if o is None and r is not None else o for r, o in zip(returned, ours, strict=True))


@dataclass(frozen=True)
class Foreign:
    """Something returned that is not an array of the backend."""

    value: Any


class Guarded:
    """An ``out`` buffer that knows whether it was filled, and filled alone."""

    def __init__(self, shape: tuple[int, ...], fmt: Format) -> None:
        self.fmt = fmt
        size = int(np.prod(shape))
        self.poison = int(fmt.bits(np.array([np.nan], fmt.dtype))[0]) | 0x2B
        words = np.full(size + 2 * GUARD_WORDS, self.poison, dtype=fmt.bits_dtype)
        self.whole = words.view(fmt.dtype)
        self.buffer = self.whole[GUARD_WORDS : GUARD_WORDS + size].reshape(shape)

    def problem(self) -> Reason | None:
        touched = self.whole.view(self.fmt.bits_dtype) != self.poison
        if touched[:GUARD_WORDS].any() or touched[-GUARD_WORDS:].any():
            return Reason.GUARD
        return None if touched[GUARD_WORDS:-GUARD_WORDS].all() else Reason.UNWRITTEN


def _input_changed(inputs: Inputs, arrays: dict[str, Array]) -> Run | None:
    for name, array in arrays.items():
        # A layout may replace x by another array of the same values, but it was laid out from this one.
        same = array.shape == inputs.arrays[name].shape and array.tobytes() == inputs.arrays[name].tobytes()
        if not same:
            return Run(reason=Reason.WROTE_INPUT, detail=f"{name} changed during the call")
    return None


def _wrong_outputs(outputs: tuple[Any, ...], expected: list[tuple[tuple[int, ...], Format]]) -> Run | None:
    if len(outputs) != len(expected):
        return Run(reason=Reason.WRONG_SHAPE, detail=f"returned {len(outputs)} outputs, expected {len(expected)}")
    for output, (shape, fmt) in zip(outputs, expected, strict=True):
        if not isinstance(output, np.ndarray) or output.shape != shape or output.dtype != fmt.dtype:
            return Run(reason=Reason.WRONG_SHAPE, detail=f"returned {_describe(output)}, expected {fmt.name} {shape}")
    return None


def _wrong_buffers(guarded: list[Guarded], returned: tuple[Any, ...]) -> Run | None:
    for g in guarded:
        problem = g.problem()
        if problem:
            return Run(reason=problem, detail="through the out parameter")
    for g, r in zip(guarded, returned, strict=False):
        if r is not None and (not isinstance(r, np.ndarray) or r.tobytes() != g.buffer.tobytes()):
            return Run(reason=Reason.UNWRITTEN, detail="what it returned is not what it wrote into out")
    return None


def _told(error: BaseException) -> str:
    """The error in words that every file can hold."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ raises
        text = type(error).__name__
    return text.encode(errors="backslashreplace").decode()


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    return f"a {type(value.value if isinstance(value, Foreign) else value).__name__}"
