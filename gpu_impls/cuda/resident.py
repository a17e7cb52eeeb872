"""The shape of a kernel that asks memory for a row once: threads, elements a thread, 16-byte accesses or not."""

from dataclasses import replace
from typing import Any, NamedTuple

from gpu_impls.cuda.launch import LARGEST_BLOCK, LONGEST, WARP, Array, Kernel, checked, norm_rows, on_device

VECTOR_BYTES = 16
QUARTERS, MOST_REGISTERS = 4, 16_384  # of a multiprocessor, each with registers of its own for whole warps
MOST_BLOCKS = 32  # of a multiprocessor
ONE_BY_ONE = 64  # registers that a thread needs at least where it asks for elements one by one


class Shape(NamedTuple):
    """How a kernel's rows are dealt out.

    Attributes:
        elements: of a row, in the registers of a thread, as far as a block of 1,024 threads allows it.
        registers: a thread may have where several blocks share a multiprocessor, so that many rows are on their way.
        again: a row is read a second time, from the caches, and not kept in registers in between.
        longest: n up to which it is meant.
    """

    elements: int
    registers: int
    again: bool = False
    longest: int = LONGEST


# By kernel and bytes of an element, the first whose ``longest`` is not exceeded: of those tried on an H200, the fastest
# at powers of two from 1,024 to 65,536. benchmarks/resident_shapes.py tries them on another GPU.
SHAPES = {
    ("softmax_one_read", 4): (
        Shape(8, 32, again=True, longest=4096),
        Shape(16, 40, again=True, longest=8192),
        Shape(32, 48, again=True, longest=32_768),
        Shape(32, 80),
    ),
    ("softmax_one_read", 2): (
        Shape(32, 64, longest=8192),
        Shape(64, 80, longest=16_384),
        Shape(64, 64, again=True, longest=32_768),
        Shape(32, 48),
    ),
    ("rms_norm_one_read", 4): (
        Shape(8, 32, again=True, longest=4096),
        Shape(16, 40, again=True, longest=8192),
        Shape(32, 48, again=True),
    ),
    ("rms_norm_one_read", 2): (
        Shape(16, 32, again=True, longest=8192),
        Shape(32, 40, again=True, longest=16_384),
        Shape(64, 64, again=True),
    ),
    ("layer_norm_accurate", 4): (
        Shape(16, 48, again=True, longest=4096),
        Shape(16, 40, again=True, longest=8192),
        Shape(32, 64, again=True),
    ),
    ("layer_norm_accurate", 2): (Shape(32, 40, again=True, longest=16_384), Shape(64, 64, again=True)),
    ("layer_norm_accurate.in_two_floats", 4): (Shape(32, 64),),
}


def resident(
    file: str, name: str, x: Array, others: tuple[Array | None, ...], mask: Array | None, block: int | None, flush: bool
) -> Kernel:
    """The kernel ``name`` of ``file``.cu for the rows of ``x``; ``others`` are the arrays it reads or writes beside it.

    Rows that a block cannot hold are read twice, a tile at a time. Block and tiles depend on n and the element's size
    alone, so the bits of a result do not depend on the layout or the batch.

    Raises:
        ValueError: a ``block`` that is not a multiple of 32 from 32 to 1,024.
    """
    n, vector = x.shape[1], VECTOR_BYTES // x.dtype.itemsize
    whole = mask is None and n % vector == 0 and all(a is None or in_vectors(a) for a in (x, *others))
    shape = shape_for(file, name, x.dtype.itemsize, n)
    if not whole:
        shape = shape._replace(again=False, registers=max(shape.registers, ONE_BY_ONE))
    kernel = Kernel(file, name, fitting_block(n, shape.elements) if block is None else block, flush)
    block = kernel.block
    elements = max(vector, min(power_of_two_from(-(-n // block)), shape.elements))
    tiles = max(-(-n // (block * elements)), 1)
    warps = QUARTERS * (MOST_REGISTERS // (shape.registers * WARP))
    defines = {
        "BLOCK": block,
        "BLOCKS": min(max(warps // (block // WARP), 1), MOST_BLOCKS),
        "ITEMS": elements // vector,
        "TILES": tiles,
        "AGAIN": int(shape.again),
        "WHOLE": int(whole),  # 16 bytes at a time
        "FULL": int(n == tiles * block * elements),
    }
    return replace(kernel, defines=tuple(defines.items()))


def shape_for(file: str, name: str, itemsize: int, n: int) -> Shape:
    """A kernel's own shapes, or those of its file."""
    own = SHAPES.get((f"{file}.{name}", itemsize)) or SHAPES[file, itemsize]
    return next((shape for shape in own if n <= shape.longest), own[-1])


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
    """Run a norm that asks memory for a row once: ``gpu_impls.cuda.launch.norm_rows`` with the kernel chosen."""
    x = checked(on_device(x))
    weight, bias, out = (None if a is None else on_device(a) for a in (weight, bias, out))
    kernel = resident(file, name, x, (weight, bias, out), None, block, flush)
    given = {"WEIGHT": int(weight is not None), "BIAS": int(bias is not None)}
    kernel = replace(kernel, defines=(*kernel.defines, *given.items()))
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
