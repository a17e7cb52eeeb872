"""CUDA kernels, the half that needs no GPU: what is refused, how arrays are laid out, that every source compiles."""

import importlib
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_impls import libraries
from gpu_impls.cuda.compiled import SOURCES, options
from gpu_impls.cuda.launch import (
    LONGEST,
    STORAGE,
    Kernel,
    checked,
    masked_arguments,
    norm_arguments,
    strided,
)
from gpu_impls.cuda.resident import address, in_vectors, resident, shape_for
from gpu_impls.libraries import absent
from gpu_impls.registry import BUILT_IN, Implementation, implementations, isolated
from oracles.formats import FORMATS
from properties.declarations import check_declarations
from properties.layouts import LAYOUTS

MODULES = [module for module in BUILT_IN if module.startswith("gpu_impls.cuda.")]
with isolated():  # where there is no GPU, nothing but this file knows them
    faulty, fused, softmax = (
        importlib.import_module(f"gpu_impls.cuda.{name}") for name in ("faulty", "fused_add_rms_norm", "softmax")
    )
    for module in MODULES:
        importlib.import_module(module)
    KERNELS = [i for i in implementations() if i.origin in MODULES]
FAST = {"one_read", "in_double"}
FILES = sorted(path.stem for path in SOURCES.glob("*.cu"))
RESIDENT = [name for name in FILES if "resident.cuh" in (SOURCES / f"{name}.cu").read_text()]
ARCHITECTURES = (80, 90, 100)
ROWS = np.zeros((4, 5), np.float32)


@pytest.mark.parametrize("block", [32, 64, 96, 256, 1024])
def test_multiples_of_a_warp_are_block_sizes(block: int):
    assert Kernel("sum", "sum", block, flush=False).block == block


@pytest.mark.parametrize("block", [-32, 0, 1, 16, 31, 33, 100, 1025, 1056, 2048, 256.5])
def test_other_block_sizes_are_refused_in_words(block: Any):
    with pytest.raises(ValueError, match=rf"block={block}: expected a multiple of 32 from 32 to 1024"):
        Kernel("sum", "sum", block, flush=False)


@pytest.mark.parametrize("flush", [True, False])
@pytest.mark.parametrize("dtype", STORAGE)
def test_nothing_that_bears_on_a_result_is_left_to_a_default(dtype: str, flush: bool):
    flags = Kernel("softmax_one_read", "one_read", 64, flush, (("ITEMS", 4),)).flags(dtype)
    wanted = {f"-ftz={str(flush).lower()}", "-prec-div=true", "-prec-sqrt=true", "-fmad=true", "--std=c++17"}
    assert wanted <= set(flags)
    assert {f"-DSTORAGE={STORAGE[dtype]}", "-DITEMS=4"} <= set(flags)
    assert flags == options(STORAGE[dtype], flush, {"ITEMS": 4})


@pytest.mark.parametrize(
    ("x", "told"),
    [
        (np.zeros((2, 3)), "x is float64: expected one of float32, float16, bfloat16"),
        (np.zeros((2, 3), np.int32), "x is int32"),
        (np.zeros(3, np.float32), r"x has shape \(3,\): expected \(rows, n\) with n at most 131,072"),
        (np.broadcast_to(np.float32(1), (2, LONGEST + 1)), r"x has shape \(2, 131073\)"),
        (np.broadcast_to(np.float32(1), (2**31, 1)), r"x has shape \(2147483648, 1\)"),
    ],
    ids=["float64", "int32", "one-dimensional", "too-long", "too-many-rows"],
)
def test_what_is_no_row_is_refused_in_words(x: np.ndarray, told: str):
    with pytest.raises(ValueError, match=told):
        checked(x)


def test_the_longest_and_the_shortest_rows_are_taken():
    for shape in ((0, 0), (3, 0), (0, 7), (1, LONGEST), (2**31 - 1, 1)):
        assert checked(np.broadcast_to(np.float32(1), shape)).shape == shape


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "misaligned"])
def test_strides_are_counted_in_elements(layout: str, dtype: str):
    x = LAYOUTS[layout](ROWS.astype(FORMATS[dtype].dtype))
    pointer, row, column = strided(x, "x", (4, 5), dtype)
    assert pointer is x
    assert (row, column) == tuple(s // x.itemsize for s in x.strides)
    assert (row.dtype, column.dtype) == (np.int64, np.int64)


def test_no_array_is_a_null_pointer():
    arguments = strided(None, "mask", (4, 5), "bool")
    assert [a.dtype for a in arguments] == [np.uint64, np.int64, np.int64]
    assert not any(arguments)


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.zeros((4, 6), np.float32), r"out is float32 \(4, 6\): expected float32 \(4, 5\)"),
        (np.zeros((4, 5), np.float16), r"out is float16 \(4, 5\): expected float32 \(4, 5\)"),
        (np.zeros((4, 5), [("a", np.int8), ("x", np.float32)])["x"], "expected multiples of 4 bytes"),
    ],
    ids=["shape", "dtype", "strides"],
)
def test_arrays_that_do_not_fit_are_refused_in_words(array: np.ndarray, told: str):
    with pytest.raises(ValueError, match=told):
        strided(array, "out", (4, 5), "float32")


def test_statistics_have_to_be_contiguous():
    x, places = ROWS, np.zeros(8, np.float32)
    assert len(norm_arguments(x, None, None, 1e-5, x, (places[:4], None))) == 14
    with pytest.raises(ValueError, match="statistics have stride 2: expected contiguous"):
        norm_arguments(x, None, None, 1e-5, x, (places[::2],))
    with pytest.raises(ValueError, match=r"statistics is float16 \(4,\): expected float32 \(4,\)"):
        norm_arguments(x, None, None, 1e-5, x, (np.zeros(4, np.float16),))


def shape(
    n: int,
    dtype: str = "float32",
    block: int | None = None,
    x: Any = None,
    file: str = "softmax_one_read",
    **others: Any,
) -> dict[str, int]:
    """What the compiler is told of a row in registers."""
    rows = np.zeros((2, n), FORMATS[dtype].dtype) if x is None else x
    kernel = resident(file, "one_read", rows, tuple(others.values()), None, block, flush=False)
    assert dict(kernel.defines)["BLOCK"] == kernel.block
    return dict(kernel.defines)


@pytest.mark.parametrize(
    ("n", "dtype", "block", "items", "tiles"),
    [
        (0, "float32", 32, 1, 1),
        (1, "bfloat16", 32, 1, 1),
        (129, "float32", 32, 2, 1),
        (513, "float32", 96, 2, 1),
        (4096, "float32", 512, 2, 1),
        (8192, "float32", 512, 4, 1),
        (8192, "bfloat16", 256, 4, 1),
        (16384, "float32", 512, 8, 1),
        (16385, "float32", 544, 8, 1),
        (32768, "float32", 1024, 8, 1),
        (32769, "float32", 512, 8, 3),
        (32768, "float16", 512, 8, 1),
        (32769, "float16", 512, 4, 3),
        (131072, "bfloat16", 512, 4, 8),
    ],
)
def test_rows_are_held_in_whole_warps(n: int, dtype: str, block: int, items: int, tiles: int):
    chosen = shape(n, dtype)
    assert (chosen["BLOCK"], chosen["ITEMS"], chosen["TILES"]) == (block, items, tiles)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("block", [None, 32, 96, 256, 1024])
def test_registers_hold_every_row_and_the_fewest_tiles(block: int | None, dtype: str):
    for n in (0, 1, 7, 31, 33, 1023, 1025, 8191, 32768, 32769, 50257, LONGEST):
        chosen, itemsize = shape(n, dtype, block), FORMATS[dtype].dtype.itemsize
        wanted = shape_for("softmax_one_read", "one_read", itemsize, n)
        tile = chosen["BLOCK"] * chosen["ITEMS"] * 16 // itemsize
        assert tile * chosen["TILES"] >= n
        assert tile * (chosen["TILES"] - 1) < max(n, 1)
        assert chosen["ITEMS"] * 16 // itemsize <= wanted.elements
        assert chosen["BLOCKS"] * chosen["BLOCK"] * wanted.registers <= 65_536 or chosen["BLOCKS"] == 1
        assert chosen["FULL"] == (tile * chosen["TILES"] == n)


def test_a_block_of_another_size_is_refused_before_a_shape_is_sought():
    with pytest.raises(ValueError, match="block=0: expected a multiple of 32"):
        shape(5, block=0)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sixteen_bytes_at_a_time_only_where_every_row_allows_it(layout: str, dtype: str):
    """Another layout changes how the row is read, and nothing that bits depend on."""
    aligned = np.zeros(4 * 64 + 8, FORMATS[dtype].dtype)
    aligned = aligned[-address(aligned) % 16 // aligned.itemsize :][: 4 * 64].reshape(4, 64)
    plain, x = shape(64, dtype, x=aligned), LAYOUTS[layout](aligned)
    assert plain["WHOLE"] == 1
    assert shape(64, dtype, x=aligned, out=x)["WHOLE"] == shape(64, dtype, x=x)["WHOLE"] == int(in_vectors(x))
    order = ("BLOCK", "ITEMS", "TILES", "FULL")
    assert [shape(64, dtype, x=x)[name] for name in order] == [plain[name] for name in order]
    starts = {address(x[r]) % 16 for r in range(len(x))}
    assert in_vectors(x) == (x.strides[1] == x.itemsize and starts == {0})
    assert shape(63, dtype)["WHOLE"] == 0


def test_masks_are_read_one_by_one():
    x = np.zeros((2, 64), np.float32)
    masked = resident("softmax_one_read", "one_read", x, (), np.ones((2, 64), np.bool_), None, flush=False)
    assert dict(masked.defines)["WHOLE"] == 0


def declared(file: str) -> dict[str, int]:
    """Every kernel of a file, and how many parameters it has."""
    text = re.sub(r"//.*", "", (SOURCES / f"{file}.cu").read_text())
    for name, value in re.findall(r"#define (ROWS_IN|NORM_IN)((?:.*\\\n)+.*)", text):
        text = text.replace(f"({name}", f"({value}").replace("\\\n", "")
    found = re.findall(r'extern "C" __global__ void __launch_bounds__\([\w, ]+\)\s*(\w+)\(([^{]*)\) \{', text)
    return {name: len(parameters.split(",")) for name, parameters in found}


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Kernel, int]]:
    """What would be launched, on arrays of NumPy in the place of CuPy's."""
    noted: list[tuple[Kernel, int]] = []
    monkeypatch.setattr("gpu_impls.cuda.launch.cupy", np)
    monkeypatch.setattr(faulty, "cupy", np)
    monkeypatch.setattr(fused, "cupy", np)
    monkeypatch.setattr(Kernel, "launch", lambda kernel, x, arguments: noted.append((kernel, len(arguments))))
    return noted


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda i: i.id)
def test_kernels_get_as_many_arguments_as_they_declare(kernel: Implementation, launched: list[tuple[Kernel, int]]):
    kernel.function(ROWS, **dict.fromkeys({"residual"} & kernel.parameters, ROWS))
    ((called, given),) = launched
    assert declared(called.file)[called.name] == given
    assert called.flush == (kernel.contract.subnormals == "flush")


def test_every_kernel_is_registered_or_told_why_not():
    assert {name: set(declared(name)) for name in FILES if not declared(name)} == {}
    assert "offset_in_32_bits" in declared("faulty")  # from 2^31 elements on: tests/misbehaving_cuda.py


def test_out_may_be_x(launched: list[tuple[Kernel, int]]):
    assert softmax.three_pass(ROWS, out=ROWS) is ROWS
    assert masked_arguments(ROWS, None, ROWS, axes=2)[0] is ROWS


def test_the_fused_kernels_arguments_are_checked(launched: list[tuple[Kernel, int]]):
    y, updated = fused.fused_add_rms_norm(ROWS, ROWS, out=ROWS, updated=ROWS)
    assert y is ROWS
    assert updated is ROWS
    with pytest.raises(ValueError, match="statistics='stored': expected one of 'unrounded', 'rounded'"):
        fused.fused_add_rms_norm(ROWS, ROWS, statistics="stored")
    with pytest.raises(ValueError, match=r"residual is float32 \(4, 4\): expected float32 \(4, 5\)"):
        fused.fused_add_rms_norm(ROWS, ROWS[:, :4])


def test_contracts():
    check_declarations(KERNELS)
    assert all(i.function.__doc__ and i.contract.backend == "cupy" for i in KERNELS)
    right = [i for i in KERNELS if not i.contract.known_faulty]
    taken = Counter((i.op, i.name.replace("_narrow", "")) for i in right for _ in i.contract.dtypes)
    assert set(taken.values()) == {len(STORAGE)}  # by one contract, or by two for wide and narrow
    assert all(i.name.endswith("_ftz") == (i.contract.subnormals == "flush") for i in right)
    assert all(BUILT_IN[module] == "cupy+cuda" for module in MODULES)


def test_without_a_device_it_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(libraries.EXTRAS, "cupy", ("numpy",))
    monkeypatch.setattr(libraries, "cuda_devices", lambda: ())
    assert absent("cupy+cuda") == "no CUDA device: NVIDIA's driver finds none here"
    assert absent("cupy") is None
    monkeypatch.setattr(libraries, "cuda_devices", lambda: ("a GPU",))
    assert absent("cupy+cuda") is None


def nvcc() -> str:
    found = shutil.which("nvcc")
    if found is None:
        pytest.skip("nvcc is not on the PATH: pip install nvidia-cuda-nvcc, as .ci/run does, or CUDA's own packages")
    return found


def compile_for_all(
    file: str, dtype: str, folder: Path, defines: dict[str, int] | None = None
) -> subprocess.CompletedProcess[str]:
    targets = [f"-gencode=arch=compute_{sm},code=sm_{sm}" for sm in ARCHITECTURES]
    command = [nvcc(), "-fatbin", "-Werror", "all-warnings", *targets, *options(STORAGE[dtype], False, defines)]
    command += ["-o", str(folder / "out.fatbin"), str(SOURCES / f"{file}.cu")]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("file", FILES)
def test_sources_compile_for_every_architecture_without_a_warning(file: str, dtype: str, tmp_path: Path):
    done = compile_for_all(file, dtype, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.fatbin").stat().st_size > 1000


@pytest.mark.parametrize(("n", "whole"), [(5, 0), (LONGEST, 1)])
@pytest.mark.parametrize("file", RESIDENT)
def test_every_shape_of_a_row_in_registers_compiles(file: str, n: int, whole: int, tmp_path: Path):
    for dtype in ("float32", "bfloat16"):
        done = compile_for_all(file, dtype, tmp_path, {**shape(n, dtype, file=file), "WHOLE": whole})
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("n", "most"), [(4096, 8), (8192, 8), (4095, 96), (8191, 96)])
@pytest.mark.parametrize("file", RESIDENT)
def test_few_bytes_of_a_thread_go_to_memory(file: str, n: int, most: int, dtype: str, tmp_path: Path):
    """None of softmax's; of the norms' two registers, and more where elements are asked for one by one."""
    flags = options(STORAGE[dtype], False, shape(n, dtype, file=file))
    command = [nvcc(), "-cubin", "-arch=sm_90", "-Xptxas", "-v", *flags, "-o", str(tmp_path / "out.cubin")]
    told = subprocess.run(
        [*command, str(SOURCES / f"{file}.cu")], capture_output=True, text=True, timeout=300, check=True
    ).stderr
    spilled = [
        int(b) for name, b in re.findall(r"'(\w+)' for 'sm_90'.*?(\d+) bytes spill stores", told, re.S) if name in FAST
    ]
    assert spilled
    assert max(spilled) <= (0 if file == "softmax_one_read" else most)


def test_a_source_with_an_error_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broken.cu").write_text('#include "storage.cuh"\nextern "C" __global__ void f() { undeclared = 1; }\n')
    monkeypatch.setattr("test_cuda.SOURCES", tmp_path)
    done = compile_for_all("broken", "float32", tmp_path)
    assert done.returncode != 0
    assert "undeclared" in done.stderr
