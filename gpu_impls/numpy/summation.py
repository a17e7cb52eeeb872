"""The orders in which a row can be summed. Each returns ``(rows,)`` in the format of its input.

A depth of h means that every element passes through at most h additions, so that the error is at most h u
sum|x| (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). All are loops over columns of
whole-array additions: a row never meets another row, so its bits do not depend on the batch.
"""

import numpy as np

WARP = 32


def sequential_sum(x: np.ndarray) -> np.ndarray:
    """Left to right. Depth n - 1. ``np.add.accumulate`` returns every partial sum: it cannot reorder."""
    if x.shape[-1] == 0:
        return np.zeros(x.shape[:-1], x.dtype)
    return np.add.accumulate(x, axis=-1)[..., -1]


def pairwise_sum(x: np.ndarray) -> np.ndarray:
    """A balanced tree: fold the upper half onto the lower until one column is left. Depth ceil(log2 n)."""
    n = x.shape[-1]
    if n == 0:
        return np.zeros(x.shape[:-1], x.dtype)
    while n > 1:
        half = n // 2
        folded = x[..., :half] + x[..., n - half : n]
        # An odd row has one element in the middle that waits for the next level.
        x = np.concatenate([folded, x[..., half : half + 1]], axis=-1) if n % 2 else folded
        n = x.shape[-1]
    return x[..., 0]


def lanes_of(x: np.ndarray, lanes: int = WARP) -> np.ndarray:
    """``(rows, n)`` dealt out as a warp reads it, ``(steps, rows, lanes)``: step s, lane t: x[s * lanes + t].

    The tail is padded with zeros, the identity of the sum.
    """
    rows, n = x.shape
    steps = -(-n // lanes)
    padded = np.zeros((rows, steps * lanes), x.dtype)
    padded[:, :n] = x
    return np.ascontiguousarray(padded.reshape(rows, steps, lanes).transpose(1, 0, 2))


def warp_sum(x: np.ndarray) -> np.ndarray:
    """As one GPU warp does it: each lane adds every 32nd element, then a shuffle tree adds the lanes.

    Depth ceil(n / 32) - 1 in the lanes and 5 in the tree: ``summation="lanes:32"``.
    """
    partial = np.zeros((x.shape[0], WARP), x.dtype)
    for step in lanes_of(x):
        partial = partial + step
    offset = WARP // 2
    while offset:  # __shfl_down_sync by 16, 8, 4, 2, 1; only lane 0 matters in the end
        partial = partial[:, :offset] + partial[:, offset : 2 * offset]
        offset //= 2
    return partial[:, 0]


def kahan_sum(x: np.ndarray) -> np.ndarray:
    """Left to right, with the rounding error of each addition carried into the next.

    Error at most (2 u + O(n u^2)) sum|x| (Kahan 1965; Higham, section 4.3): ``summation="compensated"``.
    """
    total = np.zeros(x.shape[0], x.dtype)
    carry = np.zeros_like(total)
    for column in np.ascontiguousarray(x.T):
        term = column - carry
        grown = total + term
        carry = (grown - total) - term
        # Once the total is inf the carry is inf - inf, and would turn the right answer, inf, into NaN.
        carry = np.where(np.isfinite(carry), carry, 0)
        total = grown
    return total
