"""Liger-Kernel's Triton kernels on the GPU: the forward passes of its softmax, RMSNorm and LayerNorm functions."""

from typing import Any

from gpu_impls import implementation
from gpu_impls.adapters.torch import DOMAIN, Tensor
from gpu_impls.backends import TORCH as torch
from gpu_impls.libraries import Library

ops: Any = Library("liger_kernel.ops")

LIGER: dict[str, Any] = {
    "name": "liger",
    "dtypes": ("float32", "float16", "bfloat16"),
    "backend": "torch_cuda",
    "min_length": 1,
    "max_length": 65_536,  # liger_kernel.ops.utils.calculate_settings
    "source": "Liger-Kernel",
}


@implementation("softmax", masked_row="nan", **LIGER)
def liger_softmax(x: Tensor) -> Tensor:
    """LigerSoftmaxFunction of x."""
    return ops.LigerSoftmaxFunction.apply(x)


@implementation("rms_norm", domain=DOMAIN, cast="before_weight", **LIGER)
def liger_rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """LigerRMSNormFunction in its casting mode "llama": the normalised row is rounded to storage before the weight."""
    return ops.LigerRMSNormFunction.apply(x, weight, eps, 0.0, "llama", False)


@implementation("layer_norm", domain=DOMAIN, **LIGER)
def liger_layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """LigerLayerNormFunction; it has to have a weight and a bias: ones and zeros stand for none."""
    like_a_row = {"size": x.shape[1:], "dtype": x.dtype, "device": x.device}
    weight = torch.ones(**like_a_row) if weight is None else weight
    bias = torch.zeros(**like_a_row) if bias is None else bias
    return ops.LigerLayerNormFunction.apply(x, weight, bias, eps)
