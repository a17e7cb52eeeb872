"""Hypothesis strategies for cases: half of them explicit short rows that shrink, half sampled longer ones."""

import numpy as np
from hypothesis import strategies as st

from gpu_impls.registry import Implementation
from oracles.catalogue import operator_named
from oracles.formats import Array, format_named
from oracles.rounding import round_floats
from properties.battery import EPS, regimes_for
from properties.case import Case, explicit_case
from properties.masks import MASKS, hide
from properties.regimes import Regime
from properties.source import DrawnSource, normals

SHORT, LONG = 16, 300


def cases(implementation: Implementation, dtype: str) -> st.SearchStrategy[Case]:
    """Cases within the lengths and inputs the implementation takes."""
    return st.one_of(short_cases(implementation, dtype), long_cases(implementation, dtype))


@st.composite
def short_cases(draw: st.DrawFn, implementation: Implementation, dtype: str) -> Case:
    """One row of at most 16 elements, drawn one by one, as explicit bits: a counterexample shrinks to its core."""
    op, fmt = implementation.op, format_named(dtype)
    regime = draw(st.sampled_from(_regimes(implementation, SHORT)))
    n = draw(st.integers(*_lengths(implementation, regime, SHORT)))
    source = DrawnSource(draw)
    row = regime.row(source, n, fmt)
    arrays: dict[str, Array] = {"x": row[None]}
    if "mask" in implementation.parameters and draw(st.booleans()):
        kind = MASKS[draw(st.sampled_from(sorted(MASKS)))]
        mask = kind.build(source, n, draw(st.integers(0, 2 * len(MASKS))))
        arrays = {"x": hide(row, mask, source, fmt)[None], "mask": mask[None]}
    if "residual" in implementation.parameters:
        arrays["residual"] = regime.row(source, n, fmt)[None]
    for name, centre in (("weight", 1.0), ("bias", 0.0)):
        if name in implementation.parameters and draw(st.booleans()):
            arrays[name] = round_floats(centre + normals(source, n), fmt)
    return explicit_case(op, dtype, regime.name, arrays, _draw_eps(draw, op))


@st.composite
def long_cases(draw: st.DrawFn, implementation: Implementation, dtype: str) -> Case:
    """A few rows of up to 300 elements from a seed: structure and special places, not single elements, shrink."""
    op = implementation.op
    regime = draw(st.sampled_from(_regimes(implementation, LONG)))
    masked = "mask" in implementation.parameters and draw(st.booleans())
    return Case(
        op,
        dtype,
        regime.name,
        rows=draw(st.integers(1, 3)),
        n=draw(st.integers(*_lengths(implementation, regime, LONG))),
        seed=draw(st.integers(0, 2**32)),
        mask=draw(st.sampled_from(sorted(MASKS))) if masked else None,
        weight="weight" in implementation.parameters and draw(st.booleans()),
        bias="bias" in implementation.parameters and draw(st.booleans()),
        eps=_draw_eps(draw, op),
    )


def _draw_eps(draw: st.DrawFn, op: str) -> float | None:
    return float(np.float32(draw(st.sampled_from(EPS[op])))) if "eps" in operator_named(op).parameters else None


def _regimes(implementation: Implementation, longest: int) -> list[Regime]:
    fitting = [r for r in regimes_for(implementation.op) if _lengths(implementation, r, longest) != (0, -1)]
    if not fitting:
        raise ValueError(f"{implementation.id} takes no row of up to {longest} elements: nothing to draw")
    return fitting


def _lengths(implementation: Implementation, regime: Regime, longest: int) -> tuple[int, int]:
    """The lengths that both the contract and the regime allow; (0, -1) where there are none."""
    agreed = implementation.contract
    low = max(agreed.min_length, regime.min_length)
    high = min(x for x in (agreed.max_length, regime.max_length, longest) if x is not None)
    return (low, high) if low <= high else (0, -1)
