"""Choosing the shape of a kernel whose row stays in registers: threads, elements a thread, 16-byte accesses or not."""

from dataclasses import replace
from typing import Any

from gpu_impls.cuda.launch import LARGEST_BLOCK, WARP, Array, Kernel, checked, norm_rows, on_device

VECTOR_BYTES = 16
ELEMENTS = 16  # a thread, where a block of LARGEST_BLOCK allows it
MOST_ELEMENTS = 32
# Threads of a multiprocessor that shall fit at once: the compiler is held to as many registers as that leaves.
RESIDENT = {ELEMENTS: 1536, MOST_ELEMENTS: 1024}
MOST_BLOCKS = 32  # of a multiprocessor


def resident(
    file: str, name: str, x: Array, others: tuple[Array | None, ...], mask: Array | None, block: int | None, flush: bool
) -> Kernel:
    """The kernel ``name`` of ``file``.cu for the rows of ``x``; ``others`` are the arrays it reads or writes beside it.

    Up to 32 elements a thread stay in registers; longer rows are read twice, a tile at a time. The shape depends on n
    and the element's size alone, so the bits of a result do not depend on the layout or the batch.

    Raises:
        ValueError: a ``block`` that is not a multiple of 32 from 32 to 1,024.
    """
    n, vector = x.shape[1], VECTOR_BYTES // x.dtype.itemsize
    kernel = Kernel(file, name, fitting_block(n) if block is None else block, flush)
    block = kernel.block
    needed = -(-n // block)
    elements = max(vector, power_of_two_from(needed)) if needed <= MOST_ELEMENTS else ELEMENTS
    whole = mask is None and n % vector == 0 and all(a is None or in_vectors(a) for a in (x, *others))
    defines = {
        "BLOCK": block,
        "BLOCKS": min(max(RESIDENT[max(elements, ELEMENTS)] // block, 1), MOST_BLOCKS),
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


def fitting_block(n: int) -> int:
    """Threads that hold a row of n at 16 elements each, whole warps; 512 for rows that no block can hold."""
    if n > LARGEST_BLOCK * MOST_ELEMENTS:
        return LARGEST_BLOCK // 2
    return min(-(-max(n, 1) // (ELEMENTS * WARP)) * WARP, LARGEST_BLOCK)


def power_of_two_from(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def in_vectors(array: Array) -> bool:
    """Whether the elements of every row are neighbours and every row starts at a multiple of 16 bytes."""
    *between, within = array.strides
    return within == array.dtype.itemsize and all(s % VECTOR_BYTES == 0 for s in (address(array), *between))


def address(array: Array) -> int:
    interface: Any = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(interface["data"][0])
