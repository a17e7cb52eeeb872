"""PyTorch on the CPU, on one thread: reductions, the softmax family and the norms. None of them takes a mask.

Measured on PyTorch 2.13:

- sum, mean, var, softmax and the norms keep float32 inside for 16 bits and round once: within the bounds in every
  format. Subnormals are kept. No dtype of rms_norm or layer_norm breaks an exact law.
- log_softmax and logsumexp round to the storage format more than once: in bfloat16, log_softmax of
  [0.363281, -0.566406] begins with -0.335938 (1.7 ULP), and logsumexp of [-0.925781, 0.292969] is 0.554688 (0.7 ULP).
- var of float64 sums a row that is alone in another order than one in a batch.
- amax raises on an empty row, even if there is no row at all. Softmax of a row of -inf is NaN.
"""

from typing import Any

from gpu_impls import implementation
from gpu_impls.backends import TORCH as torch

SOURCE = "torch"
ALL = ("float16", "bfloat16", "float32", "float64")
NARROW, WIDE = ALL[:2], ALL[2:]
Tensor = Any  # torch.Tensor, without the import
# The squares of var and the norms; see gpu_impls/numpy/var.py.
DOMAIN = (1e-15, 1e15)


@implementation("sum", name="torch", dtypes=ALL, backend="torch", source=SOURCE)
def torch_sum(x: Tensor) -> Tensor:
    """torch.sum(x, dim=-1)."""
    return torch.sum(x, dim=-1)


@implementation("mean", name="torch", dtypes=ALL, backend="torch", source=SOURCE)
def torch_mean(x: Tensor) -> Tensor:
    """torch.mean(x, dim=-1)."""
    return torch.mean(x, dim=-1)


@implementation(
    "var", name="torch", dtypes=("float16", "bfloat16", "float32"), backend="torch", domain=DOMAIN, source=SOURCE
)
def torch_var(x: Tensor) -> Tensor:
    """torch.var(x, dim=-1, correction=0): within half an ulp on every row of a quick report in float32."""
    return torch.var(x, dim=-1, correction=0)


@implementation(
    "var",
    name="torch_float64",
    dtypes=("float64",),
    backend="torch",
    domain=DOMAIN,
    source=SOURCE,
    deviates={"batch_invariance": "a row alone is summed in another order than a row of a batch"},
)
def torch_var_float64(x: Tensor) -> Tensor:
    """The same in float64."""
    return torch_var(x)


@implementation("max", name="torch", dtypes=ALL, backend="torch", min_length=1, source=SOURCE)
def torch_amax(x: Tensor) -> Tensor:
    """torch.amax(x, dim=-1)."""
    return torch.amax(x, dim=-1)


ROUNDS_TWICE = "intermediate results are rounded to the storage format"


@implementation("logsumexp", name="torch", dtypes=WIDE, backend="torch", source=SOURCE)
def torch_logsumexp(x: Tensor) -> Tensor:
    """torch.logsumexp(x, dim=-1)."""
    return torch.logsumexp(x, dim=-1)


@implementation(
    "logsumexp",
    name="torch_narrow",
    dtypes=NARROW,
    backend="torch",
    source=SOURCE,
    deviates=dict.fromkeys(("accuracy", "special_values"), ROUNDS_TWICE),
)
def torch_logsumexp_narrow(x: Tensor) -> Tensor:
    """The same of float16 and bfloat16."""
    return torch_logsumexp(x)


@implementation("softmax", name="torch", dtypes=ALL, backend="torch", masked_row="nan", source=SOURCE)
def torch_softmax(x: Tensor) -> Tensor:
    """torch.softmax(x, dim=-1)."""
    return torch.softmax(x, dim=-1)


@implementation("log_softmax", name="torch", dtypes=WIDE, backend="torch", masked_row="nan", source=SOURCE)
def torch_log_softmax(x: Tensor) -> Tensor:
    """torch.log_softmax(x, dim=-1)."""
    return torch.log_softmax(x, dim=-1)


@implementation(
    "log_softmax",
    name="torch_narrow",
    dtypes=NARROW,
    backend="torch",
    masked_row="nan",
    source=SOURCE,
    deviates=dict.fromkeys(("accuracy", "special_values"), ROUNDS_TWICE),
)
def torch_log_softmax_narrow(x: Tensor) -> Tensor:
    """The same of float16 and bfloat16."""
    return torch_log_softmax(x)


@implementation("rms_norm", name="torch", dtypes=ALL, backend="torch", domain=DOMAIN, source=SOURCE)
def torch_rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """torch.nn.functional.rms_norm(x, (n,), weight, eps): the weight is multiplied in float32 (it has no bias)."""
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)


@implementation("layer_norm", name="torch", dtypes=ALL, backend="torch", domain=DOMAIN, source=SOURCE)
def torch_layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """torch.nn.functional.layer_norm(x, (n,), weight, bias, eps)."""
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)
