"""Accuracy, special values and masks of every implementation and dtype: the battery first, then what hypothesis draws.

A failure is the first case whose verdict the contract does not declare. Known-faulty implementations stand the
battery alone, which must catch them by exactly the properties they declare.
"""

from hypothesis import HealthCheck, given, settings

from gpu_impls.call import Runner
from gpu_impls.registry import Implementation
from properties.battery import battery
from properties.case import Case
from properties.finding import Ledger
from properties.oracle_check import ORACLE_PROPERTIES, verdict
from properties.regimes import REGIMES
from properties.strategies import cases

SCOPE = frozenset({*ORACLE_PROPERTIES, *REGIMES})


def test_oracle(pair: tuple[Implementation, str], runner: Runner) -> None:
    implementation, dtype = pair
    ledger = Ledger(implementation, SCOPE)
    for case in battery(implementation.op, dtype):
        ledger.note(verdict(implementation, case, runner).findings())
    ledger.close()
    if not implementation.contract.known_faulty:
        drawn(implementation, dtype, ledger, runner)


def drawn(implementation: Implementation, dtype: str, ledger: Ledger, runner: Runner, examples: int = 60) -> None:
    """One draw feeds every oracle check."""
    __tracebackhide__ = True

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(case=cases(implementation, dtype))
    def check(case: Case) -> None:
        ledger.note(verdict(implementation, case, runner).findings())

    check()
