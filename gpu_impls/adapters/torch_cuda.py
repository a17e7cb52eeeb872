"""PyTorch on the GPU: the functions of ``gpu_impls.adapters.torch`` on CUDA tensors, and torch.compile of some.

layer_norm has two kernels: one for rows whose length is a multiple of 4 and which start at multiples of 16 bytes, and
another for the rest; the suite's lengths and layouts reach both.

Measured on PyTorch 2.11 (CUDA 13, H200):

- sum, mean and var of float32 and float64, and logsumexp of float64, depend on the batch; 16 bits do not show it.
- rms_norm makes every element of a row NaN that holds an infinity. On the CPU finite elements become 0.
- log_softmax of 16 bits rounds once, unlike on the CPU; logsumexp does not.
- torch.compile makes another program for one row than for several: no batch invariance is claimed for it. Beyond 8
  programs it falls back to eager unless told otherwise, so that a result may depend on the shapes that came before.
"""

import functools
from collections.abc import Callable
from typing import Any

from gpu_impls import implementation
from gpu_impls.adapters import torch as cpu
from gpu_impls.adapters.torch import ALL, DOMAIN, NARROW, SOURCE, WIDE, Tensor
from gpu_impls.backends import TORCH as torch
from gpu_impls.libraries import Library

dynamo: Any = Library("torch._dynamo")

OTHER_ORDER = "a row is summed in another order alone, or in a small batch, than in a large one"
TAKES_CARE_OF_NO_INFINITY = "finite elements beside an infinity become NaN, not 0: [-0.85, inf] gives [NaN, NaN]"
DEPENDS_ON_BATCH = {"deviates": {"batch_invariance": OTHER_ORDER}}

EAGER: tuple[tuple[str, str, tuple[str, ...], Callable[..., Tensor], dict[str, Any]], ...] = (
    ("sum", "torch_cuda", WIDE, cpu.torch_sum, DEPENDS_ON_BATCH),
    ("sum", "torch_cuda_narrow", NARROW, cpu.torch_sum, {}),
    ("mean", "torch_cuda", WIDE, cpu.torch_mean, DEPENDS_ON_BATCH),
    ("mean", "torch_cuda_narrow", NARROW, cpu.torch_mean, {}),
    ("var", "torch_cuda", WIDE, cpu.torch_var, {"domain": DOMAIN, **DEPENDS_ON_BATCH}),
    ("var", "torch_cuda_narrow", NARROW, cpu.torch_var, {"domain": DOMAIN}),
    ("max", "torch_cuda", ALL, cpu.torch_amax, {"min_length": 1}),
    ("logsumexp", "torch_cuda", ("float32",), cpu.torch_logsumexp, {}),
    ("logsumexp", "torch_cuda_float64", ("float64",), cpu.torch_logsumexp, DEPENDS_ON_BATCH),
    (
        "logsumexp",
        "torch_cuda_narrow",
        NARROW,
        cpu.torch_logsumexp,
        {"deviates": dict.fromkeys(("accuracy", "special_values"), cpu.ROUNDS_TWICE)},
    ),
    ("softmax", "torch_cuda", ALL, cpu.torch_softmax, {"masked_row": "nan"}),
    ("log_softmax", "torch_cuda", ALL, cpu.torch_log_softmax, {"masked_row": "nan"}),
    (
        "rms_norm",
        "torch_cuda",
        ALL,
        cpu.torch_rms_norm,
        {"domain": DOMAIN, "deviates": {"special_values": TAKES_CARE_OF_NO_INFINITY}},
    ),
    ("layer_norm", "torch_cuda", ALL, cpu.torch_layer_norm, {"domain": DOMAIN}),
)

for op, name, dtypes, function, claims in EAGER:
    on_gpu = {"backend": "torch_cuda", "source": SOURCE, "origin": __name__}
    implementation(op, name=name, dtypes=dtypes, **on_gpu, **claims)(function)


@functools.cache
def compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """One program for all shapes, as far as PyTorch makes do with one; never the eager function in its place.

    eps is a constant of the program, as in a model. Otherwise a second eps makes it an argument, in another program of
    other bits: what comes out would depend on what was called before.
    """
    dynamo.config.recompile_limit = dynamo.config.accumulated_recompile_limit = 1024
    dynamo.config.specialize_float = True
    return torch.compile(function, dynamic=True, fullgraph=True)


COMPILED: dict[str, Any] = {"backend": "torch_cuda", "batch_invariant": False, "source": "torch.compile"}


@implementation("softmax", name="torch_compile", dtypes=ALL[:3], masked_row="nan", **COMPILED)
def compiled_softmax(x: Tensor) -> Tensor:
    """torch.compile(torch.softmax)(x, dim=-1)."""
    return compiled(cpu.torch_softmax)(x)


@implementation("rms_norm", name="torch_compile", dtypes=ALL[:3], domain=DOMAIN, **COMPILED)
def compiled_rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """torch.compile(torch.nn.functional.rms_norm)(x, (n,), weight, eps)."""
    return compiled(cpu.torch_rms_norm)(x, weight, eps)


@implementation("layer_norm", name="torch_compile", dtypes=ALL[:3], domain=DOMAIN, **COMPILED)
def compiled_layer_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """torch.compile(torch.nn.functional.layer_norm)(x, (n,), weight, bias, eps)."""
    return compiled(cpu.torch_layer_norm)(x, weight, bias, eps)
