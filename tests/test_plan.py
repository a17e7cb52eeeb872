"""Plans: which cases a report measures, once each, and with whom."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from faulty import made, total
from gpu_impls.registry import Implementation
from oracles.catalogue import OPERATORS
from oracles.formats import FORMATS
from properties.battery import regimes_for
from properties.case import Case
from properties.recorded import Block
from reports.plan import LONGEST, QUICK_LONGEST, Plan


def anybody(op: str, *dtypes: str, name: str = "anybody") -> Implementation:
    return made(op, total, dtypes or tuple(FORMATS), name=name)


def cases(plan: Plan) -> list[Case]:
    return [case for case, _ in plan.units()]


def test_every_case_comes_once_with_everybody_who_takes_its_dtype():
    wide, narrow = anybody("max"), anybody("max", "float16", name="narrow")
    units = list(Plan((wide, narrow, anybody("var", "float64"))).units())
    assert set(Counter(case.id for case, _ in units).values()) == {1}
    assert {(c.op, c.dtype): [t.name for t in takers] for c, takers in units} == {
        **{("max", dtype): ["anybody"] for dtype in FORMATS},
        ("max", "float16"): ["anybody", "narrow"],
        ("var", "float64"): ["anybody"],
    }


@pytest.mark.parametrize("op", OPERATORS)
def test_every_regime_meant_for_an_operator_is_measured(op: str):
    planned = {case.regime for case in cases(Plan((anybody(op, "float32"),)))}
    assert planned == {r.name for r in regimes_for(op)} | {"real_rows"}


@pytest.mark.parametrize(("quick", "longest"), [(False, LONGEST), (True, QUICK_LONGEST)])
def test_lengths_end_where_a_report_would_take_too_long(quick: bool, longest: int):
    planned = cases(Plan((anybody("softmax", "float32"),), quick=quick))
    lengths = {c.n for c in planned if c.regime == "lengths"}
    assert max(lengths) == longest
    assert {0, 1, 33} <= lengths


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, set(FORMATS)),
        ({"quick": True}, {"float32"}),
        ({"dtypes": ("float16", "float64")}, {"float16", "float64"}),
        ({"dtypes": ("float16",), "quick": True}, {"float16"}),
    ],
    ids=["all", "quick", "two", "quick and one"],
)
def test_dtypes(options: dict, expected: set[str]):
    assert {c.dtype for c in cases(Plan((anybody("sum"),), **options))} == expected


def test_only_the_regimes_asked_for():
    planned = cases(Plan((anybody("sum"),), regimes=("gap", "absorbed", "real_rows")))
    assert {c.regime for c in planned} == {"absorbed", "real_rows"}  # gap is for the softmax family


def test_a_dtype_nobody_takes_has_no_cases():
    assert cases(Plan((anybody("sum", "float16"),), dtypes=("float64",))) == []


@pytest.mark.parametrize("op", ["sum", "softmax", "rms_norm"])
def test_a_seed_draws_other_rows_everywhere_but_in_recordings(op: str):
    plan = Plan((anybody(op, "float32"),), quick=True)
    pairs = list(zip(cases(plan), cases(replace(plan, seed=5)), strict=True))
    same = {a.regime for a, b in pairs if a.inputs.x.size and a.inputs.digest() == b.inputs.digest()}
    assert same == {"real_rows"}
    assert {a.regime for a, b in pairs if a.id != b.id} >= {"standard_normal", "specials"}


def test_recorded_rows_go_to_the_operators_of_their_families():
    block = Block("mine", np.ones((3, 4)), frozenset({"softmax"}), weight=np.ones(4))
    plan = Plan((anybody("sum", "float32"), anybody("max", "float32"), anybody("logsumexp", "float32")),
                regimes=("user_rows",), blocks=(block,))  # fmt: skip
    assert [c.id for c in cases(plan)] == ["logsumexp:float32:user_rows:3x4:s0:block=mine"]


def test_norms_get_the_weights_of_a_block_and_others_do_not():
    block = Block("mine", np.ones((3, 4)), weight=np.ones(4))
    plan = Plan((anybody("rms_norm", "float32"), anybody("var", "float32")), regimes=("user_rows",), blocks=(block,))
    assert [c.id for c in cases(plan)] == [
        "rms_norm:float32:user_rows:3x4:s0:weight:eps=1e-06:block=mine",
        "var:float32:user_rows:3x4:s0:block=mine",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtypes": ("float8",)}, "unknown dtype 'float8': expected one of float16, "),
        ({"regimes": ("gaps",)}, "unknown regime 'gaps': expected one of standard_normal, .*user_rows"),
        ({"regimes": ("user_rows",)}, "regime user_rows needs rows: give an .npz file with --data"),
    ],
    ids=["dtype", "regime", "user_rows"],
)
def test_what_does_not_exist_is_refused(options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        Plan((anybody("sum"),), **options)
