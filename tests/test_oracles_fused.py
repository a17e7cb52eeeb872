"""Definitions as device code: audited like the vectorised arithmetic, and compared with the judge row by row.

Runs on this machine's processor, through a C++ compiler, and on a GPU where there is one.
"""

import functools
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit import AUDITS, primitive
from device_words import KERNELS, Device, Host, Threads, audited, statistics_of

from gpu_impls.contract import Contract, contract
from oracles.arithmetics.fused import SOURCES, bins, defines, flags, generate
from oracles.catalogue import operator_named
from oracles.formats import FORMATS, Format
from oracles.ulp import UNIT_BITS, errors_in_ulps
from properties.battery import regimes_for
from properties.case import Case, explicit_case
from properties.judge import Judgement, expect, judge
from properties.screen import allowed
from properties.source import PCG64Source
from properties.tally import tally
from test_cuda import ARCHITECTURES, nvcc
from test_oracles_inputs import ALONE as OPERATORS
from test_oracles_inputs import NAN

RUNNERS = {"host": Host, "device": Device}
STORED = ("float32", "bfloat16", "float16")
LARGE = 2.0**20  # ULP; larger errors are counted with less
each_runner = pytest.mark.parametrize("where", RUNNERS)


@functools.cache
def words(where: str) -> Any:
    return audited(RUNNERS[where](KERNELS))


@each_runner
@pytest.mark.parametrize("operation", [name for name in AUDITS if name != "enclosure"])
def test_what_an_operation_encloses_holds_every_corner_of_its_operands(operation: str, where: str):
    assert primitive(words(where), operation) == 0


BROKEN = {
    "error of a sum": ("sum", "__dadd_rn(b, -t))};", "0 * b)};"),
    "error of a product": ("product", "__fma_rn(a, b, -p)", "0.0"),
    "what a sum drops": ("sum", "up(fabs(lows.error), fabs(low.error))", "0.0"),
    "errors in a sum": ("sum", "up(a.err, b.err)));", "a.err));"),
    "rounding of a product": ("product", "constexpr double OPERATION = 16 * U * U", "constexpr double OPERATION = 0"),
    "rounding of a quotient": ("quotient", "constexpr double OPERATION = 16 * U * U", "constexpr double OPERATION = 0"),
    "rounding of a root": ("root", "constexpr double OPERATION = 16 * U * U", "constexpr double OPERATION = 0"),
    "underflow": ("product", "#define UNDERFLOW 0x1p-1060", "#define UNDERFLOW 0.0"),
    "low part of a product": ("product", "__dmul_rn(a.lo, b.hi)", "0.0"),
    "one error of a product": ("product", "up_times(size(b), a.err)", "0.0"),
    "both errors of a product": ("product", "up(size(a), a.err), b.err", "size(a), b.err"),
    "divisor's error": ("quotient", "up(up_times(quotient, b.err), UNDERFLOW)", "UNDERFLOW"),
    "divisor that may be 0": ("quotient", "if (!(least > 0))", "if (least == 0)"),
    "divisor at its least": ("quotient", "-fabs(b.lo)), -b.err)", "-fabs(b.lo)), 0.0)"),
    "dividend's error": ("quotient", "up(a.err, up(up_times(quotient", "up(0.0, up(up_times(quotient"),
    "radicand's error": ("root", "ratio <= 0.5 ? near", "ratio <= 0.5 ? 0.0"),
    "radicand that may be 0": ("root", "a.hi == 0 ? __dsqrt_ru(a.err)", "a.hi == 0 ? 0.0"),
    "documented error of exp": ("exp", "constexpr double DOCUMENTED = 2 * 2 * U", "constexpr double DOCUMENTED = 0"),
    "exponent's low part": ("exp", "__dmul_rn(value, a.lo)", "0.0"),
    "exponent's error": ("exp", "up(up_times(a.lo, a.lo), a.err)", "up_times(a.lo, a.lo)"),
    "change of a logarithm": ("log", "change = __ddiv_rn(a.lo, base)", "change = 0"),
    "error of a logarithm's argument": ("log", "up(__ddiv_ru(a.err, base), up", "up(0.0, up"),
    "base of log1p": ("log", "__dadd_rn(1.0, a.hi)", "__dadd_rn(2.0, a.hi)"),
    "documented error of log": ("log", "constexpr double DOCUMENTED = 2 * 2 * U", "constexpr double DOCUMENTED = 0"),
}  # fmt: skip


def broken_headers(folder: Path, file: str, old: str, new: str) -> Path:
    headers = folder / "cuda"
    shutil.copytree(SOURCES, headers)
    text = (headers / file).read_text()
    assert old in text, f"{old!r} is not in {file} any more"
    (headers / file).write_text(text.replace(old, new))
    return headers


@pytest.mark.parametrize(
    ("what", "where"),
    [(what, where) for what in BROKEN for where in RUNNERS if (what, where) != ("underflow", "host")],  # bounds by the
)  # next float outward are never 0 there
def test_a_broken_operation_is_found(what: str, where: str, tmp_path: Path):
    operation, old, new = BROKEN[what]
    headers = broken_headers(tmp_path, "words.cuh", old, new)
    assert primitive(audited(RUNNERS[where](KERNELS, headers=headers)), operation) > 0


# Rows


def stored_results(case: Case) -> np.ndarray:
    """Right results, and some that are off by a few units, each way."""
    (truth,) = case.truths
    bits = case.fmt.bits(truth.rounded).astype(np.int64)
    off = np.array(PCG64Source("off", case.n).integers(-2, 2, bits.size)).reshape(bits.shape)
    off[np.array(PCG64Source("which").integers(0, 3, bits.size)).reshape(bits.shape) > 1] = 0
    magnitude = bits & ~(1 << (8 * case.fmt.dtype.itemsize - 1))
    moved = np.where((magnitude > 4) & np.isfinite(truth.rounded.astype(np.float64)), bits + off, bits)
    return case.fmt.from_bits(moved.astype(case.fmt.bits_dtype))


def launched(
    case: Case, stored: np.ndarray, runner: type, headers: Path = SOURCES, claims: Contract | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What the generated kernel says of each row, and its histogram."""
    arrays, claims = case.inputs.arrays, claims or contract((case.dtype,))
    names = tuple(name for name in ("weight", "bias") if name in arrays)
    parameters, claim = case.inputs.parameters, claims.max_ulp.get(case.dtype, 0.0)
    allowance = partial(allowed, case.operator, claims)
    kernel = generate(case.operator, case.fmt, case.n, parameters, names, allowance, claim)
    return statistics_of(kernel, case.inputs.x, stored, arrays, runner, headers)


def statistics(case: Case, stored: np.ndarray, runner: type, headers: Path = SOURCES) -> np.ndarray:
    return launched(case, stored, runner, headers)[0]


def finite_cases(op: str, dtype: str, n: int = 33) -> list[Case]:
    """Regimes of finite rows without masks, and a value just below a power of two."""
    regimes = [r for r in regimes_for(op) if r.fits(n) and r.name not in ("specials", "masks", "arbitrary_bits")]
    affine = [k % 2 == 0 and "weight" in OPERATORS[op].optional for k in range(len(regimes))]
    cases = [
        Case(op, dtype, regime.name, rows=2, n=n, seed=6, weight=both, bias=both)
        for regime, both in zip(regimes, affine, strict=True)
    ]
    # Just below a power of two, by less than a float64 shows, and nearer to the number below it than to it.
    u = FORMATS[dtype].unit_roundoff
    below_one = np.array([[1.0, -(2.0**-60), 0], [1.0, -u / 2, -u / 4]] * 40).astype(FORMATS[dtype].dtype)
    # Ties between two numbers, an overflow that NumPy's bound does not promise, and -0.
    ties = np.array([[1.0, u, 0], [1.0, 3 * u, 0], [-0.0, -0.0, -0.0]] * 20).astype(FORMATS[dtype].dtype)
    large = np.array([[0.9, 0.9, -0.9], [0.5, 0.5, 0.5]]).astype(FORMATS[dtype].dtype) * FORMATS[dtype].dtype.type(
        FORMATS[dtype].largest
    )
    explicit = {"absorbed": below_one, "gap": ties, "specials": large}
    return [*cases, *(explicit_case(op, dtype, regime, {"x": x}) for regime, x in explicit.items())]


def judgement_of(case: Case, stored: np.ndarray, claims: Contract) -> Judgement:
    (expectation,) = expect(case.operator, case.inputs, case.truths, claims)
    return judge(stored, expectation)


def disagreements(case: Case, runner: type, headers: Path = SOURCES, claims: Contract | None = None) -> list[str]:
    """Where a row's statistics are not those of the judge."""
    fmt, stored, (truth,) = case.fmt, stored_results(case), case.truths
    claims = claims or contract((case.dtype,))
    j = judgement_of(case, stored, claims)
    errors = errors_in_ulps(stored, truth.enclosure, fmt).reshape(case.rows, -1)
    fine = np.isfinite(stored.astype(np.float64)).reshape(case.rows, -1)
    off = fmt.bits(stored + fmt.dtype.type(0)) != fmt.bits(truth.rounded + fmt.dtype.type(0))
    wrong = off.reshape(case.rows, -1) & fine
    used, in_row, failed = (v.reshape(case.rows, -1) for v in (j.used, j.row_errors, j.failed | j.undecided))
    told = []
    found, histogram = launched(case, stored, runner, headers, claims)
    for r, row in enumerate(found):
        if row["open"]:  # wider than a truth may be, or at a power of two: nothing is claimed
            told += ["settled, and open"] * bool(row["unsettled"] == 0)
            continue
        largest, mean = errors[r][fine[r]].max(initial=-1.0), np.ldexp(row["units"], -UNIT_BITS)
        exact = {"error": (row["error"], largest), "mean": (mean, errors[r][fine[r]].sum())}
        if row["unsettled"] == 0:
            row_ulp = row["error"] if case.operator.outputs[0].per_row else np.ldexp(row["distance"], -row["unit"])
            exact |= {"row": (row_ulp, in_row[r].max())}
            share, expected = row["spent"] / row["granted"], used[r].max()
            if abs(share - expected) > 1e-5 * expected + 1e-9:
                told.append(f"used: {share} is {expected}")
            if failed[r].any() or j.special.any() or j.expectation.unjudged[r] is not None:
                told.append("settled, and not within what is allowed")
            if row["misrounded"] != wrong[r].sum():
                told.append(f"misrounded: {row['misrounded']}, is {wrong[r].sum()}")
        told += [f"{name}: {a} is {v}" for name, (a, v) in exact.items() if v < LARGE and abs(a - v) > 1e-3 * (1 + v)]
        if not row["misrounded"] <= wrong[r].sum() <= row["misrounded_high"]:
            told.append(f"misrounded: {row['misrounded']} to {row['misrounded_high']}, is {wrong[r].sum()}")
        if row["special"] != (~fine[r]).sum() or row["compared"] != errors[r].size:
            told.append(f"special: {row['special']}, compared: {row['compared']}")
        if largest >= 0 and abs(errors[r][row["worst"]] - largest) > 1e-3 * (1 + largest):
            told.append(f"worst: {row['worst']}")
    settled = found["unsettled"] == 0
    counted = {bin_: count for bin_, count in zip(bins(), histogram.tolist(), strict=True) if count}
    whole = tally(j, case.id).histogram if settled.all() else None
    if sum(counted.values()) != found["compared"][settled].sum() or (whole is not None and counted != whole):
        told.append("histogram")
    return told


@each_runner
@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("op", OPERATORS)
def test_the_statistics_of_a_row_are_the_judges(op: str, dtype: str, where: str):
    cases = finite_cases(op, dtype)
    assert [d for case in cases for d in disagreements(case, RUNNERS[where])] == []
    open_rows = sum((statistics(case, stored_results(case), RUNNERS[where])["open"] > 0).sum() for case in cases[:-3])
    assert open_rows < len(cases) / 2  # of two rows each


def long_cases(op: str, n: int) -> list[Case]:
    """Longer than a block, with maxima that rise all along the row, and from either end."""
    regimes = ["standard_normal", *(r.name for r in regimes_for(op) if r.name.endswith("_ramp") or "tiles" in r.name)]
    return [Case(op, "float32", regime, rows=3, n=n, seed=8) for regime in regimes]


@pytest.mark.parametrize("runner", [Device, Threads])
@pytest.mark.parametrize("op", OPERATORS)
def test_rows_longer_than_a_block_are_the_judges_too(op: str, runner: type):
    for n in (97, 300) if runner is Threads else (300, 1000):
        assert [d for case in long_cases(op, n) for d in disagreements(case, runner)] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lane > 0 ? fmax(left, running) : running", "running"),
        ("__popc(news & ((2u << lane) - 1))", "__popc(news)"),
        ("all - earlier", "all"),
        ("last_first ? n - 1 - i : i", "i"),
        ("running < last", "base < start"),
        ("if (k < warp) running", "running"),
        ("return add(a, b);", "return a;"),
    ],
)
def test_a_broken_reduction_of_a_block_is_seen(old: str, new: str, tmp_path: Path):
    headers = broken_headers(tmp_path, "row.cuh", old, new)
    assert any(disagreements(case, Threads, headers) for case in long_cases("softmax", 300))


CLAIMS = {
    "claims a shape": {"summation": "lanes:32"},
    "flushes": {"subnormals": "flush"},
    "rounds before the weight": {"cast": "before_weight"},
    "shifts unfused": {"shift": "unfused"},
    "passes through": {"through": "float32"},
    "has a domain": {"domain": (1e-3, 1e3)},
    "claims ULPs": {"max_ulp": 2.0},
}


@each_runner
@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("op", OPERATORS)
def test_what_a_contract_says_counts(op: str, claim: str, where: str):
    claims = contract(("float32",), **CLAIMS[claim])
    cases = finite_cases(op, "float32", 65)
    assert [d for case in cases for d in disagreements(case, RUNNERS[where], claims=claims)] == []


@pytest.mark.parametrize("op", OPERATORS)
def test_what_is_clearly_within_is_settled(op: str):
    """Rows that the judge has no doubt about are not left for it."""
    for dtype in STORED:
        case = Case(op, dtype, "standard_normal", rows=40, n=65, seed=9)
        found, _ = launched(case, case.truths[0].rounded, Host)
        assert (found["unsettled"] == 0).sum() >= 38


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("compare.cuh", "max(exponent, EMIN)", "max(exponent + 1, EMIN)"),
        ("compare.cuh", "max(exponent, EMIN)", "exponent"),
        ("compare.cuh", "- below;", ";"),
        ("compare.cuh", "__dadd_rn(d.error, -y.lo)", "d.error - 1e-6 * y.hi"),
        ("compare.cuh", "signed_distance < 0)", "signed_distance > 0)"),
        ("compare.cuh", "a.units + b.units", "a.units"),
        ("compare.cuh", "more ? a.spent : b.spent", "a.spent"),
        ("compare.cuh", "fmax(a.distance, b.distance)", "a.distance"),
        ("compare.cuh", "a.misrounded + b.misrounded", "b.misrounded"),
        ("compare.cuh", "max(a.unit, b.unit)", "a.unit"),
        ("compare.cuh", "furthest <= allowed", "furthest <= 4 * allowed"),
        ("compare.cuh", "countable && !s.open &&", "countable &&"),
        ("compare.cuh", "s.unsettled = 1;", "s.unsettled = 0;"),
        ("compare.cuh", "&& s.misrounded == s.misrounded_high", ""),
        ("compare.cuh", "bound < INFINITY && ", ""),
        ("compare.cuh", "within = !s.misrounded_high", "within = true"),
        ("compare.cuh", "- (long long)(1022", "- (long long)(1023"),
        ("compare.cuh", "allowed : allowed - half", "allowed : allowed"),
        (
            "words.cuh",
            "double add(double a, double b) { return a + b; }",
            "double add(double a, double b) { return a; }",
        ),
        ("compare.cuh", "first ? a.worst : b.worst", "a.worst"),
        ("storage.cuh", "magnitude - 1;", "magnitude + 1;"),
        ("row.cuh", "return add(a, b);", "return a;"),
    ],
)
def test_a_broken_comparison_is_seen(file: str, old: str, new: str, tmp_path: Path):
    headers = broken_headers(tmp_path, file, old, new)
    runner = Device if file == "row.cuh" else Host  # a merge shows with more threads than one
    some = dict.fromkeys(("sum", "max", "softmax", "layer_norm"), "float32") | {"mean": "bfloat16"}
    cases = [case for op, dtype in some.items() for case in finite_cases(op, dtype)]
    cases.append(explicit_case("sum", "float32", "specials", {"x": np.array([[3e38, -3e38, 3e38]], np.float32)}))
    in_storage = {dtype: contract((dtype,), accumulate=dtype) for dtype in STORED}  # a bound wide enough to be used
    assert any(disagreements(case, runner, headers, in_storage[case.dtype]) for case in cases)


@each_runner
def test_the_maximum_of_a_row_with_nan_is_open(where: str):
    for row in ([NAN, 1, 2], [1, NAN, 2], [1, 2, NAN]):
        case = explicit_case("max", "float32", "specials", {"x": np.array([row], np.float32)})
        found = statistics(case, np.zeros(1, np.float32), RUNNERS[where])
        assert (found["open"], found["compared"]) == (1, 0)


def no_limits(*_: object) -> tuple[float, ...]:
    return 0.0, 0.0, 0.0, 0.0


def test_what_the_kernels_do_not_take_is_refused():
    with pytest.raises(
        ValueError, match="fused_add_rms_norm: expected an operator of one array of rows and one result"
    ):
        generate(operator_named("fused_add_rms_norm"), FORMATS["float32"], 3, {}, (), no_limits)
    with pytest.raises(ValueError, match="float64: expected a format of at most 32 bits"):
        generate(OPERATORS["softmax"], FORMATS["float64"], 3, {}, (), no_limits)


@pytest.mark.parametrize("op", OPERATORS)
def test_generated_kernels_compile_for_every_architecture_without_a_warning(op: str, tmp_path: Path):
    operator, fmt = OPERATORS[op], FORMATS["bfloat16"]
    names = tuple(name for name in ("weight", "bias") if name in operator.optional)
    claims = contract((fmt.name,), domain=(1e-3, 1e3), subnormals="flush")
    parameters = dict.fromkeys(operator.parameters, 1e-5)
    made = generate(operator, fmt, 4096, parameters, names, partial(allowed, operator, claims))
    (tmp_path / "made.cu").write_text(made.source)
    architectures = [f"-gencode=arch=compute_{sm},code=sm_{sm}" for sm in ARCHITECTURES]
    told = [word.replace("--std", "-std") for word in (*flags(), *defines(fmt))]
    command = [nvcc(), "-fatbin", "-Werror", "all-warnings", "-diag-suppress=177", *architectures, *told]  # 177: unused
    command += ["-o", str(tmp_path / "out.fatbin"), str(tmp_path / "made.cu")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("fmt", [FORMATS[name] for name in STORED], ids=STORED)
def test_stored_numbers_are_read_from_their_bits(fmt: Format):
    """Every float16 and bfloat16, and float32 at every exponent."""
    step = 1 if fmt.dtype.itemsize == 2 else 65521
    every = np.arange(0, 1 << (8 * fmt.dtype.itemsize), step).astype(fmt.bits_dtype)
    bits = np.append(every, fmt.bits(np.array([fmt.largest], fmt.dtype)))
    values, gaps = np.zeros(len(bits)), np.zeros(len(bits))
    Host(READ, defines(fmt)).launch("k", 1, bits, values, gaps, len(bits))
    with np.errstate(all="ignore"):
        right = fmt.from_bits(bits).astype(np.float64)
        up = np.nextafter(right.astype(fmt.dtype), fmt.dtype.type(np.inf)).astype(np.float64)
        inside = np.isfinite(up) & (right > -fmt.largest)
        assert np.array_equal(values, right, equal_nan=True)
        assert (gaps == (up - right) / 2)[inside].all()
    assert gaps[-1] == np.ldexp(0.5, fmt.emax - fmt.precision + 1)


READ = """#include "storage.cuh"
extern "C" __global__ void k(const Storage *bits, double *out, double *gap, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    out[i] = widen(bits[i]);
    gap[i] = half_gap(bits[i], true);
  }
}
"""
