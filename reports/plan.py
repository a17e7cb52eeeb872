"""What a report measures: the cases of every (operator, dtype), and the implementations that stand them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from gpu_impls.registry import Implementation
from oracles.catalogue import operator_named
from oracles.formats import FORMATS, format_named
from oracles.truth import Truth, compute_truth
from properties.battery import (
    affine_cases,
    block_case,
    length_cases,
    mask_cases,
    real_cases,
    regime_cases,
    sized_cases,
    special_cases,
)
from properties.case import MOST_ELEMENTS, RECORDED, Case
from properties.recorded import Block
from properties.regimes import REGIMES

# The longest rows of a default report: implementations that loop over columns in Python set the pace.
LONGEST = 4097
LENGTHS = (33, 1025)
QUICK_LENGTHS = (33,)
QUICK_LONGEST = 129


@dataclass(frozen=True)
class Plan:
    """Filters and sizes of a report.

    ``lengths`` and ``rows`` are of the regimes; ``at_size`` means these alone, whatever their size,
    unless ``usual_too`` adds the lengths, specials, masks and recorded rows of their usual size. Without
    ``escalate`` nothing is evaluated twice: what whole arrays leave open stays open. ``screen``: a GPU, where
    there is one, settles what it can (properties.screen). ``lengths`` and ``longest`` row stand in for those of
    ``quick`` or not; a baseline records all three.

    Raises:
        ValueError: a dtype or regime that does not exist.
    """

    implementations: tuple[Implementation, ...]
    dtypes: tuple[str, ...] = ()
    regimes: tuple[str, ...] = ()
    seed: int = 0
    quick: bool = False
    blocks: tuple[Block, ...] = ()
    lengths: tuple[int, ...] = ()
    longest: int = 0
    rows: int = 8
    at_size: bool = False
    usual_too: bool = False
    escalate: bool = True
    screen: bool = False

    def __post_init__(self) -> None:
        lengths, longest = (QUICK_LENGTHS, QUICK_LONGEST) if self.quick else (LENGTHS, LONGEST)
        object.__setattr__(self, "lengths", self.lengths or lengths)
        object.__setattr__(self, "longest", self.longest or longest)
        for name in self.dtypes:
            format_named(name)
        known = (*REGIMES, *RECORDED)
        for name in self.regimes:
            if name not in known:
                raise ValueError(f"unknown regime {name!r}: expected one of {', '.join(known)}")
        if max(self.lengths) > MOST_ELEMENTS:
            raise ValueError(f"rows of {max(self.lengths)} elements: expected at most {MOST_ELEMENTS:,}")
        if "user_rows" in self.regimes and not self.blocks:
            raise ValueError("regime user_rows needs rows: give an .npz file with --data")

    def units(self) -> Iterator[tuple[Case, list[Implementation]]]:
        """Each case once, with everybody who stands it, so that its truth is computed once."""
        for op in dict.fromkeys(i.op for i in self.implementations):
            for dtype in self.dtypes or (("float32",) if self.quick else tuple(FORMATS)):
                takers = [i for i in self.implementations if i.op == op and dtype in i.contract.dtypes]
                for case in self._cases(op, dtype) if takers else ():
                    if not self.regimes or case.regime in self.regimes:
                        yield case, takers

    def truths(self, case: Case) -> tuple[Truth, ...]:
        return case.truths if self.escalate else compute_truth(case.operator, case.inputs, escalate=False)

    def _cases(self, op: str, dtype: str) -> Iterator[Case]:
        if self.at_size:
            yield from sized_cases(op, dtype, self.lengths, self.rows, self.seed)
            if not self.usual_too:
                return
        else:
            yield from regime_cases(op, dtype, self.lengths, self.seed, self.rows)
        yield from chain(
            length_cases(op, dtype, self.longest, seed=self.seed),
            special_cases(op, dtype, seed=self.seed),
            mask_cases(op, dtype, seed=self.seed),
            affine_cases(op, dtype, lengths=(33,), seed=self.seed),
            real_cases(op, dtype, rows=8 if self.quick else 40),
        )
        for block in self.blocks:
            if operator_named(op).family in block.families:
                yield block_case(op, dtype, "user_rows", block)
