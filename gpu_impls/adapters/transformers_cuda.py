"""LlamaRMSNorm on the GPU: see ``gpu_impls.adapters.transformers``."""

from gpu_impls import implementation
from gpu_impls.adapters.torch import DOMAIN, NARROW, WIDE
from gpu_impls.adapters.torch_cuda import DEPENDS_ON_BATCH
from gpu_impls.adapters.transformers import llama_rms_norm

for name, dtypes, deviates in (("llama_cuda", WIDE, DEPENDS_ON_BATCH), ("llama_cuda_narrow", NARROW, {})):
    implementation(
        "rms_norm",
        name=name,
        dtypes=dtypes,
        backend="torch_cuda",
        accumulate="float32",
        cast="before_weight",
        domain=DOMAIN,
        source="transformers",
        origin=__name__,
        **deviates,
    )(llama_rms_norm)
