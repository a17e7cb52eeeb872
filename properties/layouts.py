"""Layouts: the same values in unusual memory.

Each layout copies ``x`` of shape ``(rows, n)`` and returns a view of the copy, equal to ``x`` in value (except
``stride0``). Views are writable, so that a kernel that writes into its input is seen (again except ``stride0``);
memory between their elements holds NaN, so that one that reads past the strides is seen as well.
"""

from collections.abc import Callable

import numpy as np

from oracles.formats import Array


def contiguous(x: Array) -> Array:
    """Row after row, as most kernels expect it."""
    return np.array(x, order="C")


def sliced(x: Array) -> Array:
    """Every second column of the inner rows of an array that is larger on every side."""
    rows, n = x.shape
    wide = np.full((rows + 2, 2 * n + 2), np.nan, dtype=x.dtype)
    view = wide[1 : rows + 1, 1 : 2 * n + 1 : 2]
    view[...] = x
    return view


def transposed(x: Array) -> Array:
    """Column after column: a row's elements are ``rows`` apart."""
    return np.array(x.T, order="C").T


def reversed_(x: Array) -> Array:
    """Backwards on both axes: negative strides."""
    return np.array(x[::-1, ::-1], order="C")[::-1, ::-1]


def stride0(x: Array) -> Array:
    """The first row, seen ``rows`` times at one place. Replaces the other rows by it, and is read-only, for a write
    to one row would change them all."""
    return np.broadcast_to(np.array(x[:1]), x.shape)


def offset(x: Array) -> Array:
    """Contiguous, but one element past where memory begins: too near for loads of several elements at once."""
    memory = np.full(x.size + 1, np.nan, dtype=x.dtype)
    view: Array = memory[1:].reshape(x.shape)
    view[...] = x
    return view


def misaligned(x: Array) -> Array:
    """Contiguous, but one byte past an aligned address."""
    memory = np.zeros(x.nbytes + 1, dtype=np.uint8)
    view: Array = np.ndarray(x.shape, dtype=x.dtype, buffer=memory, offset=1)
    view[...] = x
    return view


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": contiguous,
    "sliced": sliced,
    "transposed": transposed,
    "reversed": reversed_,
    "stride0": stride0,
    "offset": offset,
    "misaligned": misaligned,
}
