"""Which arithmetic an implementation works in; load and store, the only places where the format changes."""

import numpy as np

ALL_FORMATS = ("float32", "float16", "bfloat16", "float64")


def working_dtype(dtype: np.dtype) -> type[np.floating]:
    """float64 for float64 storage, float32 for everything narrower."""
    return np.float64 if dtype == np.float64 else np.float32


def load(x: np.ndarray, mask: np.ndarray | None = None, hidden: float = 0.0) -> np.ndarray:
    """A fresh C-contiguous copy of ``x`` in the working format, with ``hidden`` wherever the mask hides.

    Widening is exact. Hidden elements are replaced and never multiplied by the mask: 0 * NaN is NaN. The copy
    makes the bits independent of the layout of ``x``, and leaves the caller's array alone.
    """
    values = x.astype(working_dtype(x.dtype), order="C")
    if mask is not None:
        np.copyto(values, hidden, where=~mask)
    return values


def store(values: np.ndarray, like: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Round ``values`` once to the format of ``like``; into ``out`` if there is one, every element of it."""
    rounded = values.astype(like.dtype)
    if out is None:
        return rounded
    out[...] = rounded
    return out


def visible_count(values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Elements that take part in each row, ``(rows,)``, in the working format (float32: exact up to 2^24)."""
    rows, n = values.shape
    count = np.full(rows, n) if mask is None else np.count_nonzero(mask, axis=-1)
    return count.astype(values.dtype)
