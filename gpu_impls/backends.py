"""Backends: whose arrays an implementation takes and returns, and how bits cross to them unchanged.

NumPy's arrays go as they are. PyTorch on the CPU shares our memory: strides are kept, a write into an input is seen, an
``out`` tensor is ours; bfloat16 crosses as int16, which NumPy and PyTorch both have. JAX's arrays are immutable copies
without strides; every bit pattern survives them (payloads of NaN, signalling NaN and subnormals too). Crossing is
tested bit by bit, because a copy that canonicalises a NaN or flushes a subnormal would change what is measured.

On the GPU, CuPy and PyTorch get a copy of all the memory beneath an array, gaps and guard words included, and a view of
it with the very offset and strides; after the call the memory is brought back whole. From then on it is as if it had
been shared all along.
"""

import functools
import os
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


def _prepare_jax(jax: Any) -> None:
    """Without the first, JAX turns float64 into float32; without the second, it takes most of the GPU's memory."""
    jax.config.update("jax_enable_x64", True)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


TORCH = Library("torch", _pin_to_one_thread)
JAX = Library("jax", _prepare_jax)
CUPY = Library("cupy")


@dataclass(frozen=True)
class Lent:
    """An array as a library sees it, and what brings the memory beneath it back to ours (nothing where it is ours)."""

    native: Any
    bring_back: Callable[[], None] = lambda: None


def _nothing_refused(array: Array) -> str | None:
    return None


def _nothing_to_wait_for() -> None:
    pass


@dataclass(frozen=True)
class Backend:
    """A library whose arrays kernels take, and where they lie.

    Attributes:
        name: as in contracts.
        needs: what ``gpu_impls.libraries.absent`` looks for; None where it is always here.
        load: imports it.
        lend: our array as one of its own, bit for bit.
        to_numpy: its array as one of ours, bit for bit; None for what is not an array of its own.
        refuses: why it cannot be given an array that lies so in memory, or None.
        writable: its arrays can be written, and what is written comes back: an ``out`` buffer can be handed over.
        synchronize: waits until all that was started is done; raises what went wrong.
    """

    name: str
    needs: str | None
    load: Callable[[], Any]
    lend: Callable[[Array], Lent]
    to_numpy: Callable[[Any], Array | None]
    refuses: Callable[[Array], str | None] = _nothing_refused
    writable: bool = True
    synchronize: Callable[[], Any] = _nothing_to_wait_for

    def missing(self) -> str | None:
        """What is missing, in words; None where all is here."""
        return absent(self.needs) if self.needs else None

    def available(self) -> bool:
        return self.missing() is None

    def ruined_by(self, error: str) -> bool:
        """Whether after ``error`` no other call can be served here: the device's memory is exhausted, and may stay
        so, or its context is lost, as after an illegal address or a trap."""
        if "out of memory" in error.lower():
            return True
        try:
            self.synchronize()
        except Exception:  # each library has classes of its own
            return True
        return False


def _as_it_is(array: Array) -> Lent:
    return Lent(array)


def _if_numpy(value: Any) -> Array | None:
    return value if isinstance(value, np.ndarray) else None


def memory_beneath(array: Array) -> Array:
    """All bytes of the array that owns the memory of this view, as one writable row."""
    owner, below = array, array.base
    while below is not None:
        owner = below if isinstance(below, np.ndarray) else owner
        below = getattr(below, "base", None)
    return owner.ravel(order="K").view(np.uint8)


def _copied(
    array: Array,
    upload: Callable[[Array], Any],
    view: Callable[[Any, Array, int], Any],
    download: Callable[[Any], Array],
) -> Lent:
    """A view of a copy of all the memory beneath ``array``.

    Args:
        upload: bytes to the device.
        view: device memory, and where and how the array lies in it, as an array there.
        download: device memory as bytes.
    """
    ours = memory_beneath(array)
    theirs = upload(ours)
    offset = _address(array) - _address(ours) if array.size else 0

    def bring_back() -> None:
        ours[...] = download(theirs)

    return Lent(view(theirs, array, offset), bring_back)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _refused_by_cuda(array: Array) -> str | None:
    return None if array.flags.aligned else "CUDA reads elements only at multiples of their size"


def _lend_cupy(array: Array) -> Lent:
    def view(memory: Any, array: Array, offset: int) -> Any:
        return CUPY.ndarray(array.shape, array.dtype, memptr=memory.data + offset, strides=array.strides)

    return _copied(array, CUPY.asarray, view, CUPY.asnumpy)


def _from_cupy(value: Any) -> Array | None:
    return CUPY.asnumpy(value) if isinstance(value, CUPY.ndarray) else None


def _lend_torch(array: Array) -> Lent:
    if array.dtype == BFLOAT16:
        return Lent(TORCH.from_numpy(array.view(np.int16)).view(TORCH.bfloat16))
    return Lent(TORCH.from_numpy(array))


def _lend_torch_cuda(array: Array) -> Lent:
    def view(memory: Any, array: Array, offset: int) -> Any:
        size = array.dtype.itemsize
        strides = [stride // size for stride in array.strides]
        return TORCH.as_strided(memory.view(getattr(TORCH, array.dtype.name)), array.shape, strides, offset // size)

    return _copied(array, lambda ours: TORCH.from_numpy(ours).cuda(), view, lambda theirs: theirs.cpu().numpy())


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


def _refused_by_torch_cuda(array: Array) -> str | None:
    return _refused_by_torch(array) or _refused_by_cuda(array)


def _lend_jax(array: Array, platform: str) -> Lent:
    return Lent(JAX.numpy.array(array, device=JAX.devices(platform)[0]))


def _from_jax(value: Any) -> Array | None:
    return np.asarray(value) if isinstance(value, JAX.Array) else None


def _refused_by_jax(array: Array) -> str | None:
    plain = array.flags.c_contiguous and array.flags.aligned
    return None if plain else "JAX arrays have no strides: it would get a contiguous copy"


def _jax_on(platform: str) -> dict[str, Any]:
    return {
        "load": JAX.load,
        "lend": functools.partial(_lend_jax, platform=platform),
        "to_numpy": _from_jax,
        "refuses": _refused_by_jax,
        "writable": False,
    }


BACKENDS: dict[str, Backend] = {
    b.name: b
    for b in (
        Backend("numpy", None, lambda: np, _as_it_is, _if_numpy),
        Backend("torch", "torch", TORCH.load, _lend_torch, _from_torch, _refused_by_torch),
        Backend("jax", "jax", **_jax_on("cpu")),
        Backend(
            "cupy",
            "cupy+cuda",
            CUPY.load,
            _lend_cupy,
            _from_cupy,
            _refused_by_cuda,
            synchronize=lambda: CUPY.cuda.runtime.deviceSynchronize(),
        ),
        Backend(
            "torch_cuda",
            "torch+cuda",
            TORCH.load,
            _lend_torch_cuda,
            _from_torch,
            _refused_by_torch_cuda,
            synchronize=lambda: TORCH.cuda.synchronize(),
        ),
        Backend(
            "jax_cuda",
            "jax+cuda",
            **_jax_on("cuda"),
            synchronize=lambda: JAX.device_put(0, JAX.devices("cuda")[0]).block_until_ready(),
        ),
    )
}
