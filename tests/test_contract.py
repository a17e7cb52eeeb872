"""Contracts: every claim is validated; a message names the value, what was expected, and the known ones."""

import re
from typing import Any

import pytest

from gpu_impls.contract import CLAIMS, Contract, contract
from oracles.formats import FORMATS

# Wrong claims, and what the message must say in this order.
REFUSED = {
    "unknown-keyword": ({"sumation": "tree"}, ("unknown keyword sumation", "expected some of name, backend", "shift")),
    "two-unknown-keywords": ({"b": 1, "a": 2}, ("unknown keyword a, b",)),
    "backend": ({"backend": "tpu"}, ("backend='tpu'", "expected one of 'numpy', 'torch', 'jax', 'cupy'")),
    "accumulate": ({"accumulate": "float8"}, ("unknown dtype 'float8'", "float16, bfloat16, float32, float64")),
    "masked_row": ({"masked_row": "one"}, ("masked_row='one'", "expected one of 'zero', 'nan'")),
    "subnormals": ({"subnormals": "daz"}, ("subnormals='daz'", "expected one of 'keep', 'flush'")),
    "cast": ({"cast": "after_weight"}, ("cast='after_weight'", "expected one of None, 'before_weight'")),
    "statistics": ({"statistics": "stored"}, ("statistics='stored'", "expected one of None, 'rounded'")),
    "shift": ({"shift": "fused"}, ("shift='fused'", "expected one of None, 'unfused'")),
    "summation-unknown": ({"summation": "pairwise"}, ("summation='pairwise'", "'lanes:T'", "'tree'", "'compensated'")),
    "summation-no-lanes": ({"summation": "lanes:0"}, ("summation='lanes:0'", "T >= 1")),
    "summation-bare": ({"summation": "lanes"}, ("summation='lanes'",)),
    "domain-order": ({"domain": (2.0, 1.0)}, ("domain=(2.0, 1.0)", "expected (lo, hi) with 0 < lo < hi")),
    "domain-zero": ({"domain": (0.0, 1.0)}, ("domain=(0.0, 1.0)",)),
    "domain-nan": ({"domain": (1.0, float("nan"))}, ("domain=(1.0, nan)",)),
    "lengths-order": ({"min_length": 5, "max_length": 4}, ("min_length=5, max_length=4", "0 <= min <= max")),
    "lengths-negative": ({"min_length": -1}, ("min_length=-1",)),
    "max_ulp-low": ({"max_ulp": 0.49}, ("max_ulp=0.49 for float32", "less than 0.5")),
    "max_ulp-nan": ({"max_ulp": float("nan")}, ("max_ulp=nan for float32",)),
    "dtypes-number": ({"dtypes": 5}, ("dtypes=(5,)", "expected some of float16, bfloat16")),
    "dtypes-numbers": ({"dtypes": ("float32", 5)}, ("dtypes=('float32', 5)", "expected some of float16")),
    "dtypes-nested": ({"dtypes": [["float32"]], "max_ulp": 2}, ("dtypes=(['float32'],)",)),
    "dtypes-none": ({"dtypes": None}, ("dtypes=(None,)", "expected some of float16")),
    "accumulate-type": ({"accumulate": 32}, ("accumulate=32", "expected None or one of float16, bfloat16")),
    "domain-text": ({"domain": ("a", "b")}, ("domain=('a', 'b')", "expected None or two numbers (lo, hi)")),
    "domain-one": ({"domain": 5}, ("domain=5", "expected None or two numbers")),
    "domain-three": ({"domain": (1, 2, 3)}, ("domain=(1, 2, 3)", "expected None or two numbers")),
    "lengths-text": ({"min_length": "a"}, ("min_length='a'", "expected a whole number")),
    "lengths-fraction": ({"max_length": 1.5}, ("max_length=1.5", "expected None or a whole number")),
    "lengths-bool": ({"min_length": True}, ("min_length=True", "expected a whole number")),
    "max_ulp-text": ({"max_ulp": "a"}, ("max_ulp='a'", "expected a number, or one by dtype")),
    "max_ulp-none": ({"max_ulp": None}, ("max_ulp=None", "expected a number")),
    "max_ulp-values": ({"max_ulp": {"float32": "2"}}, ("max_ulp={'float32': '2'}", "expected a number")),
    "flags": ({"deterministic": 0}, ("deterministic=0", "expected True or False")),
    "flags-text": ({"contiguous_only": "no"}, ("contiguous_only='no'", "expected True or False")),
    "summation-type": ({"summation": 32}, ("summation=32", "expected None or text")),
    "source-type": ({"source": None}, ("source=None", "expected text")),
    "deviates-list": ({"deviates": ["masks"]}, ("deviates=['masks']", "expected reasons by property or regime")),
    "known_faulty-reason": ({"known_faulty": {"accuracy": None}}, ("known_faulty={'accuracy': None}", "reasons")),
    "max_ulp-dtype": ({"max_ulp": {"float23": 1.0}}, ("unknown dtype 'float23'", "float32")),
}


@pytest.mark.parametrize(("claims", "words"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_claim_is_refused_in_words(claims: dict[str, Any], words: tuple[str, ...]):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, words))):
        contract(**{"dtypes": ("float32",), **claims})


def test_an_unknown_dtype_lists_the_known_ones():
    with pytest.raises(ValueError, match=f"unknown dtype 'float8': expected one of {', '.join(FORMATS)}"):
        contract(("float32", "float8"))


def test_no_dtype_at_all_lists_the_known_ones():
    with pytest.raises(ValueError, match=f"dtypes is empty: name at least one of {', '.join(FORMATS)}"):
        contract(())


def test_an_unknown_keyword_lists_every_claim():
    with pytest.raises(ValueError, match="unknown keyword") as error:
        contract(("float32",), nothing=1)
    assert all(claim in str(error.value) for claim in CLAIMS)


ACCEPTED = {
    "accumulate": "float64",
    "masked_row": "nan",
    "domain": (1e-15, 1e15),
    "subnormals": "flush",
    "deterministic": False,
    "batch_invariant": False,
    "min_length": 1,
    "max_length": 1,
    "contiguous_only": True,
    "summation": "lanes:256",
    "cast": "before_weight",
    "shift": "unfused",
    "through": "float32",
    "statistics": "rounded",
    "source": "a paper",
    "deviates": {"masks": "no mask"},
    "known_faulty": {"accuracy": "on purpose"},
}


@pytest.mark.parametrize(("claim", "value"), ACCEPTED.items(), ids=ACCEPTED)
def test_a_claim_is_kept(claim: str, value: Any):
    assert getattr(contract(("float32",), **{claim: value}), claim) == value
    assert getattr(Contract(("float32",)), claim) != value


@pytest.mark.parametrize("dtypes", ["float32", ("float32",), ["float32"]], ids=["word", "tuple", "list"])
def test_one_dtype_may_be_given_in_any_way(dtypes: Any):
    assert contract(dtypes).dtypes == ("float32",)


@pytest.mark.parametrize(
    ("claimed", "kept"),
    [(2, {"float32": 2.0, "bfloat16": 2.0}), ({"bfloat16": 0.5}, {"bfloat16": 0.5}), ({}, {})],
    ids=["number", "by-dtype", "none"],
)
def test_a_budget_is_a_number_or_one_by_dtype(claimed: Any, kept: dict[str, float]):
    assert contract(("float32", "bfloat16"), max_ulp=claimed).max_ulp == kept


@pytest.mark.parametrize(
    ("dtype", "claims", "inside"),
    [
        ("bfloat16", {}, "float32"),
        ("float32", {}, "float32"),
        ("float64", {}, "float64"),
        ("bfloat16", {"accumulate": "bfloat16"}, "bfloat16"),
        ("float32", {"accumulate": "float64"}, "float64"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value.values()) or "default",
)
def test_the_accumulator_follows_storage_unless_claimed(dtype: str, claims: dict[str, str], inside: str):
    agreed = contract((dtype,), **claims)
    assert agreed.accumulate_in(dtype).name == inside
    assert agreed.error_model(dtype).accumulate.name == inside


def test_the_claims_reach_the_error_model():
    claims = {"subnormals": "flush", "summation": "tree", "cast": "before_weight", "shift": "unfused", "domain": (1, 2)}
    claims |= {"through": "float32", "statistics": "rounded"}
    model = contract(("float32",), **claims).error_model("float32")
    assert (model.flush, model.summation) == (True, "tree")
    assert model.rounded_statistics
    assert model.through is FORMATS["float32"]
    assert (model.cast_before_weight, model.unfused_shift, model.bounded_domain) == (True, True, True)
    default = contract(("float32",)).error_model("float32")
    assert (default.flush, default.summation, default.bounded_domain) == (False, None, False)


@pytest.mark.parametrize(
    ("claims", "taken"),
    [({}, range(6)), ({"min_length": 2}, range(2, 6)), ({"min_length": 1, "max_length": 3}, range(1, 4))],
    ids=["any", "from-2", "1-to-3"],
)
def test_the_lengths_it_takes(claims: dict[str, int], taken: range):
    agreed = contract(("float32",), **claims)
    assert [n for n in range(6) if agreed.takes_length(n)] == list(taken)


def test_expected_failures_are_deviations_and_faults():
    agreed = contract(("float32",), deviates={"masks": "a"}, known_faulty={"accuracy": "b"})
    assert agreed.expected_failures == {"masks": "a", "accuracy": "b"}
