"""Launching a row kernel: arguments checked and laid out without a GPU, then handed to CuPy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_impls.backends import CUPY as cupy
from gpu_impls.cuda.compiled import module, options

Array = Any  # cupy.ndarray, or what DLPack makes one of

# Storage formats and what their elements are called in storage.cuh.
STORAGE = {"float32": "float", "float16": "Half", "bfloat16": "BFloat16"}
WARP, LARGEST_BLOCK = 32, 1024
LONGEST = 131_072
MOST_ROWS = 2**31 - 1  # blocks of a grid


@dataclass(frozen=True)
class Kernel:
    """One kernel: its file, its name there, threads a block, and whether subnormals are flushed.

    Raises:
        ValueError: a block that is not a multiple of 32 from 32 to 1,024.
    """

    file: str
    name: str
    block: int
    flush: bool
    defines: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.block not in range(WARP, LARGEST_BLOCK + 1, WARP):
            raise ValueError(f"block={self.block!r}: expected a multiple of {WARP} from {WARP} to {LARGEST_BLOCK}")

    def flags(self, dtype: str) -> tuple[str, ...]:
        return options(STORAGE[dtype], self.flush, dict(self.defines))

    def launch(self, x: Array, arguments: Sequence[Any]) -> None:
        """One block a row of ``x``; nothing to do where there is none."""
        if x.shape[0]:
            function = module(self.file, self.flags(x.dtype.name)).get_function(self.name)
            function((x.shape[0],), (self.block,), tuple(arguments))


def on_device(x: Array) -> Array:
    """A CuPy array as it is; that of another library (PyTorch, JAX) by DLPack, in the same memory.

    Raises:
        ValueError: it lies in the memory of the host, or is no array at all.
    """
    if isinstance(x, cupy.ndarray):
        return x
    try:
        return cupy.from_dlpack(x)
    except (AttributeError, RuntimeError, TypeError, BufferError, ValueError) as error:
        raise ValueError(f"{type(x).__name__}: expected an array on a CUDA device ({error})") from error


def checked(x: Array) -> Array:
    """``x`` as rows.

    Raises:
        ValueError: a dtype or shape that kernels do not take.
    """
    if x.dtype.name not in STORAGE:
        raise ValueError(f"x is {x.dtype.name}: expected one of {', '.join(STORAGE)}")
    if x.ndim != 2 or x.shape[0] > MOST_ROWS or x.shape[1] > LONGEST:
        raise ValueError(f"x has shape {tuple(x.shape)}: expected (rows, n) with n at most {LONGEST:,}")
    return x


def strided(array: Array | None, name: str, shape: tuple[int, ...], dtype: str) -> tuple[Any, ...]:
    """A kernel's arguments for one array: a pointer (null for None), and strides counted in elements.

    Raises:
        ValueError: another shape or dtype, or strides that are no multiple of the element's size.
    """
    if array is None:
        return (np.uint64(0), *[np.int64(0)] * len(shape))
    if tuple(array.shape) != shape or array.dtype.name != dtype:
        raise ValueError(f"{name} is {array.dtype.name} {tuple(array.shape)}: expected {dtype} {shape}")
    size = array.dtype.itemsize
    if any(stride % size for stride in array.strides):
        raise ValueError(f"{name} has strides {array.strides}: expected multiples of {size} bytes")
    return (array, *(np.int64(stride // size) for stride in array.strides))


def reduce_rows(kernel: Kernel, x: Array, mask: Array | None, out: Array | None) -> Array:
    """Run a kernel that answers each row of ``x`` (rows, n) with one value."""
    return _masked_rows(kernel, x, mask, out, axes=1)


def map_rows(kernel: Kernel, x: Array, mask: Array | None, out: Array | None) -> Array:
    """Run a kernel of the softmax family: one value for each element; ``out`` may be ``x``."""
    return _masked_rows(kernel, x, mask, out, axes=2)


def _masked_rows(kernel: Kernel, x: Array, mask: Array | None, out: Array | None, axes: int) -> Array:
    """The result has the first ``axes`` axes of ``x``."""
    x = checked(on_device(x))
    mask = None if mask is None else on_device(mask)
    out = cupy.empty(x.shape[:axes], x.dtype) if out is None else on_device(out)
    kernel.launch(x, masked_arguments(x, mask, out, axes))
    return out


def masked_arguments(x: Array, mask: Array | None, out: Array, axes: int) -> list[Any]:
    """x, mask, out and n, in the order of the kernels of sums and of the softmax family."""
    shape, dtype = tuple(x.shape), x.dtype.name
    return [
        *strided(x, "x", shape, dtype),
        *strided(mask, "mask", shape, "bool"),
        *strided(out, "out", shape[:axes], dtype),
        np.int32(shape[1]),
    ]


def norm_rows(
    kernel: Kernel,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    out: Array | None,
    statistics: Sequence[Array | None] = (),
) -> Array:
    """Run a norm's kernel. ``out`` may be ``x``; ``statistics`` are float32 arrays (rows,), or None where unwanted."""
    x = checked(on_device(x))
    weight, bias = (None if a is None else on_device(a) for a in (weight, bias))
    out = cupy.empty(x.shape, x.dtype) if out is None else on_device(out)
    places = [None if a is None else on_device(a) for a in statistics]
    kernel.launch(x, norm_arguments(x, weight, bias, eps, out, places))
    return out


def norm_arguments(
    x: Array, weight: Array | None, bias: Array | None, eps: float, out: Array, statistics: Sequence[Array | None]
) -> list[Any]:
    """x, weight, bias, out, statistics, eps and n, in the order of the norms' kernels."""
    shape, dtype = tuple(x.shape), x.dtype.name
    pointers = []
    for place in statistics:
        pointer, stride = strided(place, "statistics", shape[:1], "float32")
        if stride not in (0, 1) and shape[0] > 1:
            raise ValueError(f"statistics have stride {stride}: expected contiguous arrays")
        pointers.append(pointer)
    return [
        *strided(x, "x", shape, dtype),
        *strided(weight, "weight", shape[1:], dtype),
        *strided(bias, "bias", shape[1:], dtype),
        *strided(out, "out", shape, dtype),
        *pointers,
        np.float32(eps),
        np.int32(shape[1]),
    ]
