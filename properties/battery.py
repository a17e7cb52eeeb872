"""The battery: the fixed cases of one (operator, dtype), the same for every implementation and on every machine.

Every regime at a few lengths, every length with a regime that says something there, masks, special values, and for
the norms weights, biases and other eps.
"""

import functools
from collections.abc import Iterator
from dataclasses import replace

from oracles.catalogue import operator_named
from properties.case import Case
from properties.recorded import Block, real_blocks
from properties.regimes import REGIMES, Regime

LENGTHS = (
    0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097,
    8192, 50257, 128256,
)  # fmt: skip

# Regimes whose cases are built by functions of their own.
OF_THEIR_OWN = ("lengths", "specials", "masks")
# Short rows, where the bounds are sharpest, and ones with a few warps and tiles.
REGIME_LENGTHS = (3, 10, 33, 300)
MASK_LENGTHS = (1, 9, 64, 300)
SPECIAL_LENGTHS = (1, 2, 5, 33, 70)
# Elements of one case of production size: its truth and its judgement take some 200 bytes each.
BLOCK = 2**19
_RMS_EPS = (1e-6, 0.0, 1e-5, 1.0)
EPS = {"rms_norm": _RMS_EPS, "fused_add_rms_norm": _RMS_EPS, "layer_norm": (1e-5, 1e-12, 0.0, 1.0)}


@functools.lru_cache(maxsize=4)  # one operator's dtypes: inputs and truths stay with the cases
def battery(op: str, dtype: str) -> tuple[Case, ...]:
    """Every case an implementation of ``op`` has to stand in ``dtype``."""
    return (
        *regime_cases(op, dtype, REGIME_LENGTHS),
        *length_cases(op, dtype),
        *special_cases(op, dtype),
        *mask_cases(op, dtype),
        *affine_cases(op, dtype),
        *real_cases(op, dtype, rows=8),
    )


def regimes_for(op: str) -> list[Regime]:
    """The regimes whose rows are meant for ``op``."""
    operator = operator_named(op)
    fitting = [regime for regime in REGIMES.values() if operator.family in regime.families]
    return [regime for regime in fitting if regime.name != "masks" or "mask" in operator.optional]


def regime_cases(op: str, dtype: str, lengths: tuple[int, ...], seed: int = 0, rows: int = 8) -> Iterator[Case]:
    """The regimes that are about values, at ``lengths``; half as many rows from a thousand elements on."""
    for regime in regimes_for(op):
        for n in lengths:
            if regime.fits(n) and regime.name not in OF_THEIR_OWN:
                yield Case(op, dtype, regime.name, rows=rows if n < 1000 else rows // 2, n=n, seed=seed)


def sized_cases(op: str, dtype: str, lengths: tuple[int, ...], rows: int, seed: int = 0) -> Iterator[Case]:
    """The same regimes with any number of rows: in cases that fit into memory, each a draw of its own."""
    for case in regime_cases(op, dtype, lengths):
        step = max(1, BLOCK // case.n)
        for k, start in enumerate(range(0, rows, step)):
            yield replace(case, rows=min(step, rows - start), seed=(seed << 20) + k)


def length_cases(op: str, dtype: str, longest: int = LENGTHS[-1], seed: int = 1) -> Iterator[Case]:
    """Every length; a dominant element in its last place shows at long n what the bound of any order would hide."""
    for n in LENGTHS:
        if n <= longest:
            yield Case(op, dtype, "lengths", rows=2 if n < 8192 else 1, n=n, seed=seed)
            if n > 4097:
                yield Case(op, dtype, "one_dominant", rows=3, n=n, seed=seed)
                yield Case(op, dtype, "late_maximum", rows=1, n=n, seed=seed)
    yield Case(op, dtype, "lengths", rows=0, n=8)


def special_cases(op: str, dtype: str, seed: int = 0) -> Iterator[Case]:
    for n in SPECIAL_LENGTHS:
        yield Case(op, dtype, "specials", rows=60, n=n, seed=seed)


def mask_cases(op: str, dtype: str, seed: int = 0) -> Iterator[Case]:
    """Every kind of mask at several places of the rows, which hide the most hostile contents."""
    if "mask" in operator_named(op).optional:
        for n in MASK_LENGTHS:
            yield Case(op, dtype, "masks", rows=72, n=n, seed=seed)
        yield Case(op, dtype, "masks", rows=2, n=0, mask="all")


def affine_cases(op: str, dtype: str, lengths: tuple[int, ...] = (3, 33, 300), seed: int = 0) -> Iterator[Case]:
    """Weights, biases and other eps, for the operators that have them."""
    optional = operator_named(op).optional
    for n in lengths if "weight" in optional else ():
        for weight, bias in ((True, False), (False, True), (True, True)) if "bias" in optional else ((True, False),):
            yield Case(op, dtype, "standard_normal", rows=4, n=n, seed=seed + 2, weight=weight, bias=bias)
            yield Case(op, dtype, "outlier_channels", rows=4, n=n, seed=seed + 2, weight=weight, bias=bias)
        for eps in EPS[op]:
            for regime in ("eps_scale", "standard_normal", "all_equal"):
                yield Case(op, dtype, regime, rows=4, n=n, seed=seed + 3, eps=eps)


def real_cases(op: str, dtype: str, rows: int | None = None) -> Iterator[Case]:
    """Rows of a real transformer, with its weight, bias and eps for the norms."""
    for block in real_blocks().values():
        if operator_named(op).family in block.families:
            yield block_case(op, dtype, "real_rows", block, rows)


def block_case(op: str, dtype: str, regime: str, block: Block, rows: int | None = None) -> Case:
    """The first rows of a recorded block, all of them by default."""
    operator = operator_named(op)
    return Case(
        op,
        dtype,
        regime,
        rows=min(rows or len(block.rows), len(block.rows)),
        n=block.rows.shape[1],
        weight="weight" in operator.optional and block.weight is not None,
        bias="bias" in operator.optional and block.bias is not None,
        eps=block.eps if operator.parameters else None,
        block=block.name,
    )
