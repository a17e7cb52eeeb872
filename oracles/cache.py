"""Truths on disk, by digest: oracle values that take long are computed once per machine.

The key holds the operator, every input bit, the arithmetics and the bytes of the oracle's own source, so that a changed
definition never meets an old value. ``TRUEULP_CACHE`` names the folder (default ``$XDG_CACHE_HOME/trueulp``, that is
``~/.cache/trueulp``); an unwritable one only costs the time.
"""

import contextlib
import functools
import hashlib
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from oracles.enclosure import Enclosure, Ground
from oracles.formats import Format
from oracles.operator import Inputs, Operator
from oracles.truth import Truth, compute_truth, exact_arithmetic, is_fast

# Fewer elements are computed faster than they are looked up; more than so many would fill a disk.
WORTH_STORING = range(4096, 2**22)
# Not there, cut off while being written, or damaged: what np.load and zipfile answer to that.
_UNREADABLE = (OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile)


def truth_of(op: Operator, inputs: Inputs) -> tuple[Truth, ...]:
    """``compute_truth(op, inputs)``, from the cache where it is there."""
    if is_fast(inputs.fmt) or inputs.x.size not in WORTH_STORING:
        return compute_truth(op, inputs)
    path = folder() / f"{_key(op, inputs)}.npz"
    try:
        return _load(path, op, inputs.fmt)
    except _UNREADABLE:
        truths = compute_truth(op, inputs)
        with contextlib.suppress(OSError):  # a full or read-only disk
            _store(path, truths, inputs.fmt)
        return truths


def folder() -> Path:
    """Where truths are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("TRUEULP_CACHE") or Path(base) / "trueulp")


@functools.cache
def source_digest() -> str:
    """A hash of every file of this package."""
    h = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        h.update(path.read_bytes())
    return h.hexdigest()


def _key(op: Operator, inputs: Inputs) -> str:
    text = f"{op.name} {inputs.digest()} {exact_arithmetic(op).name} {source_digest()}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _store(path: Path, truths: tuple[Truth, ...], fmt: Format) -> None:
    """Write elsewhere first: two processes may compute the same truth, and a disk may be full."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {}
    for k, truth in enumerate(truths):
        e = truth.enclosure
        parts = {"hi": e.hi, "lo": e.lo, "exponent": e.exponent, "radius": e.radius, "bits": fmt.bits(truth.rounded)}
        parts["decided"] = truth.decided
        words = {"ground": truth.ground.value, "arithmetics": " ".join(sorted(truth.arithmetics))}
        arrays |= {f"{name}{k}": array for name, array in parts.items()}
        arrays |= {f"{name}{k}": np.array(word) for name, word in words.items()}
    with tempfile.TemporaryDirectory(dir=path.parent) as unfinished:
        written = Path(unfinished) / path.name
        np.savez(written, **arrays)
        written.replace(path)


def _load(path: Path, op: Operator, fmt: Format) -> tuple[Truth, ...]:
    with path.open("rb") as stream, np.load(stream) as file:  # np.load leaves the files it opens and cannot read open
        return tuple(
            Truth(
                Enclosure(*(file[f"{name}{k}"] for name in ("hi", "lo", "exponent", "radius"))),
                fmt.from_bits(file[f"bits{k}"]),
                file[f"decided{k}"],
                Ground(str(file[f"ground{k}"])),
                frozenset(str(file[f"arithmetics{k}"]).split(" ")),
            )
            for k in range(len(op.outputs))
        )
