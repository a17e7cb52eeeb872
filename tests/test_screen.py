"""What a GPU settles, and what is left for the host: the same measurements either way.

Without a GPU the kernels run on this processor (tests/device_words.py); the device's own tests are marked so.
"""

from collections.abc import Iterator
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_words import statistics_of

from faulty import made, softmax
from gpu_impls.call import Run, call
from gpu_impls.libraries import absent
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation, implementations
from oracles.arithmetics.fused import GROUND, NAME, STATISTICS, Kernel
from oracles.truth import RowTruths
from properties import screen
from properties.battery import regimes_for
from properties.case import Case, explicit_case
from properties.oracle_check import Verdict, verdict
from properties.screen import Screened, allowed, screened
from reports.evidence import Evidence
from reports.measurement import Measurement, collect, partials
from test_oracles_inputs import ALONE as OPERATORS

GPU = absent("cupy+cuda") is None


class Got(np.ndarray):
    """As CuPy's arrays are fetched."""

    def get(self) -> np.ndarray:
        return self.view(np.ndarray)


def certify_here(kernel: Kernel, x: Any, stored: Any, **others: Any) -> tuple[Got, Got]:
    """:func:`oracles.arithmetics.fused.certify` on this processor."""
    out, histogram = statistics_of(kernel, x, stored, others)
    return out.view(np.uint8).view(Got), histogram.view(Got)


@pytest.fixture(params=["host", pytest.param("device", marks=pytest.mark.skipif(not GPU, reason="no CUDA device"))])
def there(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU, or what stands in for one, that takes cases of any size."""
    monkeypatch.setattr(screen, "FEWEST", 1)
    if request.param == "host":
        monkeypatch.setattr(screen, "absent", lambda need: None)
        monkeypatch.setattr(screen, "cupy", SimpleNamespace(asarray=np.asarray))
        monkeypatch.setattr(screen, "certify", certify_here)


def measured(found: Verdict) -> Measurement:
    (only,) = collect(partials(found))
    return only


def of_rows(case: Case) -> RowTruths:
    return RowTruths(case.operator, case.inputs, lambda: case.truths)


def both(implementation: Implementation, case: Case) -> Iterator[tuple[Screened, Measurement, Measurement]]:
    """What the device's help makes of a case, where it settles any of it, and what the host does."""
    run = call(implementation, case.inputs)
    helped = screened(implementation, case, run, of_rows(case))
    if helped is not None:
        yield helped, measured(helped), measured(verdict(implementation, case))


def close(a: object, b: object) -> bool:
    """An error's last bits are those of the arithmetic; it is counted in units of 2**-20 ULP."""
    return a == b or (isinstance(a, float) and abs(a - b) <= 2.0**-20 + 1e-6 * abs(b))


def differences(here: Measurement, there: Measurement) -> dict[str, tuple[object, object]]:
    """Apart from what says who computed it."""
    pairs = {name: (value, asdict(there)[name]) for name, value in asdict(here).items()}
    return {name: pair for name, pair in pairs.items() if name not in ("ground", "arithmetic") and not close(*pair)}


def ties(implementation: Implementation, case: Case) -> bool:
    """Whether the largest error is that of several elements."""
    errors = np.nan_to_num(verdict(implementation, case).judgements[0].errors, nan=-1.0)
    return (errors >= errors.max() * (1 - 1e-6)).sum() > 1


def standing(op: str, dtype: str) -> Iterator[tuple[Implementation, Case]]:
    """Right and wrong NumPy implementations, on rows of every regime."""
    affine = "weight" in OPERATORS[op].optional
    regimes = [r for r in regimes_for(op) if r.fits(33) and r.name != "masks"]
    for implementation in implementations((op,)):
        if implementation.contract.backend == "numpy" and dtype in implementation.contract.dtypes:
            for k, regime in enumerate(regimes):
                both_given = affine and k % 2 == 0
                yield (
                    implementation,
                    Case(op, dtype, regime.name, rows=4, n=33, seed=3, weight=both_given, bias=both_given),
                )


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("op", OPERATORS)
def test_a_measurement_is_the_same_with_a_gpu_and_without(op: str, dtype: str):
    told, settled, rows = [], 0, 0
    for implementation, case in standing(op, dtype):
        rows += case.rows
        for helped, here, host in both(implementation, case):
            settled += case.rows - len(helped.left)
            different = differences(here, host)
            if ties(implementation, case):  # of equal errors, another one
                different = {k: v for k, v in different.items() if k not in ("worst_case", "condition")}
            told += [f"{implementation.name} {case.id}: {different}"] * bool(different)
    assert told == []
    assert settled > rows / 3


SOME = Case("softmax", "float32", "standard_normal", rows=9, n=33)


def wrong_once(x: np.ndarray) -> np.ndarray:
    y = softmax(x)
    y[4, 7] = 0
    return y


def one(function: Any, case: Case = SOME) -> tuple[Screened, Measurement, Measurement]:
    ((helped, here, host),) = both(made(case.op, function), case)
    return helped, here, host


@pytest.mark.usefixtures("there")
def test_what_a_measurement_stands_on_is_told():
    _, here, host = one(softmax)
    assert here.ground == GROUND
    assert NAME in here.arithmetic.split()
    assert NAME not in host.arithmetic


@pytest.mark.usefixtures("there")
def test_a_row_with_a_failure_is_left_for_the_host_and_its_story_is_told():
    helped, here, host = one(wrong_once)
    assert 4 in helped.left
    assert len(helped.left) < 5
    assert (here.outcome, here.reason) == (host.outcome, host.reason) == ("fail", str(Reason.OVER_BOUND))
    assert here.worst_case == host.worst_case == f"{SOME.id}@4.7"
    assert differences(here, host) == {}
    assert stories(helped) == stories(verdict(made("softmax", wrong_once), SOME))


@pytest.mark.usefixtures("there")
def test_the_story_of_a_settled_element_is_the_hosts():
    helped, here, _ = one(softmax)
    place = tuple(int(i) for i in here.worst_case.rpartition("@")[2].split("."))
    assert place[0] not in helped.left
    assert stories(helped) == stories(verdict(made("softmax", softmax), SOME))


def stories(found: Verdict) -> list[dict[str, str]]:
    evidence = Evidence()
    evidence.note(found, partials(found))
    told = [dict(story.lines) for story in evidence.stories.values()]
    for lines in told:  # their digits beyond the enclosure's radius are the arithmetic's
        lines["exact"] = lines.get("exact", "")[:16]
    return told


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_left(value: float):
    x = np.array(SOME.inputs.x)
    x[2, 5] = value
    helped, here, host = one(softmax, explicit_case("softmax", "float32", "standard_normal", {"x": x}))
    assert 2 in helped.left
    assert differences(here, host) == {}


@pytest.mark.usefixtures("there")
def test_rows_outside_of_a_domain_are_left():
    claims = {"domain": (1e-3, 4.0)}
    x = np.concatenate([SOME.inputs.x / 2, np.array([[100.0] * 33], np.float32)])
    case = explicit_case("rms_norm", "float32", "standard_normal", {"x": x})
    implementation = made("rms_norm", lambda x, eps: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps), **claims)
    ((helped, here, host),) = both(implementation, case)
    assert 9 in helped.left
    assert host.rows_not_judged > 0
    assert differences(here, host) == {}


@pytest.mark.usefixtures("there")
def test_what_the_device_does_not_take_is_the_hosts():
    def of(case: Case) -> Screened | None:
        return screened(made(case.op, softmax), case, Run(outputs=(case.inputs.x,)), of_rows(case))

    assert of(Case("softmax", "float64", "standard_normal", rows=2, n=33)) is None
    assert of(Case("softmax", "float32", "masks", rows=72, n=33)) is None
    assert of(Case("fused_add_rms_norm", "float32", "standard_normal", rows=2, n=33)) is None
    assert screened(made("softmax", softmax), SOME, Run(reason=Reason.RAISED, detail="no"), of_rows(SOME)) is None
    nothing_right = Run(outputs=(np.full(SOME.inputs.x.shape, 7, np.float32),))
    assert screened(made("softmax", softmax), SOME, nothing_right, of_rows(SOME)) is None


@pytest.mark.usefixtures("there")
def test_findings_are_those_of_all_rows():
    helped, *_ = one(wrong_once)
    (finding,) = helped.findings()
    assert "element [4, 7]" in finding.story


@pytest.fixture
def _trying_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "_given_up", [])


@pytest.mark.usefixtures("there", "_trying_again")
def test_a_gpu_that_fails_leaves_all_to_the_host(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        calls.append(1)
        raise MemoryError("out of memory")

    calls: list[int] = []
    monkeypatch.setattr(screen, "certify", fail)
    implementation = made("softmax", softmax)
    run = call(implementation, SOME.inputs)
    with pytest.warns(RuntimeWarning, match="no rows are settled on the GPU any more: MemoryError: out of memory"):
        assert screened(implementation, SOME, run, of_rows(SOME)) is None
    assert screened(implementation, SOME, run, of_rows(SOME)) is None
    assert len(calls) == 1  # it is not asked again


@pytest.mark.usefixtures("there")
def test_a_device_that_the_judge_contradicts_settles_nothing(monkeypatch: pytest.MonkeyPatch):
    """It calls a row within what is allowed that is not: the row of its largest error is the judge's too."""

    def sloppy(*given: Any) -> tuple[Any, ...]:
        bound, half, tolerated, unjudged = allowed(*given)
        return bound * 1e9, half, tolerated * 1e9, unjudged

    monkeypatch.setattr(screen, "allowed", sloppy)
    implementation = made("softmax", lambda x: softmax(x) * np.float32(1.001))
    assert screened(implementation, SOME, call(implementation, SOME.inputs), of_rows(SOME)) is None


def test_sums_of_large_errors_do_not_overflow():
    settled = np.zeros(2**17, STATISTICS)
    settled["units"], settled["granted"], settled["compared"] = 2**47, 1, 1
    assert screen.counts(Case("sum", "float32", "standard_normal", rows=1, n=1), settled, {}).error_sum == 2**64


@pytest.mark.usefixtures("there")
def test_a_small_case_is_judged_sooner_than_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(screen, "FEWEST", SOME.inputs.x.size + 1)
    assert screened(made("softmax", softmax), SOME, call(made("softmax", softmax), SOME.inputs), of_rows(SOME)) is None
