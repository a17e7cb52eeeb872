"""Backends: whose arrays an implementation takes and returns, and how bits cross to them unchanged.

NumPy's arrays go as they are. PyTorch shares our memory: strides are kept, a write into an input is seen, an ``out``
tensor is ours; bfloat16 crosses as int16, which NumPy and PyTorch both have. JAX's arrays are immutable copies without
strides; every bit pattern survives them (payloads of NaN, signalling NaN and subnormals too). Crossing is tested bit
by bit, because a copy that canonicalises a NaN or flushes a subnormal would change what is measured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from gpu_impls.libraries import Library, absent
from oracles.formats import Array

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def _pin_to_one_thread(torch: Any) -> None:
    """The order of a sum must not depend on how many cores a machine has, or has to spare."""
    torch.set_num_threads(1)


def _allow_float64(jax: Any) -> None:
    """Without this JAX turns float64 into float32."""
    jax.config.update("jax_enable_x64", True)


TORCH = Library("torch", _pin_to_one_thread)
JAX = Library("jax", _allow_float64)


@dataclass(frozen=True)
class Backend:
    """A library whose arrays kernels take.

    Attributes:
        name: as in contracts.
        extra: the pip extra that brings it; None where it is always here.
        load: imports it.
        to_native: our array as one of its own, bit for bit.
        to_numpy: its array as one of ours, bit for bit; None for what is not an array of its own.
        refuses: why it cannot be given an array that lies so in memory, or None.
        writable: its arrays can be written, and share our memory: an ``out`` buffer can be handed over.
    """

    name: str
    extra: str | None
    load: Callable[[], Any]
    to_native: Callable[[Array], Any]
    to_numpy: Callable[[Any], Array | None]
    refuses: Callable[[Array], str | None]
    writable: bool = True

    def missing(self) -> str | None:
        """What to install, in words; None where it is here."""
        return absent(self.extra) if self.extra else None

    def available(self) -> bool:
        return self.missing() is None


def _as_it_is(array: Array) -> Array:
    return array


def _if_numpy(value: Any) -> Array | None:
    return value if isinstance(value, np.ndarray) else None


def _nothing_refused(array: Array) -> str | None:
    return None


def _to_torch(array: Array) -> Any:
    if array.dtype == BFLOAT16:
        return TORCH.from_numpy(array.view(np.int16)).view(TORCH.bfloat16)
    return TORCH.from_numpy(array)


def _from_torch(value: Any) -> Array | None:
    if not isinstance(value, TORCH.Tensor) or value.layout is not TORCH.strided:
        return None
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    try:
        if tensor.dtype == TORCH.bfloat16:
            return tensor.view(TORCH.int16).numpy().view(BFLOAT16)
        return tensor.numpy()
    except TypeError:  # a dtype that NumPy does not have
        return None


def _refused_by_torch(array: Array) -> str | None:
    return "PyTorch has no negative strides" if any(stride < 0 for stride in array.strides) else None


def _to_jax(array: Array) -> Any:
    return JAX.numpy.array(array)


def _from_jax(value: Any) -> Array | None:
    return np.asarray(value) if isinstance(value, JAX.Array) else None


def _refused_by_jax(array: Array) -> str | None:
    plain = array.flags.c_contiguous and array.flags.aligned
    return None if plain else "JAX arrays have no strides: it would get a contiguous copy"


BACKENDS: dict[str, Backend] = {
    b.name: b
    for b in (
        Backend("numpy", None, lambda: np, _as_it_is, _if_numpy, _nothing_refused),
        Backend("torch", "torch", TORCH.load, _to_torch, _from_torch, _refused_by_torch),
        Backend("jax", "jax", JAX.load, _to_jax, _from_jax, _refused_by_jax, writable=False),
    )
}
