"""Which shape suits a GPU: ``python benchmarks/resident_shapes.py [--length N] [--out FILE]``.

The kernels whose rows stay in registers or in the caches (gpu_impls/cuda/resident.py), in every shape that may do: how
many elements a thread holds, how many registers it may have, whether a row is read again. Copy and candidates take
turns, as in kernel_bandwidth.py; the share of the copy's bandwidth counts. ``*`` marks what SHAPES has.
"""

from collections.abc import Iterator
from functools import partial

from kernel_bandwidth import DTYPES, Call, arguments, check, need_a_gpu, seconds, work

from gpu_impls.backends import TORCH as torch
from gpu_impls.cuda.launch import LONGEST
from gpu_impls.cuda.resident import SHAPES, Shape, shape_for

LENGTHS = (4096, 8192)
# The file and the name of each operator's kernel.
KERNELS = {
    "softmax": ("softmax_one_read", "one_read"),
    "rms_norm": ("rms_norm_one_read", "one_read"),
    "layer_norm": ("layer_norm_accurate", "in_double"),
}


def candidates(itemsize: int) -> list[Shape]:
    """What a row takes of a thread's registers leaves at least 8 for the rest, and 24 if it stays there."""
    shapes = []
    for words in (8, 16, 32):
        elements = words * 4 // itemsize
        shapes += [Shape(elements, r, again=True) for r in (32, 40, 48, 64) if words + 8 <= r <= words + 40]
        shapes += [Shape(elements, r) for r in (32, 40, 48, 64, 80) if words + 24 <= r <= words + 48]
    return shapes


def in_shape(ours: Call, key: tuple[str, int], shape: Shape) -> object:
    """The kernel's result, with that shape alone to choose from."""
    before = SHAPES[key]
    SHAPES[key] = (shape,)
    try:
        return ours()
    finally:
        SHAPES[key] = before


def measured(op: str, dtype: str, n: int, rounds: int) -> Iterator[str]:
    """One row of the table for every shape, the fastest first."""
    todo, (file, name) = work(op, dtype, n), KERNELS[op]
    itemsize, ours = int(todo.x.element_size()), todo.contenders(compiled=False)["ours"]
    ours_now = shape_for(file, name, itemsize, n)._replace(longest=LONGEST)
    shapes = dict.fromkeys([ours_now, *candidates(itemsize)])
    calls: dict[str, Call] = {
        str(k): partial(in_shape, ours, (file, itemsize), shape) for k, shape in enumerate(shapes)
    }
    check(todo, calls)
    found = seconds({"copy": todo.copy, **calls}, rounds)
    for k, shape in sorted(enumerate(shapes), key=lambda pair: found[str(pair[0])]):
        share = f"{found['copy'] / found[str(k)]:.3f}{'*' if k == 0 else ''}"
        told = f"{shape.elements} | {shape.registers} | {'again' if shape.again else ''}"
        yield f"| {op} | {dtype} | {n} | {told} | {share} |"


def main() -> None:
    parser = arguments("Shapes of kernels whose rows stay in registers, beside a copy.", LENGTHS, rounds=12)
    parser.add_argument("--op", action="append", choices=KERNELS, help="only this operator (repeatable)")
    options = parser.parse_args()
    need_a_gpu()
    print(f"{torch.cuda.get_device_name()}; median of {options.rounds} rounds.", file=options.out)
    print("\n| operator | dtype | n | elements | registers | read | share of copy |", file=options.out)
    print("|---|---|---:|---:|---:|---|---:|", file=options.out)
    for op in options.op or KERNELS:
        for dtype in DTYPES:
            for n in options.length or LENGTHS:
                for line in measured(op, dtype, n, options.rounds):
                    print(line, file=options.out, flush=True)


if __name__ == "__main__":
    main()
