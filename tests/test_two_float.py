"""two_float.cuh through a C++ compiler: its operations against rationals, to the errors they are named for."""

import ctypes
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from device_words import compiled_for_host

from gpu_impls.cuda.compiled import SOURCES

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler: apt install g++")

U = Fraction(1, 2**24)
HOST = """
#include <cmath>
#define __device__
static float __fadd_rn(float a, float b) { return a + b; }
static float __fsub_rn(float a, float b) { return a - b; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fdiv_rn(float a, float b) { return a / b; }
static float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static float rsqrtf(float a) { return 1.0f / std::sqrt(a); }
static float exchanged(float value, int) { return value; }
"""
DRIVER = """
#include "two_float.cuh"
#define OPERATION(name, value)                                                              \\
  extern "C" void name(int n, const TwoFloat *p, const TwoFloat *q, TwoFloat *out) {        \\
    for (int i = 0; i < n; ++i) { const TwoFloat a = p[i], b = q[i]; (void)b; out[i] = value; } \\
  }
OPERATION(sum, a + b)
OPERATION(difference, a - b)
OPERATION(product, a * b)
OPERATION(quotient, a / b)
OPERATION(root, reciprocal_root(a))
"""
# Errors relative to the exact result, in units of u^2 (Joldes, Muller and Popescu, 2017). The root's is
# 3 e^2 / 2 of a first guess with error e, here 1.5 u, and some roundings.
BOUNDS = {"sum": 3.1, "difference": 3.1, "product": 5.1, "quotient": 15.1, "root": 8.0}


def built(folder: Path, *change: str) -> ctypes.CDLL:
    """The header compiled for this machine, with a change or as it is."""
    text = (SOURCES / "two_float.cuh").read_text()
    if change:
        assert change[0] in text
        text = text.replace(*change)
    (folder / "two_float.cuh").write_text(text)
    (folder / "warp.cuh").write_text(HOST)
    return compiled_for_host(DRIVER, f"-I{folder}")


def operands(seed: int, count: int = 4000) -> np.ndarray:
    """Pairs (hi, lo), lo of any size up to half a unit of hi, of either sign."""
    draw = np.random.Generator(np.random.PCG64(seed))
    hi = np.ldexp(draw.integers(2**23, 2**24, count), draw.integers(-33, -13, count)).astype(np.float32)
    hi *= draw.choice([-1, 1], count).astype(np.float32)
    lo = (np.spacing(np.abs(hi)) * draw.choice([0, 0.5, 0.49, 2.0**-9, -0.37], count) * draw.random(count)).astype(
        np.float32
    )
    return np.stack([hi, lo], axis=1)


def exact(pair: np.ndarray) -> Fraction:
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


def worst(library: ctypes.CDLL, operation: str) -> float:
    """The largest relative error in units of u^2, also where the operands cancel."""
    a, b = operands(1), operands(2)
    b[::3] = -a[::3]  # all but the last bits cancel
    b[::3, 1] += np.spacing(np.abs(a[::3, 0])) * np.float32(2.0**-12)
    if operation == "difference":
        b = -b
    if operation == "root":
        a = np.where(a[:, :1] < 0, -a, a)
    out = np.empty_like(a)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, b, out)]
    getattr(library, operation)(len(a), *pointers)
    largest = Fraction(0)
    for p, q, got in zip(a, b, out, strict=True):
        x, y, z = exact(p), exact(q), exact(got)
        if operation == "root":
            largest = max(largest, abs(z * z * x - 1) / 2)  # to first order, the relative error of z
            continue
        value = {"sum": x + y, "difference": x - y, "product": x * y, "quotient": x / y}[operation]
        largest = max(largest, abs(z / value - 1)) if value else largest
    return float(largest / U**2)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return built(tmp_path_factory.mktemp("two_float"))


@pytest.mark.parametrize("operation", BOUNDS)
def test_operations_err_by_no_more_than_they_are_named_for(library: ctypes.CDLL, operation: str):
    assert worst(library, operation) <= BOUNDS[operation]


@pytest.mark.parametrize(
    ("operation", "old", "new"),
    [
        ("sum", "__fsub_rn(a, of_a)", "0.0f"),
        ("sum", "t = exact_sum(a.lo, b.lo)", "t = {__fadd_rn(a.lo, b.lo), 0.0f}"),
        ("product", "__fmaf_rn(a, b, -p)", "0.0f"),
        ("product", "__fmaf_rn(a.hi, b.lo, p.lo)", "p.lo"),
        ("quotient", "__fdiv_rn(r.hi, b.hi)", "0.0f"),
        ("root", "0.5f * r", "r"),
    ],
)
def test_every_correction_counts(operation: str, old: str, new: str, tmp_path: Path):
    assert worst(built(tmp_path, old, new), operation) > BOUNDS[operation]
