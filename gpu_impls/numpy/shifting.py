"""The shift of the softmax family: exp(x - m) never overflows when m is the maximum, or the maximum so far.

A row is summarised by a pair (m, l): m the maximum, l = sum exp(x - m). Two pairs merge into one (Milakov and
Gimelshein, Online normalizer calculation for softmax, 2018):

    m = max(m1, m2);   l = l1 exp(m1 - m) + l2 exp(m2 - m)

The empty pair is (-inf, 0). (-inf) - (-inf) is NaN, so a maximum of -inf is replaced by 0 where it is
subtracted, and there only: exp(-inf - 0) = 0 is what a row of nothing weighs. NaN and +inf need no care: they
make l NaN by IEEE.
"""

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from gpu_impls.numpy.summation import pairwise_sum


def row_maximum(x: np.ndarray) -> np.ndarray:
    """``(rows,)``; -inf for a row of nothing, NaN wherever a NaN stands."""
    return np.max(x, axis=-1, initial=-np.inf)


def subtractable(m: np.ndarray) -> np.ndarray:
    """``m`` with 0 in place of -inf."""
    return np.where(np.isneginf(m), m.dtype.type(0), m)


def exponentials(x: np.ndarray, m: np.ndarray) -> np.ndarray:
    """exp(x - m) for every element of ``(rows, n)``, at most 1."""
    return np.exp(x - subtractable(m)[:, None])


def running_states(
    x: np.ndarray,
    tile: int,
    start: float = -np.inf,
    rescale: Callable[[np.ndarray], np.ndarray] = np.exp,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(m, l) before the first column and after each tile of columns; the last one describes the row.

    1, 3, 2 by element (``tile=1``): (-inf, 0), (1, 1), (3, 1.1353353), (3, 1.5032147).

    Args:
        x: ``(rows, n)`` in the working format.
        tile: columns taken at once; the last tile may be shorter.
        start: the maximum of no elements. Only a faulty implementation has another than -inf.
        rescale: what l is multiplied by when the maximum rises by d, as a function of -d. Likewise.
    """
    rows, n = x.shape
    m, total = np.full(rows, start, x.dtype), np.zeros(rows, x.dtype)
    yield m, total
    for first in range(0, n, tile):
        part = x[:, first : first + tile]
        risen = np.maximum(m, row_maximum(part))
        total = total * rescale(m - subtractable(risen)) + pairwise_sum(exponentials(part, risen))
        m = risen
        yield m, total


def running_state(x: np.ndarray, tile: int, **variant) -> tuple[np.ndarray, np.ndarray]:
    """(m, l) of the whole row, by :func:`running_states`."""
    (last,) = deque(running_states(x, tile, **variant), maxlen=1)
    return last


def nonzero(total: np.ndarray) -> np.ndarray:
    """``total`` with 1 in place of 0: a row of nothing then divides to 0, and has log 0."""
    return np.where(total == 0, total.dtype.type(1), total)
