"""Softmax of each row in three ways. All can write into ``out``, x itself too."""

from gpu_impls.cuda.kernels import BLOCK, LANES, cuda_kernel, faulty_kernel
from gpu_impls.cuda.launch import Array, Kernel, checked, map_rows, on_device
from gpu_impls.cuda.resident import resident
from gpu_impls.numpy.softmax import ONLINE, THREE_PASS


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


@cuda_kernel("softmax", summation="tree", source=THREE_PASS)
def one_read(
    x: Array, mask: Array | None = None, out: Array | None = None, *, flush: bool = False, block: int | None = None
) -> Array:
    """Memory is asked for a row once: it stays in registers or caches. Rows that no block holds are read twice."""
    return _one_read("one_read", x, mask, out, flush, block)


PADDED = "what lies beyond the row, or is hidden, adds exp(0 - m) to the sum"


@faulty_kernel("softmax", dict.fromkeys(("accuracy", "special_values", "masks"), PADDED))
def padded_with_zero(x: Array, mask: Array | None = None, out: Array | None = None) -> Array:
    """Faulty: registers beyond the row hold 0, the identity of a sum, not of a softmax."""
    return _one_read("padded_with_zero", x, mask, out)


def _one_read(
    name: str, x: Array, mask: Array | None, out: Array | None, flush: bool = False, block: int | None = None
) -> Array:
    x, out = checked(on_device(x)), None if out is None else on_device(out)
    return map_rows(resident("softmax_one_read", name, x, (out,), mask, block, flush), x, mask, out)
