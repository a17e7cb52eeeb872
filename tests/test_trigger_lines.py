"""The tiny inputs of ../shared/cases/triggers.md that concern our operators, each line word for word.

A faulty implementation gives the wrong answer that the line tells and is refused, a right one gives the right answer
and passes. Lines about other operators wait for those.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import faulty_kernels as k
from faulty import claiming, found, made, registered, row_case
from gpu_impls.call import call
from gpu_impls.registry import Implementation
from properties.case import Case
from properties.oracle_check import verdict

NAN, INF = float("nan"), float("inf")
LOG2_E = np.log2(np.e)
BF16_MIN = k.BF16_MIN


@dataclass(frozen=True)
class Line:
    """A case, what is right, what the faulty implementation says, and the property that refuses it."""

    case: Case
    right: Any
    twin: Implementation
    wrong: Any
    faulty: Implementation
    broken: str = "accuracy"


def ours(op: str, name: str, dtype: str = "float32", **claims: Any) -> Implementation:
    return claiming(registered(op, name), dtype, **claims)


def kernel(op: str, function: Any, dtype: str = "float32", **claims: Any) -> Implementation:
    return made(op, function, (dtype,), **claims)


SOFTMAX = ours("softmax", "three_pass")
LSE = ours("logsumexp", "shifted")
VAR = ours("var", "two_pass")
LOG_SOFTMAX = ours("log_softmax", "shifted")
ONE_PASS = ours("var", "one_pass")
BLOCKS = ours("logsumexp", "unguarded_blocks")
TENTH = [1e-3, -1e-3]

LINES: dict[str, Line] = {
    "300-ones": Line(row_case("sum", [1.0] * 300, "bfloat16"), 300, ours("sum", "pairwise", "bfloat16"),
                     256, ours("sum", "bfloat16_accumulator", "bfloat16")),
    "two-to-24-and-two": Line(row_case("sum", [2.0**24, 1, 1]), 16777218, ours("sum", "kahan", max_ulp=0.5),
                              16777216, ours("sum", "sequential", max_ulp=0.5)),
    "masked-lse": Line(row_case("logsumexp", [-INF, -INF]), -INF, LSE, NAN, BLOCKS, "special_values"),
    "masked-softmax": Line(row_case("softmax", [-INF, -INF]), [0, 0], SOFTMAX,
                           [NAN, NAN], kernel("softmax", k.unguarded_softmax), "special_values"),
    "masked-softmax-nan": Line(row_case("softmax", [-INF, -INF]), [NAN, NAN],
                               kernel("softmax", k.unguarded_softmax, masked_row="nan"),
                               [0, 0], ours("softmax", "three_pass", masked_row="nan"), "special_values"),
    "masked-block-first": Line(row_case("logsumexp", [-INF, -INF, 3, 1]), 3.126928, LSE, NAN, BLOCKS, "special_values"),
    "max-nan-inside": Line(row_case("max", [1, NAN, 2]), NAN, ours("max", "propagating"),
                           2, ours("max", "by_comparison"), "special_values"),
    "max-nan-first": Line(row_case("max", [NAN, 1, 2]), NAN, ours("max", "propagating"),
                          2, ours("max", "by_comparison"), "special_values"),
    "max-nan-signed": Line(row_case("max", [1, -NAN, 2]), NAN, ours("max", "propagating"),
                           2, kernel("max", k.max_by_ordered_bits), "special_values"),
    "softmax-inf": Line(row_case("softmax", [2, INF, -1]), [NAN] * 3, SOFTMAX,
                        [0, NAN, 0], ours("softmax", "unshifted"), "special_values"),
    "lse-overflow": Line(row_case("logsumexp", [0, 100]), 100, LSE, INF, kernel("logsumexp", k.unshifted_logsumexp)),
    "softmax-1000": Line(row_case("softmax", [1000, 1001]), [0.26894142, 0.73105858], SOFTMAX,
                         [NAN, NAN], ours("softmax", "unshifted")),
    "lse-of-a-gap": Line(row_case("logsumexp", [0, -20]), 2.0611536e-9, ours("logsumexp", "log1p", max_ulp=1),
                         0, ours("logsumexp", "shifted", max_ulp=1)),
    "log_softmax-far": Line(row_case("log_softmax", [1e7, 1e7]), [-0.6931472] * 2, LOG_SOFTMAX,
                            [-1, -1], ours("log_softmax", "by_logsumexp")),
    "exp-flushed": Line(row_case("softmax", [0, -100]), [1, 3.72e-44], SOFTMAX,
                        [1, 0], kernel("softmax", k.flushing(k.softmax_by()))),
    "log-of-flushed": Line(row_case("log_softmax", [0, -100]), [-3.72e-44, -100], LOG_SOFTMAX,
                           [0, -INF], kernel("log_softmax", k.log_of(k.flushing(k.softmax_by())))),
    "log2e-in-bfloat16": Line(row_case("softmax", [0, 30], "bfloat16"), [1 / 1.0687e13, 1],
                              ours("softmax", "three_pass", "bfloat16"),
                              [1 / 1.0445e13, 1], kernel("softmax", k.softmax_by(k.bfloat16_exp), "bfloat16")),
    "padded": Line(row_case("softmax", [-3, -5, -4]), [0.66524096, 0.09003057, 0.24472847], SOFTMAX,
                   [0.0463, 0.00627, 0.01704], ours("softmax", "padded_with_zero")),
    "max-identity": Line(row_case("max", [-3, -5]), -3, ours("max", "propagating"), 0, ours("max", "identity_zero")),
    "var-4096": Line(row_case("var", [4096, 4097, 4098, 4099]), 1.25, VAR, 2, ONE_PASS),
    "var-16385": Line(row_case("var", [16385, 16386, 16387]), 0.6667, VAR, 0, ONE_PASS),
    "squares-float16": Line(row_case("rms_norm", [300, 400], "float16", eps=0), [0.8485, 1.1314],
                            ours("rms_norm", "scaled", "float16"),
                            [0, 0], kernel("rms_norm", k.rms_norm_by(square=k.float16_square), "float16")),
    "squares-float32": Line(row_case("rms_norm", [3e19, 4e19], eps=0), [0.8485, 1.1314], ours("rms_norm", "scaled"),
                            [0, 0], ours("rms_norm", "overflowing")),
    "eps-rms_norm": Line(row_case("rms_norm", TENTH, eps=1e-5), [0.3015113, -0.3015113], ours("rms_norm", "plain"),
                         [0.990099, -0.990099], ours("rms_norm", "eps_outside")),
    "eps-layer_norm": Line(row_case("layer_norm", TENTH, eps=1e-5), [0.3015113, -0.3015113],
                           ours("layer_norm", "two_pass"),
                           [0.990099, -0.990099], kernel("layer_norm", k.layer_norm_by(outside=True))),
    "eps-in-float16": Line(row_case("layer_norm", [1, 1], "float16", eps=1e-12), [0, 0],
                           ours("layer_norm", "two_pass", "float16"),
                           [NAN, NAN], kernel("layer_norm", k.layer_norm_by(eps_in=np.float16), "float16")),
    "finite-start": Line(row_case("softmax", [-70000, -70001]), [0.7311, 0.2689], ours("softmax", "online_tiles"),
                         [0, 0], ours("softmax", "finite_start")),
    "minus-1e30-softmax": Line(row_case("softmax", [1, 2], mask=[False, False]), [0, 0], SOFTMAX,
                               [0.5, 0.5], kernel("softmax", k.softmax_by(hidden=-1e30)), "masks"),
    "minus-1e30-lse": Line(row_case("logsumexp", [1, 2], mask=[False, False]), -INF, LSE,
                           -1e30, kernel("logsumexp", k.logsumexp_by(hidden=-1e30)), "masks"),
    "nan-under-mask": Line(row_case("softmax", [1, NAN], mask=[True, False]), [1, 0], SOFTMAX,
                           [NAN, NAN], kernel("softmax", k.mask_added(-INF)), "masks"),
    "minimum-added-twice": Line(row_case("softmax", [BF16_MIN] * 2, "bfloat16", mask=[False, False]), [0, 0],
                                ours("softmax", "three_pass", "bfloat16"),
                                [NAN, NAN], kernel("softmax", k.mask_added(BF16_MIN, k.unguarded_softmax), "bfloat16"),
                                "masks"),
    "base-2": Line(row_case("softmax", [np.log(3), 0]), [0.75, 0.25], SOFTMAX,
                   [0.830, 0.170], kernel("softmax", k.softmax_by(lambda v: np.exp(v * np.float32(LOG2_E))))),
    "contracted": Line(row_case("softmax", [6e9, 6e9]), [0.5, 0.5], SOFTMAX,
                       [NAN, NAN], kernel("softmax", k.contracted_shift)),
}  # fmt: skip

each_line = pytest.mark.parametrize("line", LINES.values(), ids=LINES)


def answer(implementation: Implementation, case: Case) -> np.ndarray:
    (output,) = call(implementation, case.inputs).outputs
    return output[0].astype(np.float64)


@each_line
def test_the_right_answer_is_right_to_the_last_digit_told(line: Line):
    digits = 2e-4 if line.case.dtype == "float32" else 2e-3
    assert answer(line.twin, line.case) == pytest.approx(line.right, rel=digits, nan_ok=True)


@each_line
def test_a_right_implementation_passes(line: Line):
    assert found(line.twin, line.case) == set()


@each_line
def test_the_faulty_one_gives_the_wrong_answer_told(line: Line):
    assert answer(line.faulty, line.case) == pytest.approx(line.wrong, rel=4e-3, abs=1e-30, nan_ok=True)


@each_line
def test_the_faulty_one_is_refused(line: Line):
    assert found(line.faulty, line.case) == {line.broken}


def test_two_lines_are_within_the_default_bound():
    """They fail only those who claim more."""
    assert found(ours("sum", "sequential"), LINES["two-to-24-and-two"].case) == set()
    assert found(LSE, LINES["lse-of-a-gap"].case) == set()


def test_the_place_of_the_masked_block_matters():
    last = row_case("logsumexp", [3, 1, -INF, -INF])
    assert found(BLOCKS, last) == set()
    assert answer(BLOCKS, last) == pytest.approx(3.126928)


@pytest.mark.parametrize("place", range(5))
def test_every_logit_minus_infinity_but_one(place: int):
    row = [-INF] * 5
    row[place] = 7
    for implementation in (SOFTMAX, LSE, LOG_SOFTMAX, ours("softmax", "online"), ours("logsumexp", "online_tiles")):
        assert found(implementation, row_case(implementation.op, row)) == set()
    assert found(BLOCKS, row_case("logsumexp", row)) == (set() if place < 2 else {"special_values"})


def test_a_reduction_to_bfloat16_that_accumulates_in_float32_errs_by_half_an_ulp_and_dust():
    case = row_case("sum", np.linspace(1, 2, 300), "bfloat16")
    (right,), (narrow,) = (
        verdict(ours("sum", name, "bfloat16"), case).judgements for name in ("pairwise", "bfloat16_accumulator")
    )
    assert right.errors.item() <= 0.501
    assert narrow.errors.item() > 10


@pytest.mark.parametrize("n", [1, 31, 32, 33])
def test_lengths_around_a_tile(n: int):
    """A kernel of whole tiles of 32 is right until a ragged one follows."""
    row = row_case("softmax", np.zeros(n))
    tiled = kernel("softmax", k.softmax_by(total=k.without_the_ragged_tail))
    assert found(tiled, row) == ({"accuracy"} if n == 33 else set())
    assert found(SOFTMAX, row) == set()
