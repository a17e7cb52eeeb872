"""Every law that an implementation claims: bits between runs, batches, layouts, buffers, scalings and signs."""

from gpu_impls.call import Runner
from gpu_impls.registry import Implementation
from properties.finding import Ledger
from properties.laws import Law


def test_law(law_case: tuple[Law, Implementation, str], runner: Runner) -> None:
    law, implementation, dtype = law_case
    ledger = Ledger(implementation, frozenset({law.name}))
    ledger.note(law.check(implementation, dtype, runner))
    ledger.close()
