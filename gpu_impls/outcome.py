"""Outcomes and reasons: the words every verdict is written in."""

from enum import StrEnum


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_JUDGED = "not judged"


class Reason(StrEnum):
    """Why; the values are the messages. Order is severity: the first that applies to a table's row is shown."""

    CRASHED = "crashed"
    HUNG = "hung"
    RAISED = "raised"
    MEMORY = "accesses memory that is not its own"
    RACE = "races in shared memory"
    BARRIER = "not all threads reach a barrier"
    UNINITIALISED = "reads memory that nothing wrote"
    WRONG_SHAPE = "wrong shape or dtype"
    WROTE_INPUT = "wrote into its input"
    UNWRITTEN = "output not written"
    GUARD = "wrote outside its output"
    SPECIAL = "special value wrong"
    OVER_BUDGET = "over the claimed budget"
    OVER_BOUND = "over the bound"
    BITS_RUNS = "bits differ between runs"
    BITS_BATCH = "bits depend on the batch"
    BITS_LAW = "bits break an exact law"
    UNDECIDED = "undecided"
    ILL_CONDITIONED = "ill-conditioned: the bound leaves nothing to judge"
    ILL_CONDITIONED_PASS = "ill-conditioned but within the bound"
    WITHIN = "within the bound"
    CLEAN = "nothing found by the sanitizer"
    OUTSIDE_DOMAIN = "outside its domain"
    NOT_RUN = "not run after it hung or crashed too often"
    NOT_SUPPORTED = "not supported"
    NOTHING = "nothing compared"

    @property
    def outcome(self) -> Outcome:
        if self in (Reason.WITHIN, Reason.ILL_CONDITIONED_PASS, Reason.CLEAN):
            return Outcome.PASS
        return Outcome.NOT_JUDGED if self in _NOT_JUDGED else Outcome.FAIL

    @staticmethod
    def worst(reasons: "list[Reason]") -> "Reason":
        """The reason that stands for all of ``reasons``."""
        return min(reasons, key=list(Reason).index, default=Reason.NOTHING)


_NOT_JUDGED = frozenset(
    {
        Reason.UNDECIDED,
        Reason.ILL_CONDITIONED,
        Reason.OUTSIDE_DOMAIN,
        Reason.NOT_RUN,
        Reason.NOT_SUPPORTED,
        Reason.NOTHING,
    }
)
