"""Triton kernels without a GPU: they compile ahead of time, and pass the property suite interpreted.

Whether Triton interprets is settled when a kernel is defined: child processes do, this one compiles.
"""

import importlib
import os
import subprocess
import sys
from typing import Any

import pytest

from gpu_impls.libraries import absent
from gpu_impls.registry import BUILT_IN

needs_triton = pytest.mark.skipif(absent("triton") is not None, reason=absent("triton") or "")
# Kernel -> pointers, the rest of its parameters being numbers.
POINTERS = {
    "softmax": ("x", "mask", "y"),
    "rms_norm": ("x", "weight", "bias", "y"),
    "layer_norm": ("x", "weight", "bias", "y"),
    "fused_add_rms_norm": ("x", "residual", "weight", "y", "updated"),
}
ELEMENT = {"float32": "*fp32", "float16": "*fp16", "bfloat16": "*bf16"}


def compiled(name: str, dtype: str, n: int, absent_pointers: tuple[str, ...] = ()) -> dict[str, Any]:
    """What Triton makes of a kernel for sm_90."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from gpu_impls.triton.launch import FUSED, shape

    kernels = importlib.import_module("gpu_impls.triton.kernels")
    function = getattr(kernels, name)
    told = shape(n)
    constants = {"BLOCK": told["BLOCK"], **dict.fromkeys(absent_pointers)}
    signature = {}
    for parameter in function.arg_names:
        if parameter in constants:
            signature[parameter] = "constexpr"
        elif parameter in POINTERS[name]:
            signature[parameter] = "*i1" if parameter == "mask" else ELEMENT[dtype]
        else:
            signature[parameter] = "fp32" if parameter == "eps" else "i32"
    source = ASTSource(fn=function, signature=signature, constexprs=constants)
    options = {"num_warps": told["num_warps"], **FUSED}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm


@needs_triton
@pytest.mark.parametrize("dtype", ELEMENT)
@pytest.mark.parametrize("name", POINTERS)
def test_kernels_compile_ahead_of_time(name: str, dtype: str, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    asm = compiled(name, dtype, 1000)
    assert ".target sm_90" in asm["ptx"]
    assert len(asm["cubin"]) > 1000
    without = [pointer for pointer in POINTERS[name] if pointer in ("mask", "weight", "bias")]
    assert len(compiled(name, dtype, 1000, tuple(without))["ptx"]) < len(asm["ptx"])


@needs_triton
@pytest.mark.parametrize(
    ("n", "block", "warps"),
    [(1, 1, 1), (2, 2, 1), (3, 4, 1), (512, 512, 1), (513, 1024, 2), (8192, 8192, 16), (131072, 131072, 32)],
)
def test_a_block_is_a_power_of_two_that_holds_the_row(n: int, block: int, warps: int):
    from gpu_impls.triton.launch import shape

    assert shape(n) == {"BLOCK": block, "num_warps": warps}


def interpreted(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, check=False, env=environment
    )


@needs_triton
def test_the_interpreter_is_given_no_bfloat16():
    """It computes on its bits as on integers, and says nothing."""
    listed = interpreted("-m", "reports.cli", "list", "--impl", "triton*")
    assert listed.returncode == 0, listed.stderr
    assert "bfloat16" not in listed.stdout
    assert listed.stdout.count("float32, float16") == 4
    assert BUILT_IN["gpu_impls.triton.softmax"] == (
        "triton" if os.environ.get("TRITON_INTERPRET") == "1" else "triton+cuda"
    )


FUSED = """
import torch
from gpu_impls.triton import rms_norm
from gpu_impls.triton.fused_add_rms_norm import fused_add_rms_norm
generator = torch.Generator().manual_seed(3)
for dtype in (torch.float32, torch.float16):
    for n in (1, 7, 64, 1000):
        x, residual = (torch.randn(5, n, generator=generator).to(dtype) for _ in range(2))
        weight = torch.randn(n, generator=generator).to(dtype)
        total = x + residual
        y, updated = fused_add_rms_norm(x, residual, weight, 1e-6)
        assert torch.equal(updated, total)
        assert torch.equal(y, rms_norm.rms_norm(total, weight, eps=1e-6))
        assert fused_add_rms_norm(x, residual, weight, 1e-6, out=(x, residual)) == (x, residual)
        assert torch.equal(residual, total)
        assert torch.equal(x, y)
for other in (torch.zeros(5, 999), torch.zeros(5, 1000, dtype=torch.float64)):
    try:
        fused_add_rms_norm(torch.zeros(5, 1000), other)
    except ValueError as error:
        assert "expected torch.float32 (5, 1000), as x" in str(error)
    else:
        raise AssertionError(other.shape)
try:
    rms_norm.rms_norm(torch.zeros(1, 131073))
except ValueError as error:
    assert "n at most 131,072" in str(error)
else:
    raise AssertionError
x = torch.randn(3, 100, generator=generator)
expected = rms_norm.rms_norm(x)
assert torch.equal(rms_norm.rms_norm(x, out=x), expected)
print("done")
"""


@needs_triton
def test_a_residual_is_added_in_place_or_not():
    done = interpreted("-c", FUSED)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@needs_triton
@pytest.mark.parametrize("op", ["softmax", "rms_norm", "fused_add_rms_norm", "layer_norm"])
def test_interpreted_kernels_hold_what_they_claim(op: str):
    done = interpreted("-m", "pytest", "properties", "-q", "-p", "no:cacheprovider", "--op", op, "--impl", "triton*")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
