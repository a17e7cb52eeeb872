"""Cases: an ID gives back the case, and a case the same bits everywhere, however many rows stand beside."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.catalogue import OPERATORS
from oracles.formats import FORMATS
from properties.case import RECORDED, Case, explicit_case, to_hex
from properties.masks import MASKS, hostile_values
from properties.regimes import REGIMES

words = st.text("abcXYZ019_.-", min_size=1, max_size=8)
hex_words = st.lists(st.integers(0, 0xFFFF).map("{:04x}".format), max_size=4).map(".".join)
flags = st.booleans()


@st.composite
def any_case(draw: st.DrawFn) -> Case:
    """Every field varies, within what the operator takes."""
    regime = draw(st.sampled_from([*REGIMES, *RECORDED]))
    x = draw(st.none() | hex_words)
    op = draw(st.sampled_from(sorted(OPERATORS)))
    takes = {*OPERATORS[op].optional, *OPERATORS[op].parameters}

    def if_taken(name: str, strategy: st.SearchStrategy) -> Any:
        return draw(strategy) if name in takes else None

    return Case(
        op=op,
        dtype=draw(st.sampled_from(list(FORMATS))),
        regime=regime,
        rows=draw(st.integers(0, 10**6)),
        n=draw(st.integers(0, 10**6)),
        seed=draw(st.integers(0, 2**64)) if x is None else 0,
        mask=if_taken("mask", st.none() | st.sampled_from(list(MASKS))),
        weight=bool(if_taken("weight", flags)),
        bias=bool(if_taken("bias", flags)),
        eps=if_taken("eps", st.none() | st.floats(0, 1e3, width=32)),
        block=draw(words if regime in RECORDED else st.none() | words),
        x=x,
        mask_bits=if_taken("mask", st.none() | st.text("01", max_size=5)),
        weight_bits=if_taken("weight", st.none() | hex_words),
        bias_bits=if_taken("bias", st.none() | hex_words),
    )


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(any_case())
def test_an_id_gives_back_the_case(case: Case):
    assert Case.parse(case.id) == case
    assert str(case) == case.id
    assert " " not in case.id


IDS = [
    "softmax:float32:rising_tiles:4x256:s7:mask=prefix",
    "rms_norm:bfloat16:outlier_channels:8x64:s0:weight:eps=1e-06",
    "layer_norm:float32:real_rows:48x384:s0:eps=1e-12:block=ln_x2",
    "sum:bfloat16:all_equal:1x3:x=3f80.3f80.3f80",
    "softmax:float16:masks:2x5:s0:mask=each",
    "max:float64:lengths:0x8:s0",
]


@pytest.mark.parametrize("text", IDS)
def test_ids_read_as_they_are_printed(text: str):
    assert Case.parse(text).id == text


def test_what_is_left_out_has_a_default():
    assert Case.parse("rms_norm:float32:standard_normal:1x2:s0").eps == float(np.float32(1e-6))
    assert Case.parse("layer_norm:float32:standard_normal:1x2").id.endswith(":1x2:s0:eps=1e-05")
    assert Case.parse("softmax:float32:masks:1x2").mask == "each"
    assert Case.parse("softmax:float32:standard_normal:1x2").eps is None


UNREADABLE = {
    "": "cannot read case '': expected operator:dtype:regime:ROWSxN:sSEED, as reports print",
    "softmax:float32:gap": "cannot read case 'softmax:float32:gap': expected operator:dtype:regime:ROWSxN",
    "softmax:float32:gap:4by5:s0": "cannot read case .*: expected operator",
    "softmin:float32:gap:4x5:s0": "unknown operator 'softmin': expected one of sum, ",
    "softmax:float8:gap:4x5:s0": "unknown dtype 'float8': expected one of float16, ",
    "softmax:float32:gaps:4x5:s0": "unknown regime 'gaps': expected one of standard_normal, .*, user_rows",
    "softmax:float32:gap:4x5:7": "cannot read '7' in case .*: expected some of sSEED, mask, weight",
    "softmax:float32:gap:4x5:s-1": "cannot read 's-1' in case",
    "softmax:float32:gap:4x5:s0:masks=all": "cannot read 'masks=all' in case",
    "softmax:float32:gap:4x5:s0:rows=3": "cannot read 'rows=3' in case",
    "rms_norm:float32:gap:4x5:s0:weight=1": "cannot read 'weight=1' in case",
    "rms_norm:float32:gap:4x5:s0:eps=tiny": "eps='tiny' in case .* is not a number",
    "rms_norm:float32:gap:4x5:s0:eps=-1e-6": "eps=-1e-06: expected a number from 0 to the largest float32",
    "rms_norm:float32:gap:4x5:s0:eps=nan": "eps=nan: expected a number from 0",
    "rms_norm:float32:gap:4x5:s0:eps=1e39": r"eps=1e\+39: expected a number from 0",
    "sum:float32:real_rows:4x5:s0": "real_rows are read from a block: expected block=NAME",
    "sum:float32:user_rows:4x5:s0": "user_rows are read from a block: expected block=NAME",
}


@pytest.mark.parametrize(("text", "message"), UNREADABLE.items(), ids=UNREADABLE)
def test_what_cannot_be_read_is_named(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        Case.parse(text)


NOT_BUILDABLE = {
    "softmax:float32:gap:4x1:s0": "regime gap has no rows of length 1: expected 2 to 300",
    "softmax:float32:standard_normal:1x2:s0:mask=sparse": "unknown mask 'sparse': expected one of none, prefix",
    "softmax:float32:standard_normal:1x1:x=zz": "'zz' is not a list of float32 bit patterns in hex, joined by dots",
    "softmax:float32:standard_normal:1x1:x=3f8000000": "is not a list of float32 bit patterns",
    "softmax:float32:standard_normal:1x3:x=3f800000": "x holds 1 elements: expected 1x3",
    "softmax:float32:standard_normal:1x1:x=3f800000:mask_bits=11": "mask_bits holds 2 elements: expected 1x1",
    "rms_norm:float32:standard_normal:1x1:x=3f800000:weight_bits=": "weight_bits holds 0 elements: expected 1",
    "softmax:float32:standard_normal:1x1:x=3f800000:mask_bits=2": "mask_bits=2 in case .*: expected 0 and 1 only",
    "softmax:float32:standard_normal:1x1:s0:mask_bits=1": "mask_bits in case .* without x: expected x=BITS too",
    "softmax:float32:standard_normal:1x1:mask=all:x=3f800000": "mask in case .* beside x: expected ",
    "softmax:float32:standard_normal:100000x100000:s0": "is too large: expected at most 16,777,216 rows",
    "sum:float32:real_rows:2x384:s0:block=ln_x9": "real_rows has no block 'ln_x9': expected one of ln_x0, ",
    "sum:float32:real_rows:2x5:s0:block=ln_x0": r"block ln_x0 has rows of shape \(48, 384\)",
    "sum:float32:real_rows:48x384:s1:block=ln_x0": r"block ln_x0 has rows of shape \(48, 384\)",
    "sum:float32:user_rows:2x5:s0:block=mine": "user_rows has no block 'mine': .*none; give the file with --data",
}


@pytest.mark.parametrize(("text", "message"), NOT_BUILDABLE.items(), ids=NOT_BUILDABLE)
def test_inputs_that_do_not_exist_are_refused_in_words(text: str, message: str):
    case = Case.parse(text)
    with pytest.raises(ValueError, match=message):
        _ = case.inputs


PINNED = {
    "softmax:float32:rising_tiles:2x4:s7:mask=prefix": "7f61b1e6 469c4e09 ff800000 40e08f45",
    "rms_norm:bfloat16:outlier_channels:1x4:s0:weight:bias": "be43 bfc1 c216 bf89",
    "sum:float16:standard_normal:1x3:s1": "379f b945 37d2",
    "layer_norm:float32:real_rows:1x384:s0:block=ln_x2": "bc099963 3d0bcdad bbbc12a5 bd4b27aa",
}


@pytest.mark.parametrize(("text", "bits"), PINNED.items(), ids=PINNED)
def test_the_bits_are_the_same_on_every_machine(text: str, bits: str):
    case = Case.parse(text)
    assert case.fmt.hex(case.inputs.x[0, :4]) == bits.split()


def test_weights_and_biases_are_the_same_on_every_machine():
    inputs = Case.parse("rms_norm:bfloat16:outlier_channels:1x4:s0:weight:bias").inputs
    assert inputs.fmt.hex(inputs.arrays["weight"]) == ["3f32", "3fab", "3fb8", "0000"]
    assert inputs.fmt.hex(inputs.arrays["bias"]) == ["bf7d", "be8b", "3ee2", "0000"]


@pytest.mark.parametrize("mask", [None, "each", "random"])
@pytest.mark.parametrize("regime", REGIMES)
def test_a_row_does_not_depend_on_how_many_others_there_are(regime: str, mask: str | None):
    many = Case("softmax", "float32", regime, rows=9, n=13, seed=3, mask=mask)
    few = replace(many, rows=4)
    assert few.inputs.digest() == many.inputs.rows(0, 4).digest()
    assert few.inputs.digest() == replace(few).inputs.digest()


@pytest.mark.parametrize("other", [{"seed": 4}, {"regime": "heavy_tail"}, {"mask": "random"}, {"n": 12}], ids=str)
def test_another_case_has_other_rows(other: dict):
    case = Case("softmax", "float32", "standard_normal", rows=2, n=13, seed=3)
    assert case.inputs.digest() != replace(case, **other).inputs.digest()


@pytest.mark.parametrize("dtype", FORMATS)
def test_what_a_mask_hides_is_hostile(dtype: str):
    case = Case("softmax", dtype, "moderate_logits", rows=27, n=24, mask="each")
    seen = set()
    for x, mask in zip(case.inputs.x, case.inputs.visible, strict=True):
        hostile = case.fmt.hex(hostile_values(x, mask, case.fmt))
        hidden = case.fmt.hex(x[~mask])
        assert set(hidden) <= set(hostile)
        seen |= {hostile.index(bits) for bits in hidden}
    assert seen == set(range(6))


@pytest.mark.parametrize("dtype", FORMATS)
def test_explicit_arrays_come_back_bit_for_bit(dtype: str):
    """NaN payloads and signs of zeros included."""
    fmt = FORMATS[dtype]
    tricky = [0.0, -0.0, np.nan, -np.nan, np.inf, fmt.smallest_subnormal, fmt.largest, 1.0]
    x = np.array(tricky, fmt.dtype).reshape(2, 4)
    x.view(fmt.bits_dtype)[0, 2] |= 5
    affine = {"x": x, "weight": x[0], "bias": x[1]}
    case = explicit_case("rms_norm", dtype, "specials", affine, eps=0.25)
    again = Case.parse(case.id)
    assert again == case
    assert {k: to_hex(v, fmt) for k, v in again.inputs.arrays.items()} == {k: to_hex(v, fmt) for k, v in affine.items()}
    assert again.inputs.parameters == {"eps": 0.25}


def test_an_explicit_mask_comes_back():
    mask = np.array([[True, False] * 2] * 2)
    case = explicit_case("softmax", "float32", "specials", {"x": np.zeros((2, 4), np.float32), "mask": mask})
    assert Case.parse(case.id).inputs.visible.tolist() == mask.tolist()


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0), (3, 1)])
def test_explicit_arrays_may_be_empty(shape: tuple[int, int]):
    case = explicit_case("softmax", "float32", "gap", {"x": np.ones(shape, np.float32), "mask": np.ones(shape, bool)})
    assert Case.parse(case.id).inputs.x.shape == shape
    assert re.search(r":x=[^:]*:mask_bits=", case.id)


def test_inputs_are_read_only_and_made_once():
    inputs = Case.parse("rms_norm:float32:gap:1x4:s0:weight").inputs
    for array in inputs.arrays.values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    case = Case("sum", "float32", "gap", 1, 4)
    assert case.inputs is case.inputs


@pytest.mark.parametrize("op", ["layer_norm", "softmax"])
def test_masks_are_given_to_those_who_take_them(op: str):
    case = Case(op, "float32", "masks", rows=2, n=3)
    assert case.mask == ("each" if op == "softmax" else None)
    assert Case.parse(case.id) == case
