"""A kernel to gate, the edits an engineer might make to it, and the command."""

import re
from pathlib import Path

from reporting import run

KERNEL = """
import numpy as np

from gpu_impls import implementation
from gpu_impls.numpy.precision import load, store
from gpu_impls.numpy.shifting import exponentials, nonzero, row_maximum
from gpu_impls.numpy.summation import pairwise_sum


@implementation("softmax", dtypes=("float32", "bfloat16"), name="[mine] *")
def mine(x, mask=None):
    values = load(x, mask, hidden=-np.inf)
    weights = exponentials(values, row_maximum(values))
    total = nonzero(pairwise_sum(weights))[:, None]
    return store(weights / total, like=x)
"""
BY_EXP2 = "np.exp2((values - np.where(np.isinf(m := row_maximum(values)), 0, m)[:, None]) * np.float32(1.442695))"
EDITS = {
    "unchanged": ("", ""),
    "reordered": ("pairwise_sum(weights)", "pairwise_sum(weights[:, ::-1])"),
    "rolled": ("pairwise_sum(weights)", "pairwise_sum(np.roll(weights, 1, axis=-1))"),
    "rounded once more": ("weights / total", "weights * (1 / total)"),
    "exp by exp2": ("exponentials(values, row_maximum(values))", BY_EXP2),
    "half-precision exp": ("row_maximum(values))", "row_maximum(values)).astype(np.float16).astype(values.dtype)"),
    "epsilon in the denominator": ("weights / total", "weights / (total + np.float32(2e-6))"),
    "raises": ("return", "raise RuntimeError\n    return"),
    "fewer dtypes": (', "bfloat16"', ","),
    "narrower domain": ('name="', 'domain=(1e-3, 1e3), name="'),
}
FEW = ("--regime", "near_ties", "--regime", "standard_normal")


def edited(folder: Path, edit: str) -> Path:
    file = folder / "mine.py"
    file.write_text(KERNEL.replace(*EDITS[edit]) if EDITS[edit][0] else KERNEL)
    return file


def gate(kernel: Path, *arguments: object) -> int:
    return run("gate", "--in-process", "--impls", kernel, "--baseline", kernel.parent / "b.json", *arguments)


def counted(printed: str) -> dict[str, int]:
    """The last line's counts."""
    counts = re.findall(r"(\d+) ([a-z ]+)", printed.strip().splitlines()[-1].rpartition(": ")[2])
    return {verdict: int(number) for number, verdict in counts}
