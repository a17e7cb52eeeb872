"""Bad case IDs: ``trueulp replay`` answers each with exit code 2 and one line, whatever is wrong with it."""

import contextlib
import io
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reporting import run

SUM = "sum:float32:standard_normal:8x33:s0"
SOFTMAX = "softmax:float32:standard_normal:1x3"
NORM = "rms_norm:float32:standard_normal:8x33:s0"
ONES = "x=3f800000.3f800000.3f800000"


def refusal(case: str, *arguments: str) -> str:
    """The one line that a case is refused with, or nothing where it is replayed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run("replay", case, *arguments)
    lines = err.getvalue().splitlines()
    assert (code, len(lines)) in [(0, 0), (2, 1)]
    assert code == 0 or lines[0].startswith("trueulp: ")
    return "".join(lines)


BAD = {
    "": "cannot read case ''",
    "sum": "cannot read case 'sum': expected operator:dtype:regime:ROWSxN:sSEED, as reports print",
    "sum:float32:standard_normal:8by33:s0": "expected operator:dtype:regime:ROWSxN:sSEED",
    "sum:float32:standard_normal:-8x33:s0": "expected operator:dtype:regime:ROWSxN:sSEED",
    "softmin:float32:standard_normal:8x33:s0": "unknown operator 'softmin': expected one of sum, ",
    "sum:float8:standard_normal:8x33:s0": "unknown dtype 'float8': expected one of float16, ",
    "sum:float32:normal:8x33:s0": "unknown regime 'normal': expected one of standard_normal, ",
    "sum:float32:real_rows:8x33:s0": "expected block=NAME",
    "sum:float32:user_rows:8x33:s0:block=": "user_rows has no block ''",
    "sum:float32:user_rows:8x33:s0:block=a": "give the file with --data",
    "sum:float32:real_rows:8x33:s0:block=a": "real_rows has no block 'a': expected one of ln_x0, ",
    "sum:float32:real_rows:8x33:s0:block=ln_x0": "block ln_x0 has rows of shape (48, 384)",
    "softmax:float32:gap:8x1:s0": "regime gap has no rows of length 1: expected 2 to 300",
    "softmax:float32:gap:8x9:s-1": "cannot read 's-1'",
    "softmax:float32:gap:8x9:s0:": "cannot read ''",
    "softmax:float32:gap:8x9:s0:mask": "cannot read 'mask'",
    "softmax:float32:gap:8x9:s0:mask=most": "unknown mask 'most': expected one of none, prefix, ",
    "softmax:float32:gap:8x9:s0:rows=3": "cannot read 'rows=3'",
    "softmax:float32:gap:8x9:s0:weight": "softmax takes no weight",
    "sum:float32:gap:8x9:s0:eps=1": "sum takes no eps",
    f"{NORM}:mask=each": "rms_norm takes no mask",
    f"{NORM}:weight=1": "cannot read 'weight=1'",
    f"{NORM}:eps": "cannot read 'eps'",
    f"{NORM}:eps=": "eps='' in case",
    f"{NORM}:eps=tiny": "eps='tiny' in case",
    **{f"{NORM}:eps={eps}": "expected a number from 0 to the largest float32" for eps in ("-1", "nan", "inf", "1e39")},
    f"{SUM}@": "cannot read place ''",
    f"{SUM}@8": "place '8' is outside of case",
    f"{SUM}@-1": "cannot read place '-1'",
    f"{SUM}@1.-1": "cannot read place '1.-1'",
    f"{SUM}@1.33": "place '1.33' is outside of case",
    f"{SUM}@1.2.3": "cannot read place '1.2.3'",
    f"{SUM}@one": "expected CASE@row or CASE@row.element",
    f"{SUM}@1@2": "cannot read place '1@2'",
    f"{SUM}@²": "cannot read place '²'",
    f"{SOFTMAX}:x=": "x holds 0 elements: expected 1x3",
    f"{SOFTMAX}:x=3f800000": "x holds 1 elements: expected 1x3",
    f"{SOFTMAX}:x=one.two.three": "is not a list of float32 bit patterns in hex, joined by dots",
    f"{SOFTMAX}:x=-1.0.0": "is not a list of float32 bit patterns",
    f"{SOFTMAX}:x=3f8000000.0.0": "is not a list of float32 bit patterns",
    f"{SOFTMAX}:{ONES}:mask_bits=01": "mask_bits holds 2 elements: expected 1x3",
    f"{SOFTMAX}:{ONES}:mask_bits=01x": "mask_bits=01x",
    f"{SOFTMAX}:s0:mask_bits=011": "expected x=BITS too",
    f"{SOFTMAX}:{ONES}:mask=prefix": "beside x",
    f"rms_norm:float32:standard_normal:1x3:{ONES}:weight_bits=0": "weight_bits holds 1 elements: expected 3",
}


@pytest.mark.parametrize(("case", "message"), BAD.items(), ids=BAD)
def test_a_bad_case_is_refused_in_words(case: str, message: str):
    assert message in refusal(case)


NINES = "9" * 5000  # more digits than Python reads
SHAPES = ["999999999x999999999", "99999x99999", "1x99999999999", "99999999999x0", f"{NINES[:40]}x1", f"1x{NINES}"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s[:22])
def test_a_case_too_large_for_any_memory_is_refused_at_once(shape: str):
    started = time.monotonic()
    line = refusal(f"sum:float32:standard_normal:{shape}:s0")
    assert "expected at most 16,777,216" in line or "4300 digits" in line
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--impl", "nobody"), "no implementation matches 'nobody'"),
        (("--op", "max"), "no implementation of sum takes float32 here: there are none"),
        (("--impl", "bfloat16_accumulator"), "there are bfloat16_accumulator (bfloat16)"),
        (("--data", "absent.npz"), "no such file: absent.npz"),
    ],
    ids=["impl", "op", "dtype of the impl", "data"],
)
def test_a_case_that_nobody_here_takes_is_refused(arguments: tuple[str, ...], message: str):
    assert message in refusal(SUM, *arguments)


GOOD = [
    ("softmax", "float32", "moderate_logits", "2x5", "s3", "mask=each"),
    ("rms_norm", "bfloat16", "outlier_channels", "2x5", "s0", "weight", "bias", "eps=1e-06"),
    ("layer_norm", "float32", "real_rows", "2x384", "s0", "weight", "eps=1e-12", "block=ln_x2"),
    ("max", "float16", "all_equal", "1x3", "x=3c00.0000.fc00", "mask_bits=011@0.1"),
]


@st.composite
def nearly_cases(draw: st.DrawFn) -> str:
    """A good case with one field, not the shape, edited, left out or doubled."""
    fields = list(draw(st.sampled_from(GOOD)))
    place = draw(st.sampled_from([k for k in range(len(fields)) if k != 3]))
    text = fields[place]
    start, stop = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    typed = draw(st.text(st.sampled_from("019ax=.:@-_ [²é\x00\ud800\n"), max_size=3))
    fields[place] = draw(st.sampled_from([text[:start] + typed + text[stop:], f"{text}:{text}"]))
    return ":".join(fields)


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(nearly_cases())
@example("max:float16:all_equal:1x3:x=[/]")
def test_a_case_mistyped_anyhow_is_replayed_or_refused(case: str):
    refusal(case)


@pytest.mark.parametrize("fields", GOOD, ids=":".join)
def test_the_cases_that_are_mistyped_are_good(fields: tuple[str, ...]):
    assert refusal(":".join(fields)) == ""
