"""What the tests of the harness share: implementations made on the spot, cases from plain lists, other processes.

Nothing here is registered, so nothing leaks from one test into another.
"""

import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gpu_impls.contract import contract
from gpu_impls.numpy.precision import load, store
from gpu_impls.numpy.shifting import exponentials, nonzero, row_maximum
from gpu_impls.numpy.summation import pairwise_sum
from gpu_impls.registry import Implementation, implementations
from oracles.formats import FORMATS
from oracles.rounding import round_floats
from properties.case import Case, explicit_case
from properties.oracle_check import verdict

Rows = Sequence[float] | Sequence[Sequence[float]]


def made(op: str, function: Callable[..., Any], dtypes: Sequence[str] = ("float32",), **claims: Any) -> Implementation:
    """``function`` as an implementation of ``op`` with these claims, without the registry."""
    name = claims.pop("name", None) or getattr(function, "__name__", type(function).__name__)
    return Implementation(op, name, function, contract(tuple(dtypes), **claims))


def registered(op: str, name: str) -> Implementation:
    """One of our own implementations."""
    (only,) = implementations((op,), (name,))
    return only


def claiming(implementation: Implementation, *dtypes: str, **claims: Any) -> Implementation:
    """The same function under another contract."""
    return made(implementation.op, implementation.function, dtypes or ("float32",), **claims)


def row_case(
    op: str,
    x: Rows,
    dtype: str = "float32",
    *,
    mask: Sequence[bool] | None = None,
    weight: Sequence[float] | None = None,
    bias: Sequence[float] | None = None,
    eps: float | None = None,
) -> Case:
    """An explicit case; values are rounded to the format, ``x`` and ``mask`` are one row or several."""
    fmt = FORMATS[dtype]
    arrays = {"x": round_floats(np.atleast_2d(np.asarray(x, np.float64)), fmt)}
    if mask is not None:
        arrays["mask"] = np.atleast_2d(np.asarray(mask, np.bool_))
    for name, values in (("weight", weight), ("bias", bias)):
        if values is not None:
            arrays[name] = round_floats(np.asarray(values, np.float64), fmt)
    return explicit_case(op, dtype, "standard_normal", arrays, eps)


def found(implementation: Implementation, *cases: Case) -> set[str]:
    """The properties that an implementation breaks on these cases."""
    return {finding.property for case in cases for finding in verdict(implementation, case).findings()}


def found_in(implementation: Implementation, cases: Iterable[Case], wanted: Iterable[str]) -> set[str]:
    """The same, no longer than until all that are ``wanted`` are there."""
    missing, seen = set(wanted), set()
    for case in cases:
        seen |= found(implementation, case)
        if missing and missing <= seen:
            break
    return seen


def softmax(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """A right one, in three passes."""
    values = load(x, mask, hidden=-np.inf)
    weights = exponentials(values, row_maximum(values))
    return store(weights / nonzero(pairwise_sum(weights))[:, None], like=x)


def total(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """A right sum."""
    return store(pairwise_sum(load(x, mask)), like=x)


def processes() -> str:
    """Every process's command line, at its full width: under pytest, COLUMNS would cut it."""
    return subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def comes_true(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether it does in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()
