"""Backends: bits cross unchanged, memory is shared where the library can, and what cannot be handed over is said."""

import ctypes
import subprocess
import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from faulty import made, row_case
from gpu_impls import backends, libraries
from gpu_impls.backends import BACKENDS, Backend, Lent, memory_beneath
from gpu_impls.call import call
from gpu_impls.contract import contract
from gpu_impls.libraries import absent
from gpu_impls.outcome import Reason
from oracles.formats import FORMATS, Format
from properties.layouts import LAYOUTS
from properties.source import PCG64Source

NATIVE = ("torch", "jax", "cupy", "torch_cuda", "jax_cuda")
WRITABLE = ("torch", "cupy", "torch_cuda")
CASE = row_case("softmax", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def here(name: str) -> Backend:
    backend = BACKENDS[name]
    if not backend.available():
        pytest.skip(backend.missing())
    backend.load()
    return backend


def patterns(fmt: Format) -> np.ndarray:
    """Every bit pattern of 16 bits; of the wide formats the edges, NaN with payloads, and drawn ones."""
    width = 8 * fmt.dtype.itemsize
    if width == 16:
        return np.arange(2**16, dtype=np.uint16)
    drawn = PCG64Source("patterns", fmt.name).integers(-(2**62), 2**62 - 1, 40_000).view(np.uint64)
    drawn = (drawn << np.uint64(1)) ^ (drawn >> np.uint64(7))
    infinity, sign = int(fmt.bits(np.array([np.inf]))[0]), 1 << (width - 1)
    edges = [0, 1, 2, 0x7FF, infinity - 1, infinity, infinity + 1, infinity + 0x2B, sign - 1]
    words = [*edges, *(sign | e for e in edges)]
    return np.concatenate([np.array(words, fmt.bits_dtype), drawn.astype(fmt.bits_dtype)])


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", BACKENDS)
def test_bits_cross_unchanged(name: str, fmt: Format):
    backend, bits = here(name), patterns(fmt)
    rows = fmt.from_bits(bits[: bits.size // 2 * 2]).reshape(2, -1)
    back = backend.to_numpy(backend.lend(rows).native)
    assert (back.dtype, back.shape) == (fmt.dtype, rows.shape)
    assert np.array_equal(fmt.bits(back), fmt.bits(rows))


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 0), (1, 1)], ids=str)
@pytest.mark.parametrize("name", BACKENDS)
def test_empty_arrays_and_masks_cross_too(name: str, shape: tuple[int, int]):
    backend = here(name)
    for fmt in FORMATS.values():
        back = backend.to_numpy(backend.lend(np.zeros(shape, fmt.dtype)).native)
        assert (back.dtype, back.shape) == (fmt.dtype, shape)
    mask = np.ones((2, 3), np.bool_)
    assert backend.to_numpy(backend.lend(mask).native).tolist() == mask.tolist()


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "reversed"])
def test_torch_shares_memory_and_keeps_strides(layout: str, fmt: Format):
    backend = here("torch")
    view = LAYOUTS[layout](np.arange(20).reshape(4, 5).astype(fmt.dtype))
    assert backend.refuses(view) is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that stride0 is read-only; calls ignore it too
        tensor = backend.lend(view).native
    assert tuple(s * fmt.dtype.itemsize for s in tensor.stride()) == view.strides
    assert tensor.data_ptr() == view.__array_interface__["data"][0]
    assert fmt.bits(backend.to_numpy(tensor)).tolist() == fmt.bits(view).tolist()


def on_device(name: str, native: Any) -> tuple[int, tuple[int, ...]]:
    """Address and strides in bytes."""
    if name == "cupy":
        return native.data.ptr, native.strides
    return native.data_ptr(), tuple(s * native.element_size() for s in native.stride())


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["cupy", "torch_cuda"])
def test_layouts_lie_on_the_device_as_they_do_here(name: str, layout: str, fmt: Format):
    backend = here(name)
    view = LAYOUTS[layout](np.arange(20).reshape(4, 5).astype(fmt.dtype))
    if backend.refuses(view):
        pytest.skip(backend.refuses(view))
    lent = backend.lend(view)
    address, strides = on_device(name, lent.native)
    from_its_memory = view.__array_interface__["data"][0] - memory_beneath(view).__array_interface__["data"][0]
    assert strides == view.strides
    assert address % 256 == from_its_memory  # allocations start at multiples of 256
    assert fmt.bits(backend.to_numpy(lent.native)).tolist() == fmt.bits(view).tolist()


def lent_by_copying(array: np.ndarray) -> Lent:
    """As to a device, which here is other memory of the host."""

    def view(memory: np.ndarray, array: np.ndarray, offset: int) -> np.ndarray:
        return np.ndarray(array.shape, array.dtype, buffer=memory, offset=offset, strides=array.strides)

    return backends._copied(array, np.copy, view, np.copy)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_copy_of_all_memory_is_seen_through_the_same_strides(layout: str):
    array = LAYOUTS[layout](np.arange(20, dtype=np.float32).reshape(4, 5))
    lent = lent_by_copying(array)
    assert lent.native.strides == array.strides
    assert np.array_equal(lent.native, array)
    assert not np.shares_memory(lent.native, array)
    memory = memory_beneath(array)
    assert np.shares_memory(memory, array)
    lent.native.base[...] = 0  # what lies between the elements comes back as well
    assert memory.any()
    lent.bring_back()
    assert not memory.any()


def writes_into_x(x: Any) -> Any:
    x[0, 0] = 9
    return x


def test_without_bringing_back_no_write_would_be_seen(monkeypatch: pytest.MonkeyPatch):
    """The copying backend finds what the sharing one finds; one that forgets to bring back finds nothing."""
    found = []
    for lend in (BACKENDS["numpy"].lend, lent_by_copying, lambda a: Lent(lent_by_copying(a).native)):
        monkeypatch.setitem(BACKENDS, "numpy", replace(BACKENDS["numpy"], lend=lend))
        found.append([call(made("softmax", writes_into_x), CASE.inputs).reason, *out_reasons("numpy")])
    wanted = [Reason.WROTE_INPUT, *(reason for _, reason in OUT.values())]
    assert found[0] == found[1] == wanted
    assert found[2] == [None, *[Reason.UNWRITTEN] * len(OUT)]


@pytest.mark.parametrize(
    ("error", "context", "reason"),
    [
        ("cudaErrorInvalidValue", None, Reason.RAISED),
        ("cudaErrorIllegalAddress", "cudaErrorIllegalAddress", Reason.CRASHED),
        ("Out of memory allocating 9 bytes", None, Reason.CRASHED),
    ],
)
def test_a_ruined_device_is_a_crash(monkeypatch: pytest.MonkeyPatch, error: str, context: str | None, reason: Reason):
    def fails(x: Any) -> Any:
        raise RuntimeError(error)

    def synchronize() -> None:
        if context:
            raise RuntimeError(context)

    monkeypatch.setitem(BACKENDS, "numpy", replace(BACKENDS["numpy"], synchronize=synchronize))
    run = call(made("softmax", fails), CASE.inputs)
    assert (run.reason, run.detail) == (reason, f"RuntimeError: {error}")


def test_what_a_backend_cannot_be_given():
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    refusing = {b.name: {n for n, layout in LAYOUTS.items() if b.refuses(layout(x))} for b in BACKENDS.values()}
    assert refusing == {
        "numpy": set(),
        "torch": {"reversed"},
        "jax": {"sliced", "transposed", "reversed", "stride0", "misaligned"},
        "cupy": {"misaligned"},
        "torch_cuda": {"reversed", "misaligned"},
        "jax_cuda": {"sliced", "transposed", "reversed", "stride0", "misaligned"},
    }


@pytest.mark.parametrize(
    ("name", "cause"), [("torch", "PyTorch has no negative strides"), ("jax", "JAX arrays have no")]
)
def test_a_refused_layout_is_not_supported_and_says_why(name: str, cause: str):
    here(name)
    run = call(made("softmax", lambda x: x, backend=name), CASE.inputs, arrange=LAYOUTS["reversed"])
    assert run.reason is Reason.NOT_SUPPORTED
    assert run.detail.startswith(cause)


def called(name: str, function: Any, **how: Any) -> tuple[Reason | None, str]:
    here(name)
    run = call(made("softmax", function, backend=name), CASE.inputs, **how)
    return run.reason, run.detail


@pytest.mark.parametrize("name", NATIVE)
def test_arrays_of_another_library_are_no_answer(name: str):
    wanted = (Reason.WRONG_SHAPE, "returned a ndarray, expected float32 (2, 3)")
    assert called(name, lambda x: np.zeros((2, 3), np.float32)) == wanted
    assert called(name, lambda x: None)[1] == "returned a NoneType, expected float32 (2, 3)"
    assert called("numpy", lambda x: BACKENDS[name].lend(x).native)[1].startswith("returned a ")


@pytest.mark.parametrize("name", NATIVE)
def test_shape_and_dtype_are_checked(name: str):
    assert called(name, lambda x: x)[0] is None
    assert called(name, lambda x: x[:1]) == (Reason.WRONG_SHAPE, "returned float32 (1, 3), expected float32 (2, 3)")
    assert called(name, lambda x: x > 0)[1] == "returned bool (2, 3), expected float32 (2, 3)"


def test_dtypes_that_numpy_lacks_and_sparse_tensors_are_no_arrays():
    backend, torch = here("torch"), backends.TORCH
    assert backend.to_numpy(torch.zeros(2, dtype=torch.float8_e5m2)) is None
    assert backend.to_numpy(torch.eye(2).to_sparse()) is None
    assert backend.to_numpy(torch.ones(2, requires_grad=True)).tolist() == [1, 1]


@pytest.mark.parametrize("name", WRITABLE)
def test_a_write_into_an_input_is_seen(name: str):
    assert called(name, writes_into_x) == (Reason.WROTE_INPUT, "x changed during the call")


def into(out: Any, value: Any) -> Any:
    out[...] = value
    return out


def beyond(x: Any, out: Any) -> Any:
    """Writes the word after the last one."""
    into(out, x)
    if hasattr(out, "ctypes"):
        ctypes.memset(out.ctypes.data + out.nbytes, 0, 4)
    elif isinstance(out, backends.CUPY.ndarray if absent("cupy+cuda") is None else ()):
        backends.CUPY.cuda.runtime.memset(out.data.ptr + out.nbytes, 0, 4)
    elif out.is_cuda:
        out.as_strided((out.numel() + 1,), (1,))[-1] = 0
    else:
        ctypes.memset(out.data_ptr() + 4 * out.numel(), 0, 4)
    return out


def silently(x: Any, out: Any) -> None:
    into(out, x)


def partly(x: Any, out: Any) -> None:
    into(out[:1], x[:1])


OUT = {
    "filled": (lambda x, out: into(out, x), None),
    "filled-and-returned-nothing": (silently, None),
    "not-filled": (lambda x, out: x, Reason.UNWRITTEN),
    "in-part": (partly, Reason.UNWRITTEN),
    "beyond": (beyond, Reason.GUARD),
    "another": (lambda x, out: into(out, x) + 1, Reason.UNWRITTEN),
}


def out_reasons(name: str) -> list[Reason | None]:
    return [called(name, function, with_out=True)[0] for function, _ in OUT.values()]


@pytest.mark.parametrize("name", ["numpy", *WRITABLE])
def test_out_buffers_are_guarded(name: str):
    assert out_reasons(name) == [reason for _, reason in OUT.values()]


def test_jax_arrays_cannot_be_written():
    reason, detail = called("jax", lambda x, out: x, with_out=True)
    assert (reason, detail) == (Reason.NOT_SUPPORTED, "jax arrays are immutable: no out buffer")


def test_jax_keeps_float64():
    here("jax")
    case = row_case("softmax", [0.1, 0.2], "float64")
    run = call(made("softmax", lambda x: x + 0, ("float64",), backend="jax"), case.inputs)
    assert run.outputs[0].tolist() == case.inputs.x.tolist()


def test_a_missing_library_is_not_supported_and_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(libraries.EXTRAS, "torch", ("no_such_library",))
    run = call(made("softmax", lambda x: x, backend="torch"), CASE.inputs)
    assert run.reason is Reason.NOT_SUPPORTED
    assert run.detail == "no_such_library is not installed: pip install 'trueulp[torch]'"
    assert not BACKENDS["torch"].available()


def test_contracts_name_a_backend_of_the_table():
    assert contract(("float32",), backend="torch").backend == "torch"
    with pytest.raises(ValueError, match="backend='tpu': expected one of 'numpy', 'torch', 'jax', 'cupy'"):
        contract(("float32",), backend="tpu")


PARENT = """
import sys
from gpu_impls.isolation import Isolated
from gpu_impls.registry import implementations, load_built_in
from properties.case import Case
load_built_in()
for op in {ops}:
    for found in implementations((op,), ("torch", "jax")):
        with Isolated() as runner:
            run = runner(found, Case(op, "float32", "standard_normal", 2, 3).inputs)
        assert run.reason is None, run
print(*sorted({{"torch", "jax", "transformers", "onnxruntime", "onnx"}} & sys.modules.keys()))
"""


@pytest.mark.parametrize("ops", [(), ("max",)], ids=["listing", "running"])
def test_the_parent_imports_no_library(ops: tuple[str, ...]):
    if ops:
        here("torch")
        here("jax")
    command = [sys.executable, "-c", PARENT.format(ops=ops)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
