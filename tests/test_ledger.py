"""The ledger: a finding must be declared, and what is declared must be found."""

import pytest

from faulty import made, registered, row_case, softmax
from gpu_impls.outcome import Reason
from properties.finding import Finding, Ledger, PropertyFailure
from properties.laws import LAWS
from properties.oracle_check import verdict
from properties.test_oracle import SCOPE

CASE = row_case("softmax", [1.0, 2.0])
REGIME = CASE.regime  # standard_normal

ORACLE = frozenset({"accuracy", "masks", "special_values", REGIME, "gap"})


def finding(property_: str) -> Finding:
    return Finding(property_, CASE, Reason.OVER_BOUND, "  the story")


def ledger(scope: frozenset[str] = ORACLE, **claims: dict[str, str]) -> Ledger:
    return Ledger(made("softmax", softmax, **claims), scope)


def test_nothing_declared_and_nothing_found_is_well():
    quiet = ledger()
    quiet.note([])
    quiet.close()


def test_what_is_not_declared_fails_at_once_with_the_whole_story():
    with pytest.raises(PropertyFailure) as failure:
        ledger(deviates={"masks": "no mask"}).note([finding("accuracy")])
    assert str(failure.value).splitlines() == [
        "softmax-softmax accuracy: over the bound",
        "  the story",
        f"  replay: trueulp replay {CASE.id} --impl softmax",
    ]


@pytest.mark.parametrize("claim", ["deviates", "known_faulty"])
@pytest.mark.parametrize("name", ["accuracy", REGIME], ids=["by-property", "by-regime"])
def test_what_is_declared_passes(claim: str, name: str):
    declared = ledger(**{claim: {name: "a reason"}})
    declared.note([finding("accuracy"), finding("accuracy")])
    declared.close()


@pytest.mark.parametrize("claim", ["deviates", "known_faulty"])
@pytest.mark.parametrize("name", ["accuracy", REGIME])
def test_what_is_declared_and_does_not_happen_fails(claim: str, name: str):
    idle = ledger(**{claim: {name: "a reason"}})
    idle.note([])
    with pytest.raises(PropertyFailure, match=rf"declared to fail and does not: {name} \(a reason\). Remove it from"):
        idle.close()


def test_one_declared_failure_does_not_stand_for_another():
    half = ledger(deviates={"accuracy": "a", "masks": "m", "gap": "g"})
    half.note([finding("masks")])
    with pytest.raises(PropertyFailure, match=r"does not: accuracy \(a\); gap \(g\). Remove"):
        half.close()


def test_a_regime_excuses_that_regime_alone():
    other = ledger(deviates={"gap": "a reason"})
    with pytest.raises(PropertyFailure, match="softmax-softmax accuracy"):
        other.note([finding("accuracy")])


def test_findings_before_the_one_that_raises_are_noted():
    declared = ledger(deviates={"masks": "m"})
    with pytest.raises(PropertyFailure, match="accuracy"):
        declared.note([finding("masks"), finding("accuracy")])
    assert declared.seen == {"masks"}


def test_what_lies_outside_of_the_scope_is_another_check_s():
    other = ledger(frozenset({"determinism"}), deviates={"accuracy": "a reason"})
    other.close()


def test_the_two_checks_together_cover_every_declaration_once():
    assert not SCOPE & LAWS.keys()
    assert {"accuracy", "special_values", "masks", "gap"} <= SCOPE


@pytest.mark.parametrize(
    ("op", "name", "row", "broken"),
    [
        ("max", "identity_zero", [-3.0, -5.0], "accuracy"),
        ("max", "by_comparison", [1.0, float("nan")], "special_values"),
        ("softmax", "unshifted", [1000.0, 1001.0], "accuracy"),
    ],
    ids=["identity_zero", "by_comparison", "unshifted"],
)
def test_a_known_fault_is_found_and_its_ledger_closes(op: str, name: str, row: list[float], broken: str):
    implementation = registered(op, name)
    kept = Ledger(implementation, frozenset({broken}))
    kept.note(verdict(implementation, row_case(op, row)).findings())
    kept.close()
    assert kept.seen == {broken}
    undeclared = Ledger(made(op, implementation.function), frozenset({broken}))
    with pytest.raises(PropertyFailure, match=broken):
        undeclared.note(verdict(implementation, row_case(op, row)).findings())
