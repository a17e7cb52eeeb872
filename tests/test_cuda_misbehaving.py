"""Isolation on the device: a kernel that hangs there, or loses the context, costs its own verdict and nothing else.

One kernel takes all memory and two hang: run on its own, when nothing else runs on the device.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from faulty import row_case
from gpu_impls.isolation import Isolated
from gpu_impls.libraries import absent
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation, isolated, load_file
from properties.case import Case
from properties.oracle_check import verdict

pytestmark = [
    pytest.mark.skipif(absent("cupy+cuda") is not None, reason=absent("cupy+cuda") or ""),
    pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="it would take the others' memory: run without -n"),
]

CASE = row_case("sum", [[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture
def kernels() -> Iterator[dict[str, Implementation]]:
    with isolated():
        yield {i.name: i for i in load_file(str(Path(__file__).with_name("misbehaving_cuda.py")))}


@pytest.fixture
def runner() -> Iterator[Isolated]:
    with Isolated(deadline=15.0) as made:
        yield made


CRASHED, RAISED, HUNG = Reason.CRASHED, Reason.RAISED, Reason.HUNG

ENDINGS = {  # those that hang last
    "stores_out_of_bounds": (CRASHED, "cudaErrorIllegalAddress"),
    "traps": (CRASHED, "cudaErrorLaunchFailure"),
    "reads_an_illegal_address": (CRASHED, "cudaErrorIllegalAddress"),
    "exhausts_memory": (CRASHED, "Out of memory"),
    "asks_for_too_large_a_block": (RAISED, "CUDA_ERROR_INVALID_VALUE"),
    "loops_for_ever": (HUNG, "no answer within"),
    "hangs_in_the_second_level": (HUNG, "no answer within"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_every_ending_is_told_and_the_next_call_works(name: str, kernels: dict[str, Implementation], runner: Isolated):
    reason, detail = ENDINGS[name]
    assert runner(kernels["well_behaved"], CASE.inputs).outputs[0].tolist() == [3.0, 7.0]  # the device is warm
    run = runner(kernels[name], CASE.inputs)
    assert run.reason is reason
    assert detail in run.detail
    runner.deadline = 60.0  # a new child, a new context
    assert runner(kernels["well_behaved"], CASE.inputs).outputs[0].tolist() == [3.0, 7.0]


def test_a_store_past_the_end_of_out_is_seen(kernels: dict[str, Implementation], runner: Isolated):
    runner.deadline = 60.0
    assert runner(kernels["stores_beyond_its_end"], CASE.inputs, with_out=True).reason is Reason.GUARD


@pytest.mark.parametrize(("name", "right"), [("offset_in_64_bits", True), ("offset_in_32_bits", False)])
def test_rows_beyond_2_31_elements(name: str, right: bool, kernels: dict[str, Implementation], runner: Isolated):
    runner.deadline = 120.0
    case = Case("sum", "float16", "standard_normal", rows=2, n=131_072)
    findings = verdict(kernels[name], case, runner).findings()
    assert {f.property for f in findings} == (set() if right else {"accuracy"})
