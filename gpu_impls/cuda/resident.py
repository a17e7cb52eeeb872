"""Choosing the shape of a kernel whose row stays in registers: threads, elements a thread, 16-byte accesses or not."""

from dataclasses import replace
from typing import Any, NamedTuple

from gpu_impls.cuda.launch import LARGEST_BLOCK, WARP, Array, Kernel, checked, norm_rows, on_device

VECTOR_BYTES = 16
MOST_REGISTERS = 65_536  # of a multiprocessor
MOST_BLOCKS = 32  # likewise


class Shape(NamedTuple):
    """How a kernel's rows are dealt out.

    Attributes:
        elements: of a row, in the registers of a thread, as far as a block of 1,024 threads allows it.
        registers: a thread may have, so that many rows are on their way at once.
    """

    elements: int
    registers: int


# By kernel and bytes of an element: of those tried on an H200, the one whose slower of n = 4,096 and 8,192 was fastest.
SHAPES = {
    ("softmax_one_read", 4): Shape(16, 40),
    ("softmax_one_read", 2): Shape(32, 48),
    ("rms_norm_one_read", 4): Shape(32, 64),
    ("rms_norm_one_read", 2): Shape(32, 64),
    ("layer_norm_accurate", 4): Shape(32, 64),
    ("layer_norm_accurate", 2): Shape(32, 80),
}


def resident(
    file: str, name: str, x: Array, others: tuple[Array | None, ...], mask: Array | None, block: int | None, flush: bool
) -> Kernel:
    """The kernel ``name`` of ``file``.cu for the rows of ``x``; ``others`` are the arrays it reads or writes beside it.

    Rows that a block cannot hold are read twice, a tile at a time. The shape depends on n and the element's size alone,
    so the bits of a result do not depend on the layout or the batch.

    Raises:
        ValueError: a ``block`` that is not a multiple of 32 from 32 to 1,024.
    """
    n, vector = x.shape[1], VECTOR_BYTES // x.dtype.itemsize
    shape = SHAPES[file, x.dtype.itemsize]
    kernel = Kernel(file, name, fitting_block(n, shape.elements) if block is None else block, flush)
    block = kernel.block
    elements = max(vector, min(power_of_two_from(-(-n // block)), shape.elements))
    whole = mask is None and n % vector == 0 and all(a is None or in_vectors(a) for a in (x, *others))
    defines = {
        "BLOCK": block,
        "BLOCKS": min(max(MOST_REGISTERS // (shape.registers * block), 1), MOST_BLOCKS),
        "ITEMS": elements // vector,
        "TILES": max(-(-n // (block * elements)), 1),
        "WHOLE": int(whole),  # 16 bytes at a time
    }
    return replace(kernel, defines=tuple(defines.items()))


def resident_norm(
    file: str,
    name: str,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    out: Array | None,
    *,
    statistics: tuple[Array | None, ...] = (),
    block: int | None = None,
    flush: bool = False,
) -> Array:
    """Run a norm whose row stays in registers: ``gpu_impls.cuda.launch.norm_rows`` with the kernel chosen."""
    x = checked(on_device(x))
    weight, bias, out = (None if a is None else on_device(a) for a in (weight, bias, out))
    kernel = resident(file, name, x, (weight, bias, out), None, block, flush)
    return norm_rows(kernel, x, weight, bias, eps, out, statistics)


def fitting_block(n: int, elements: int) -> int:
    """Whole warps that hold a row at so many elements a thread; 512 threads for rows that no block can hold."""
    threads = -(-max(n, 1) // (elements * WARP)) * WARP
    return threads if threads <= LARGEST_BLOCK else LARGEST_BLOCK // 2


def power_of_two_from(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def in_vectors(array: Array) -> bool:
    """Whether the elements of every row are neighbours and every row starts at a multiple of 16 bytes."""
    *between, within = array.strides
    return within == array.dtype.itemsize and all(s % VECTOR_BYTES == 0 for s in (address(array), *between))


def address(array: Array) -> int:
    interface: Any = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(interface["data"][0])
