"""The worked examples of the README: what the algorithms do step by step, in float32."""

import itertools

import numpy as np
import pytest

from faulty import found, registered, row_case
from gpu_impls.call import call
from gpu_impls.numpy.shifting import running_state, running_states
from gpu_impls.numpy.summation import WARP, lanes_of, warp_sum
from properties.case import Case
from properties.oracle_check import verdict

F32 = np.float32
ROW = np.array([[1, 3, 2]], F32)


def answer(op: str, name: str, case: Case) -> np.ndarray:
    (output,) = call(registered(op, name), case.inputs).outputs
    return output[0]


def printed(values: np.ndarray, digits: int = 7) -> list[str]:
    return [f"{float(v):.{digits}f}" for v in np.ravel(values)]


EXAMPLES = {
    "rms_norm": (row_case("rms_norm", [3, 4], eps=0), ["0.8485281", "1.1313708"]),
    "softmax": (row_case("softmax", [1, 3, 2]), ["0.0900306", "0.6652410", "0.2447285"]),
    "softmax-1000": (row_case("softmax", [1000, 1001]), ["0.2689414", "0.7310586"]),
}


@pytest.mark.parametrize(("case", "told"), EXAMPLES.values(), ids=EXAMPLES)
def test_the_exact_values_are_as_told(case: Case, told: list[str]):
    assert printed(case.truths[0].enclosure.value()) == told


NAMES = {"rms_norm": ("plain", "scaled"), "softmax": ("three_pass", "online", "online_tiles")}


@pytest.mark.parametrize("case", [case for case, _ in EXAMPLES.values()], ids=EXAMPLES)
def test_implementations_come_within_two_ulps_of_them(case: Case):
    for name in NAMES[case.op]:
        (judgement,) = verdict(registered(case.op, name), case).judgements
        assert judgement.errors.max() <= 2


def test_the_states_of_online_softmax():
    states = [(float(m[0]), f"{float(total[0]):.7f}") for m, total in running_states(ROW, tile=1)]
    assert states == [(-np.inf, "0.0000000"), (1, "1.0000000"), (3, "1.1353353"), (3, "1.5032147")]


def test_tiles_merge_to_the_same_state():
    tiles = [running_state(part, tile=part.shape[-1]) for part in (ROW[:, :2], ROW[:, 2:])]
    assert [(float(m[0]), f"{float(total[0]):.7f}") for m, total in tiles] == [(3, "1.1353353"), (2, "1.0000000")]
    (m1, l1), (m2, l2) = tiles
    m = np.maximum(m1, m2)
    merged = l1 * np.exp(m1 - m) + l2 * np.exp(m2 - m)
    assert (m[0], f"{float(merged[0]):.7f}") == (3, "1.5032147")
    for tile in (1, 2, 3, 37):
        m, total = running_state(ROW, tile=tile)
        assert (m[0], f"{float(total[0]):.7f}") == (3, "1.5032147")


def test_sixty_four_ones_in_two_warps():
    """Each warp of 32 adds one element a lane; then the two partial sums are added."""
    ones = np.ones((1, 64), F32)
    partials = [float(warp_sum(ones[:, k : k + WARP])[0]) for k in (0, WARP)]
    assert partials == [32, 32]
    assert sum(partials) == 64
    assert answer("sum", "warp_tree", row_case("sum", ones)) == 64


def test_sixty_four_ones_in_one_warp():
    """Two elements a lane, then the tree."""
    steps = lanes_of(np.ones((1, 64), F32))
    assert steps.sum(axis=0).tolist() == [[2] * WARP]


THOUSANDS = np.array([[1000 + k / 1000 for k in range(1, 11)]], F32)


def one_pass(row: np.ndarray) -> float:
    """E[x^2] - E[x]^2, left to right, every operation in float32."""
    squares = total = F32(0)
    for x in row:
        squares, total = squares + x * x, total + x
    n, mean = F32(len(row)), total / F32(len(row))
    return float(squares / n - mean * mean)


def test_the_one_pass_variance_depends_on_the_order():
    """1000.001 ... 1000.010: squares near 1e6 are 1/16 apart, the variance is a thousandth of a hundredth."""
    case = row_case("var", THOUSANDS)
    assert float(case.truths[0].enclosure.value()[0]) == pytest.approx(8.248e-6, rel=1e-4)
    orders = itertools.islice(itertools.permutations(THOUSANDS[0]), 0, 3628800, 5077)
    assert {0.0, 0.25} <= {one_pass(np.array(order)) for order in orders}


def test_the_judge_refuses_either_answer_and_takes_two_passes():
    case = row_case("var", THOUSANDS)
    assert found(registered("var", "one_pass"), case) == {"accuracy"}
    assert found(registered("var", "two_pass"), case) == set()
    assert found(registered("layer_norm", "one_pass_variance"), row_case("layer_norm", THOUSANDS)) == {"accuracy"}
    for name in ("two_pass", "corrected_two_pass", "welford", "welford_warp_tree"):
        assert found(registered("layer_norm", name), row_case("layer_norm", THOUSANDS)) == set()
