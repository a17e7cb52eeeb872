"""LlamaRMSNorm of transformers, the norm of Llama and its descendants, whose order of casts is a contract of its own.

It computes x r in float32 whatever the storage format (float64 too), rounds that to storage, and multiplies by the
weight there: two roundings, where ``torch.nn.functional.rms_norm`` has one. Measured on transformers 5.24 with
PyTorch 2.13: within the bound that grants it the cast (``cast="before_weight"``), over the one that does not.
"""

from typing import Any

from gpu_impls import implementation
from gpu_impls.adapters.torch import ALL, DOMAIN, Tensor
from gpu_impls.backends import TORCH as torch
from gpu_impls.libraries import Library

llama: Any = Library("transformers.models.llama.modeling_llama")


@implementation(
    "rms_norm",
    name="llama",
    dtypes=ALL,
    backend="torch",
    accumulate="float32",
    cast="before_weight",
    domain=DOMAIN,
    source="transformers",
)
def llama_rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """LlamaRMSNorm(n, eps) in x's dtype, on its device, with this weight or ones. It has no bias."""
    norm = llama.LlamaRMSNorm(x.shape[-1], eps).to(x)
    if weight is not None:
        norm.weight = torch.nn.Parameter(weight)
    with torch.no_grad():
        return norm(x)
