"""Recorded rows: activations of a real transformer that ship with the package, and the user's own.

A block is a set of rows of one length with what belongs to them. ``real_rows`` come from all-MiniLM-L6-v2 (origin and
licence: properties/data/README.md); ``user_rows`` from any ``.npz`` file: every numeric array in it is a block, its
last axis the row, but for one-dimensional arrays named ``weight`` and ``bias``, which go with the blocks of their
length.
"""

import functools
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from oracles.enclosure import Floats

EVERY_FAMILY = frozenset({"sum", "softmax", "norm"})


@dataclass(frozen=True)
class Block:
    """Rows (rows, n), finite or not, with weight and bias (n,) and eps where the recording has them."""

    name: str
    rows: Floats
    families: frozenset[str] = EVERY_FAMILY
    weight: Floats | None = None
    bias: Floats | None = None
    eps: float | None = None


@functools.cache
def real_blocks() -> dict[str, Block]:
    """The LayerNorm inputs, attention scores and GELU inputs of the shipped recording."""
    with files("properties").joinpath("data/minilm_rows.npz").open("rb") as file, np.load(file) as data:
        arrays = {name: data[name].astype(np.float64) for name in ("ln_x", "ln_gamma", "ln_beta", "logits", "gelu_x")}
    norms = [
        Block(f"ln_x{k}", rows, frozenset({"norm", "sum"}), weight, bias, eps=1e-12)
        for k, (rows, weight, bias) in enumerate(
            zip(arrays["ln_x"], arrays["ln_gamma"], arrays["ln_beta"], strict=True)
        )
    ]
    logits = Block("logits", _as_rows(arrays["logits"]), frozenset({"softmax", "sum"}))
    gelu = Block("gelu_x", _as_rows(arrays["gelu_x"]), frozenset({"sum", "norm"}))
    return {block.name: block for block in (*norms, logits, gelu)}


_USER: dict[str, Block] = {}


def load_user_rows(path: str) -> dict[str, Block]:
    """Make the arrays of an ``.npz`` file the regime ``user_rows``.

    Raises:
        ValueError: no such file, not an npz, or nothing numeric with rows in it.
    """
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:  # np.load may leave it open
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ValueError(f"no such file: {path} (expected an .npz written by numpy.savez)") from None
    except Exception as error:  # a dozen types, from NumPy, zipfile and zlib: it is the file that cannot be read
        raise ValueError(f"{path} is not a readable .npz file (write it with numpy.savez): {error}") from None
    numeric = {k: _widened(v) for k, v in arrays.items() if _is_numeric(v) and v.ndim and v.size}
    affine = {k: numeric.pop(k) for k in ("weight", "bias") if k in numeric and numeric[k].ndim == 1}
    _USER.clear()
    for name, values in numeric.items():
        rows = _as_rows(values)
        block = Block(_identifier(name), rows)
        if block.name in _USER:
            raise ValueError(f"{path} holds two arrays that are both block {block.name} in case IDs: rename {name!r}")
        fitting = {k: v for k, v in affine.items() if v.size == rows.shape[-1]}
        _USER[block.name] = replace(block, **fitting)
    if not _USER:
        found = ", ".join(f"{k}: {v.dtype} {v.shape}" for k, v in arrays.items()) or "nothing"
        raise ValueError(f"{path} holds no numeric array with rows (found {found})")
    return dict(_USER)


def block_named(regime: str, name: str) -> Block:
    """A block of ``real_rows`` or ``user_rows``. Raises ``ValueError`` listing the known ones."""
    blocks = real_blocks() if regime == "real_rows" else _USER
    if name not in blocks:
        hint = "" if blocks else "; give the file with --data"
        raise ValueError(f"{regime} has no block {name!r}: expected one of {', '.join(blocks) or 'none'}{hint}")
    return blocks[name]


# What NumPy reads bfloat16 back as: it does not know the name, only the size.
_SAVED_BFLOAT16 = np.dtype("V2")


def _is_numeric(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "fiu" or values.dtype == _SAVED_BFLOAT16


def _widened(values: NDArray[Any]) -> Floats:
    return (values.view(ml_dtypes.bfloat16) if values.dtype == _SAVED_BFLOAT16 else values).astype(np.float64)


def _as_rows(values: Floats) -> Floats:
    return values.reshape(-1, values.shape[-1])


def _identifier(name: str) -> str:
    """A block's name as part of a case ID."""
    return "".join(c if c.isalnum() or c in "_-." else "_" for c in name) or "_"
