"""``trueulp sanitize`` on a GPU: each fault is found by the tool that is made for it, and right kernels are clean."""

import shutil
from pathlib import Path

import pytest

from faulty import registered
from gpu_impls.libraries import absent
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation, isolated, load_file
from properties.case import Case
from reports.sanitizer.run import sanitize
from reports.sanitizer.tools import PROGRAM, Tool, program

pytestmark = [
    pytest.mark.skipif(absent("cupy+cuda") is not None, reason=absent("cupy+cuda") or ""),
    pytest.mark.skipif(shutil.which(PROGRAM) is None, reason=f"{PROGRAM} is not on the PATH"),
]
FILE = Path(__file__).parent / "sanitized_cuda.py"


def reasons(implementation: Implementation, tool: Tool, deadline: float = 60) -> set[str]:
    affine = {name: True for name in ("weight", "bias") if name in implementation.parameters}
    cases = [Case(implementation.op, "float32", "standard_normal", rows=3, n=n, **affine) for n in (33, 257)]
    return {str(p.finish().reason) for p in sanitize(implementation, cases, tool, program(), deadline)}


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("reads_past_its_end", Tool.MEMCHECK),
        ("no_barrier", Tool.RACECHECK),
        ("barrier_in_a_branch", Tool.SYNCCHECK),
        ("adds_to_what_was_there", Tool.INITCHECK),
    ],
)
def test_a_fault_is_found_by_its_tool_and_by_no_other(name: str, tool: Tool):
    with isolated():
        faulty = next(i for i in load_file(str(FILE)) if i.name == name)
        assert {t: reasons(faulty, t) for t in Tool} == {
            t: {str(t.reason if t is tool else Reason.CLEAN)} for t in Tool
        }


@pytest.mark.parametrize(("op", "name"), [("softmax", "cuda_missing_barrier"), ("sum", "cuda_one_slot")])
def test_races_of_kernels_known_to_be_faulty_are_found(op: str, name: str):
    assert reasons(registered(op, name), Tool.RACECHECK) == {str(Reason.RACE)}


def test_a_kernel_that_never_ends_hangs():
    with isolated():
        endless = next(i for i in load_file(str(FILE)) if i.name == "never_ends")
        assert reasons(endless, Tool.MEMCHECK, deadline=15) == {str(Reason.HUNG), str(Reason.NOT_RUN)}


@pytest.mark.parametrize("tool", Tool)
@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("softmax", "cuda_one_read"),
        ("softmax", "cuda_online"),
        ("rms_norm", "cuda_one_read"),
        ("layer_norm", "cuda_accurate"),
    ],
)
def test_right_kernels_are_clean(op: str, name: str, tool: Tool):
    assert reasons(registered(op, name), tool) == {str(Reason.CLEAN)}
