"""Recorded rows: activations of a real transformer that ship with the package, and the user's own.

A block is a set of rows of one length with what belongs to them. ``real_rows`` come from all-MiniLM-L6-v2 (origin and
licence: properties/data/README.md); ``user_rows`` from any ``.npz`` file: every numeric array in it is a block, its
last axis the row, but for one-dimensional arrays named ``weight`` and ``bias``, which go with the blocks of their
length.
"""

import functools
import zipfile
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np

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
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ValueError(f"no such file: {path} (expected an .npz written by numpy.savez)") from None
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a readable .npz file (write it with numpy.savez): {error}") from None
    numeric = {k: v.astype(np.float64) for k, v in arrays.items() if v.dtype.kind in "fiuV" and v.ndim and v.size}
    affine = {k: numeric.pop(k) for k in ("weight", "bias") if k in numeric and numeric[k].ndim == 1}
    _USER.clear()
    for name, values in numeric.items():
        rows = _as_rows(values)
        block = Block(_identifier(name), rows)
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


def _as_rows(values: Floats) -> Floats:
    return values.reshape(-1, values.shape[-1])


def _identifier(name: str) -> str:
    """A block's name as part of a case ID."""
    return "".join(c if c.isalnum() or c in "_-." else "_" for c in Path(name).name)
