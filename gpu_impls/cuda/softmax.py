"""Softmax of each row in three ways. All can write into ``out``, x itself too."""

from gpu_impls.cuda.kernels import BLOCK, LANES, cuda_kernel
from gpu_impls.cuda.launch import LARGEST_BLOCK, Array, Kernel, checked, map_rows, on_device
from gpu_impls.numpy.softmax import ONLINE, THREE_PASS

MOST_ITEMS = 32  # elements a thread may keep in registers


@cuda_kernel("softmax", summation=LANES, source=THREE_PASS)
def three_pass(
    x: Array, mask: Array | None = None, out: Array | None = None, *, flush: bool = False, block: int = BLOCK
) -> Array:
    """Maximum, sum of exponentials, output: the row is read three times."""
    return map_rows(Kernel("softmax", "three_pass", block, flush), x, mask, out)


@cuda_kernel("softmax", source=f"{ONLINE}, section 3.1")
def online(
    x: Array, mask: Array | None = None, out: Array | None = None, *, flush: bool = False, block: int = BLOCK
) -> Array:
    """Maximum and sum in one reading, tiles of 4 merging into each thread's pair; then the output."""
    return map_rows(Kernel("softmax", "online", block, flush), x, mask, out)


@cuda_kernel("softmax", summation=f"lanes:{LARGEST_BLOCK}", max_length=LARGEST_BLOCK * MOST_ITEMS, source=THREE_PASS)
def one_read(
    x: Array, mask: Array | None = None, out: Array | None = None, *, flush: bool = False, block: int = LARGEST_BLOCK
) -> Array:
    """The row is read once and stays in registers: up to 32 elements a thread.

    Raises:
        ValueError: a row longer than 32 elements a thread.
    """
    x = checked(on_device(x))
    return map_rows(Kernel("softmax", "one_read", block, flush, (("ITEMS", items(x.shape[1], block)),)), x, mask, out)


def items(n: int, block: int) -> int:
    """Elements a thread keeps, a power of two: few programs serve all lengths."""
    needed = max(-(-n // block), 1)
    if needed > MOST_ITEMS:
        raise ValueError(f"n={n} with block={block}: expected at most {MOST_ITEMS} elements a thread")
    return 1 << (needed - 1).bit_length()
