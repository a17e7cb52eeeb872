"""``trueulp replay``: one element digit by digit, whichever way the case names it."""

import re

import numpy as np
import pytest
from reporting import KERNELS, run

from properties.case import Case
from reports.replay import parse_place

THIRD = "mean:float32:standard_normal:1x3:x=3f800000.00000000.00000000"  # 1, 0, 0
MASKED = "softmax:float32:masks:72x9:s0:mask=each"
NORM = "layer_norm:bfloat16:standard_normal:1x3:eps=0.25:x=3f80.4000.4080:weight_bits=3f80.bf80.0000:bias_bits=0.0.3f80"
SUM = "sum:float32:standard_normal:8x33:s0"


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]):
    """Replays a case; gives, per implementation, what stands behind each word."""

    def replay(*arguments: str) -> dict[str, dict[str, str]]:
        assert run("replay", *arguments) == 0
        head, *sections = capsys.readouterr().out.strip().split("\n\n")
        assert head == arguments[0].partition("@")[0]
        return {name: lines(body) for name, _, body in (section.partition("\n") for section in sections)}

    return replay


def lines(body: str) -> dict[str, str]:
    return {line[2:14].strip(): line[15:] for line in body.splitlines()}


def test_every_digit_of_a_third(told):
    """1/3 in float32 is 0x3eaaaaab, a third of an ULP (2**-25) too large."""
    line = told(THIRD, "--impl", "pairwise")["pairwise"]
    assert line["element"] == "y[0]"
    assert (line["x"], line["x bits"]) == ("1.0 0.0 0.0", "3f800000 00000000 00000000")
    assert line["got"] == "0.33333334 (0x3eaaaaab)"
    assert line["expected"] == "0.33333334 (0x3eaaaaab), correctly rounded (proved)"
    assert line["exact"].startswith("0.333333333333333333333333333333 (+- ")
    assert line["error"] == "0.3333 ULP (0.3333 ULP of the row's largest output)"
    assert (line["condition"], line["verdict"]) == ("1", "pass: within the bound")
    allowed, bound, used = map(float, re.findall(r"[\d.]+e?-?\d*", line["allowed"]))
    assert allowed == pytest.approx(bound + 2.0**-26, rel=1e-3)
    assert used == pytest.approx(2.0**-25 / 3 / allowed, rel=1e-3)


def test_weights_biases_and_parameters_are_shown_in_decimal_and_bits(told):
    """1, 2, 4: mean 7/3, variance 14/9, so the second is (1/3) / sqrt(14/9 + 1/4) = 2 / sqrt(65)."""
    line = told(f"{NORM}@0.1", "--impl", "two_pass")["two_pass"]
    assert (line["element"], line["x"], line["x bits"]) == ("y[0, 1]", "1 2 4", "3f80 4000 4080")
    assert (line["weight"], line["weight bits"]) == ("1 -1 0", "3f80 bf80 0000")
    assert (line["bias"], line["bias bits"]) == ("0 0 1", "0000 0000 3f80")
    assert line["eps"] == "0.25"
    assert float(line["exact"].split()[0]) == pytest.approx(2 / np.sqrt(65), rel=1e-15)


def test_masks_are_shown_and_the_element_is_the_one_asked_for(told):
    line = told(f"{MASKED}@3.4", "--impl", "three_pass")["three_pass"]
    inputs = Case.parse(MASKED).inputs
    assert line["element"] == "y[3, 4]"
    assert line["mask"] == "".join("01"[int(m)] for m in inputs.visible[3])
    assert line["x bits"] == " ".join(inputs.fmt.hex(inputs.x[3]))


def test_long_rows_are_cut_around_the_element(told):
    case = "softmax:float32:standard_normal:2x100:s0"
    for place, window in (("1.50", "[44:56 of 100]"), ("1.0", "[0:12 of 100]"), ("1.99", "[88:100 of 100]")):
        line = told(f"{case}@{place}", "--impl", "three_pass")["three_pass"]
        assert line["x"].endswith(window)
        assert len(line["x bits"].split()) == 12


@pytest.mark.parametrize("place", ["", "@3", "@3.7"])
def test_a_place_may_be_a_row_an_element_or_left_out(told, place: str):
    """A sum has one result per row, whichever element is named; without a place it is the worst one."""
    line = told(SUM + place, "--impl", "pairwise")["pairwise"]
    assert re.fullmatch(r"y\[[0-7]\]" if not place else r"y\[3\]", line["element"])


def test_a_row_alone_means_its_first_element(told):
    assert told(f"{MASKED}@3", "--impl", "three_pass")["three_pass"]["element"] == "y[3, 0]"


def test_an_element_without_a_place_is_a_failed_one(told):
    """The first row is right by chance."""
    case = "sum:float32:standard_normal:3x1:x=00000000.3f800000.40000000"
    line = told(case, "--impls", KERNELS, "--impl", "all_nan", "--impl", "known_zeros")
    assert (line["all_nan"]["element"], line["all_nan"]["verdict"]) == ("y[0]", "fail: special value wrong")
    assert (line["known_zeros"]["element"], line["known_zeros"]["verdict"]) == ("y[1]", "fail: over the bound")


def test_a_class_is_expected_where_no_value_is(told):
    line = told("sum:float32:specials:1x2:x=7fc00000.3f800000", "--impls", KERNELS, "--impl", "known_zeros")
    assert (line["known_zeros"]["got"], line["known_zeros"]["expected"]) == ("0.0 (0x00000000)", "NAN")


def test_a_claimed_budget_is_what_is_allowed(told):
    line = told("logsumexp:float32:standard_normal:2x4:s0", "--impl", "log1p")["log1p"]
    assert line["allowed"].startswith("0.51 ULP by its own claim, ")


@pytest.mark.parametrize(
    ("name", "verdict", "detail"),
    [
        ("raises", "fail: raised", "RuntimeError: two"),
        ("as_list", "fail: wrong shape or dtype", "returned a list, expected float32 (8,)"),
        ("writes_input", "fail: wrote into its input", "x changed during the call"),
        ("never_so_short", "not judged: not supported", "n = 33 is outside of min_length, max_length"),
    ],
)
def test_without_a_result_there_is_a_verdict_and_what_happened(told, name: str, verdict: str, detail: str):
    line = told(SUM, "--impls", KERNELS, "--impl", name)[name]
    assert (line["verdict"], line["detail"]) == (verdict, detail)


def test_an_odd_name_is_printed_as_it_is(told):
    assert list(told(SUM, "--impls", KERNELS, "--impl", "a|b*")) == ["a|b [red]*`<i>"]


def test_rows_outside_the_domain_are_shown_and_not_judged(told):
    case = "sum:float32:standard_normal:1x2:x=3f800000.7149f2ca"  # 1 and 1e30
    assert told(case, "--impls", KERNELS, "--impl", "narrow")["narrow"]["verdict"] == "not judged: outside its domain"


@pytest.mark.parametrize("case", ["softmax:float32:lengths:3x0:s0", "sum:float32:lengths:0x8:s0"])
def test_nothing_to_show_is_said(told, case: str):
    name = {"softmax": "three_pass", "sum": "pairwise"}[case.partition(":")[0]]
    assert told(case, "--impl", name)[name] == {"y": "empty, as it should be"}


def test_everybody_who_takes_the_case_is_asked(told):
    everybody = told(SUM, "--impls", KERNELS, "--impl", "right", "--impl", "pairwise", "--impl", "bfloat16_accumulator")
    assert list(everybody) == ["pairwise", "right"]  # the other one takes bfloat16 only


def test_real_rows_are_replayed_by_their_block(told):
    case = "layer_norm:float32:real_rows:48x384:s0:weight:bias:eps=1e-12:block=ln_x2"
    assert told(f"{case}@17.211", "--impl", "two_pass")["two_pass"]["element"] == "y[17, 211]"


@pytest.mark.parametrize(
    ("text", "index"), [(SUM, None), (f"{SUM}@7", (7,)), (f"{SUM}@7.32", (7, 32)), (f"{SUM}@007", (7,))]
)
def test_places(text: str, index: tuple[int, ...] | None):
    assert parse_place(text) == (Case.parse(SUM), index)


def test_an_unknown_implementation_lists_those_of_the_operator(capsys: pytest.CaptureFixture[str]):
    """Also where another operator has one of that name."""
    assert run("replay", SUM, "--impl", "three_pass") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no implementation matches 'three_pass': expected one of" in line
    assert "kahan" in line
    assert "welford" not in line


def test_every_output_has_its_own_lines(capsys: pytest.CaptureFixture[str]):
    """One is over its bound where the other, of the same place, is right."""
    case = "fused_add_rms_norm:bfloat16:eps_scale:4x33:s3:eps=1e-05"
    assert run("replay", f"{case}@1.15", "--impl", "rounded_undeclared") == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^  element +(\S+), ?(\d+)\]$", printed, re.MULTILINE) == [("y[1", "15"), ("updated[1", "15")]
    assert re.findall(r"^  verdict +(.*)$", printed, re.MULTILINE) == ["fail: over the bound", "pass: within the bound"]
