"""The last step of both norms: weight and bias, one value per column."""

import numpy as np


def scale_and_shift(z: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None) -> np.ndarray:
    """z * weight + bias in the format of ``z``; each is optional. Two roundings, no fused multiply-add."""
    if weight is not None:
        z = z * weight.astype(z.dtype)
    if bias is not None:
        z = z + bias.astype(z.dtype)
    return z
