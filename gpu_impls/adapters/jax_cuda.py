"""JAX on the GPU: the functions of ``gpu_impls.adapters.jax``, compiled by XLA for CUDA.

Measured on JAX 0.11.2 (CUDA 13, H200):

- float32 and float64 sums depend on the batch, logsumexp and log_softmax of float32 excepted; 16 bits do not show it.
- max keeps NaN at any size, where the CPU's loses it.
- 16 bits round intermediate results as on the CPU; standardize takes E[x^2] - E[x]^2 as there.
- Subnormals are kept.
"""

from collections.abc import Callable
from typing import Any

from gpu_impls import implementation
from gpu_impls.adapters import jax as cpu
from gpu_impls.adapters.jax import ALL, DOMAIN, NARROW, WIDE, Array

OTHER_PROGRAM = {"batch_invariance": "another program, and another order of sums, for another number of rows"}
UNLIKE_HIDDEN = {"special_values": cpu.HIDDEN_OR_INFINITE}

ON_GPU: tuple[tuple[str, str, tuple[str, ...], Callable[..., Array], dict[str, Any]], ...] = (
    ("sum", "jax_cuda", WIDE, cpu.jax_sum, {"deviates": OTHER_PROGRAM}),
    ("sum", "jax_cuda_narrow", NARROW, cpu.jax_sum, {}),
    ("mean", "jax_cuda", WIDE, cpu.jax_mean, {"deviates": OTHER_PROGRAM}),
    ("mean", "jax_cuda_narrow", NARROW, cpu.jax_mean, {}),
    ("var", "jax_cuda", WIDE, cpu.jax_var, {"domain": DOMAIN, "deviates": OTHER_PROGRAM}),
    ("var", "jax_cuda_narrow", NARROW, cpu.jax_var, {"domain": DOMAIN}),
    ("max", "jax_cuda", ALL, cpu.jax_max, {"min_length": 1}),
    ("logsumexp", "jax_cuda", ("float32",), cpu.jax_logsumexp, {}),
    ("logsumexp", "jax_cuda_float64", ("float64",), cpu.jax_logsumexp, {"deviates": OTHER_PROGRAM}),
    (
        "logsumexp",
        "jax_cuda_narrow",
        NARROW,
        cpu.jax_logsumexp,
        {"deviates": dict.fromkeys(("accuracy", "special_values"), cpu.ROUNDS_TWICE)},
    ),
    ("softmax", "jax_cuda", WIDE, cpu.jax_softmax, {"deviates": UNLIKE_HIDDEN | OTHER_PROGRAM}),
    ("softmax", "jax_cuda_narrow", NARROW, cpu.jax_softmax, {"deviates": cpu.NARROW_SOFTMAX}),
    ("log_softmax", "jax_cuda", ("float32",), cpu.jax_log_softmax, {"deviates": UNLIKE_HIDDEN}),
    ("log_softmax", "jax_cuda_float64", ("float64",), cpu.jax_log_softmax, {"deviates": UNLIKE_HIDDEN | OTHER_PROGRAM}),
    ("log_softmax", "jax_cuda_narrow", NARROW, cpu.jax_log_softmax, {"deviates": cpu.NARROW_SOFTMAX}),
    (
        "layer_norm",
        "jax_cuda_standardize",
        ALL,
        cpu.jax_standardize,
        {"domain": DOMAIN, "deviates": {"accuracy": cpu.FAST}},
    ),
    (
        "layer_norm",
        "jax_cuda_standardize_stable",
        WIDE,
        cpu.jax_standardize_stable,
        {"domain": DOMAIN, "deviates": OTHER_PROGRAM},
    ),
)

for op, name, dtypes, function, claims in ON_GPU:
    on_gpu = {"backend": "jax_cuda", "source": "jax", "origin": __name__}
    implementation(op, name=name, dtypes=dtypes, **on_gpu, **claims)(function)
