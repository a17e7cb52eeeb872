"""The classes of faults that public trackers report: each is caught by inputs that the suite draws by itself.

For every class a faulty implementation breaks the properties named here and no others, on the battery up to n = 300,
and a right twin breaks none. Races, strides, batches and buffers: test_laws.py. The trackers' own tiny inputs:
test_trigger_lines.py.
"""

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import faulty_kernels as k
from faulty import claiming, found, made, registered
from gpu_impls.numpy.shifting import exponentials, nonzero, row_maximum
from gpu_impls.numpy.summation import pairwise_sum
from gpu_impls.registry import Implementation
from properties.battery import battery
from properties.case import Case

ACCURACY, MASKS, SPECIAL = {"accuracy"}, {"masks"}, {"special_values"}
NORM = {"domain": (1e-15, 1e15)}
BF16, F16 = ml_dtypes.bfloat16, np.float16
NARROW = k.rounding_to(BF16)


def kept(op: str, name: str, dtype: str = "float32") -> tuple[Implementation, set[str]]:
    """A registered faulty implementation in one format, and the properties that it declares to break."""
    known = registered(op, name)
    claims = {c: getattr(known.contract, c) for c in ("domain", "summation", "min_length", "max_length")}
    return made(op, known.function, (dtype,), **claims), set(known.contract.known_faulty) - {"exact_scaling"}


def small(op: str, function: Any, broken: set[str], dtype: str = "float32", **claims: Any):
    return made(op, function, (dtype,), **claims), broken


FAULTS: dict[str, tuple[Implementation, set[str]]] = {
    "accumulation-sum": kept("sum", "bfloat16_accumulator", "bfloat16"),
    "accumulation-sum-float32": small("sum", k.sum_by(NARROW), ACCURACY),
    "accumulation-mean": small("mean", k.mean_by(NARROW), ACCURACY, "bfloat16"),
    "accumulation-var": small("var", k.var_by(NARROW), ACCURACY, "bfloat16", **NORM),
    "accumulation-softmax": small("softmax", k.softmax_by(total=NARROW), ACCURACY | SPECIAL, "bfloat16"),
    "accumulation-logsumexp": small("logsumexp", k.logsumexp_by(total=NARROW), ACCURACY | SPECIAL, "bfloat16"),
    "accumulation-rms_norm": small("rms_norm", k.rms_norm_by(NARROW), ACCURACY, "bfloat16", **NORM),
    "accumulation-layer_norm": small("layer_norm", k.layer_norm_by(NARROW), ACCURACY, "bfloat16", **NORM),
    "fully-masked-logsumexp": kept("logsumexp", "unguarded_blocks"),
    "fully-masked-softmax": small("softmax", k.unguarded_softmax, SPECIAL | MASKS),
    "nan-comparison": kept("max", "by_comparison"),
    "nan-number-wins": small("max", k.max_of_numbers, SPECIAL),
    "nan-sign-bit": small("max", k.max_by_ordered_bits, SPECIAL),
    "overflow-softmax": kept("softmax", "unshifted"),
    "overflow-logsumexp": small("logsumexp", k.unshifted_logsumexp, ACCURACY | SPECIAL),
    "formulation-log_softmax": kept("log_softmax", "by_logsumexp"),
    "formulation-log-of-softmax": small("log_softmax", k.log_of(k.softmax_by()), ACCURACY),
    "formulation-logsumexp-gap": kept("logsumexp", "maximum_beyond_gap"),
    "formulation-logsumexp-budget": small("logsumexp", k.logsumexp_by(), ACCURACY, max_ulp=1),
    "formulation-rescale": kept("softmax", "rescale_lost"),
    "approximation-flush": small("softmax", k.flushing(k.softmax_by()), ACCURACY),
    "approximation-log2e": small("softmax", k.softmax_by(k.exp_by_log2_e(1.4427)), ACCURACY | SPECIAL),
    "approximation-log2e-bfloat16": small("softmax", k.softmax_by(k.bfloat16_exp), ACCURACY | SPECIAL, "bfloat16"),
    "approximation-half-exp": small("softmax", k.softmax_by(k.half_precision_exp), ACCURACY | SPECIAL),
    "tail-softmax-padded": kept("softmax", "padded_with_zero"),
    "tail-max-identity": kept("max", "identity_zero"),
    "tail-sum": small("sum", k.sum_by(k.without_the_ragged_tail), ACCURACY | SPECIAL | MASKS),
    "tail-softmax": small("softmax", k.softmax_by(total=k.without_the_ragged_tail), ACCURACY | SPECIAL | MASKS),
    "tail-rms_norm": small("rms_norm", k.rms_norm_by(k.without_the_ragged_tail), ACCURACY | SPECIAL, **NORM),
    "one-pass-var": kept("var", "one_pass"),
    "one-pass-layer_norm": kept("layer_norm", "one_pass_variance"),
    "squares-float32": kept("rms_norm", "overflowing"),
    "squares-float16": small("rms_norm", k.rms_norm_by(square=k.float16_square), ACCURACY, "float16", **NORM),
    "epsilon-rms_norm": kept("rms_norm", "eps_outside"),
    "epsilon-layer_norm": small("layer_norm", k.layer_norm_by(outside=True), ACCURACY, **NORM),
    "epsilon-float16": small("layer_norm", k.layer_norm_by(eps_in=F16), ACCURACY, "float16", **NORM),
    "stand-in-start": kept("softmax", "finite_start"),
    "stand-in-minus-10000": kept("softmax", "mask_stand_in"),
    "stand-in-softmax": small("softmax", k.softmax_by(hidden=-1e30), MASKS),
    "stand-in-logsumexp": small("logsumexp", k.logsumexp_by(hidden=-1e30), MASKS),
    "stand-in-added-twice": small("softmax", k.mask_added(k.BF16_MIN), MASKS, "bfloat16"),
    "leak-added-infinity": small("softmax", k.mask_added(-np.inf), MASKS),
    "leak-times-mask": small("sum", k.sum_times_mask, MASKS),
    "leak-count": kept("mean", "over_length"),
    "cast-order": small("rms_norm", k.cast_before_weight, ACCURACY, "bfloat16", **NORM),
    "compiler-contraction": small("softmax", k.contracted_shift, ACCURACY),
    "convention-base-2": small("logsumexp", k.logsumexp_by(base=np.log(2)), ACCURACY | SPECIAL),
}  # fmt: skip

TWINS: dict[str, Implementation] = {
    **{f"{op}-{name}-{dtype}": claiming(registered(op, name), dtype, summation="tree", **claims)
        for op, name, claims in (
            ("sum", "pairwise", {}), ("mean", "pairwise", {}), ("var", "two_pass", NORM), ("max", "propagating", {}),
            ("logsumexp", "shifted", {}), ("softmax", "three_pass", {}), ("log_softmax", "shifted", {}),
            ("rms_norm", "scaled", {}), ("layer_norm", "two_pass", NORM),
        )
        for dtype in ("float32", "bfloat16", "float16")},
    **{f"{op}-built-{dtype}": made(op, kernel(), (dtype,), **claims)
        for op, kernel, claims in (
            ("sum", k.sum_by, {}), ("mean", k.mean_by, {}), ("var", k.var_by, NORM), ("softmax", k.softmax_by, {}),
            ("logsumexp", k.logsumexp_by, {}), ("rms_norm", k.rms_norm_by, NORM), ("layer_norm", k.layer_norm_by, NORM),
        )
        for dtype in ("float32", "bfloat16", "float16")},
    "logsumexp-budget": claiming(registered("logsumexp", "log1p"), max_ulp=1),
    "softmax-flush-declared": made("softmax", k.flushing(k.softmax_by()), subnormals="flush"),
    "softmax-log2e": made("softmax", k.softmax_by(k.exp_by_log2_e(np.log2(np.e)))),
    "rms_norm-cast-declared": made("rms_norm", k.cast_before_weight, ("bfloat16",), cast="before_weight", **NORM),
}  # fmt: skip


@functools.cache
def short_battery(op: str, dtype: str, longest: int = 300) -> list[Case]:
    """Kept with inputs and truths for all who stand it."""
    return [case for case in battery(op, dtype) if case.n <= longest]


def on_the_battery(implementation: Implementation) -> set[str]:
    (dtype,) = implementation.contract.dtypes
    return found(implementation, *short_battery(implementation.op, dtype))


@pytest.mark.parametrize(("implementation", "broken"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_caught_by_the_right_properties(implementation: Implementation, broken: set[str]):
    assert on_the_battery(implementation) == broken


@pytest.mark.parametrize("implementation", TWINS.values(), ids=TWINS)
def test_a_right_twin_passes(implementation: Implementation):
    assert on_the_battery(implementation) == set()


@pytest.mark.parametrize("op", ["softmax", "logsumexp"])
def test_a_last_element_dropped_from_long_sums_alone_is_caught(op: str):
    """Guarded against 0, it is right by luck wherever the last element outweighs everything."""

    def late(x, mask=None):
        weights = exponentials(x, row_maximum(x))
        kept = weights[:, :-1] if x.shape[-1] > 65536 else weights
        total = nonzero(pairwise_sum(kept))
        return weights / total[:, None] if op == "softmax" else row_maximum(x) + np.log(total)

    long = [case for case in battery(op, "float32") if case.n > 65536]
    assert found(made(op, late), *long) == {"accuracy"}
