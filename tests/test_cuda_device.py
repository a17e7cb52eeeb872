"""CUDA kernels on a device: every block size, layouts, aliasing, repeated launches, statistics, subnormals, DLPack."""

import functools
import importlib
from typing import Any

import numpy as np
import pytest

from faulty import made, row_case
from gpu_impls.backends import BACKENDS
from gpu_impls.backends import CUPY as cupy
from gpu_impls.call import call
from gpu_impls.cuda.launch import LARGEST_BLOCK, LONGEST, WARP
from gpu_impls.libraries import absent
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation, implementations
from oracles.catalogue import operator_named
from oracles.formats import FORMATS, Array
from oracles.operator import Inputs
from properties.case import Case
from properties.layouts import LAYOUTS
from properties.oracle_check import verdict

pytestmark = pytest.mark.skipif(absent("cupy+cuda") is not None, reason=absent("cupy+cuda") or "")

OURS = [i for i in implementations() if (i.origin or "").startswith("gpu_impls.cuda.")]
RIGHT = [i for i in OURS if not i.contract.known_faulty]
KEPT = [i for i in RIGHT if i.contract.subnormals == "keep"]
each_right = pytest.mark.parametrize("kernel", RIGHT, ids=lambda i: i.id)
each_kept = pytest.mark.parametrize("kernel", KEPT, ids=lambda i: i.id)


def named(op: str, name: str) -> Implementation:
    (only,) = (i for i in OURS if (i.op, i.name) == (op, f"cuda_{name}"))
    return only


def case_for(kernel: Implementation, rows: int, n: int, dtype: str = "float32") -> Case:
    weight, bias = (name in kernel.parameters for name in ("weight", "bias"))
    return Case(kernel.op, dtype, "standard_normal", rows, n, seed=11, weight=weight, bias=bias)


def lent(array: np.ndarray) -> Any:
    return BACKENDS["cupy"].lend(array).native


def bits(value: Any) -> np.ndarray:
    array = BACKENDS["cupy"].to_numpy(value)
    return array.view(f"u{array.itemsize}")


def launched(kernel: Implementation, inputs: Inputs, x: Any = None, **more: Any) -> Any:
    """The kernel's own result on the inputs, or on these rows laid out otherwise."""
    keywords = {k: lent(v) for k, v in inputs.arrays.items() if k != "x"} | dict(inputs.parameters) | more
    return kernel.function(lent(inputs.x) if x is None else x, **keywords)


def all_bits(results: Any) -> list[np.ndarray]:
    """Of each of a kernel's results."""
    return [bits(result) for result in (results if isinstance(results, tuple) else (results,))]


def same(results: Any, others: Any) -> bool:
    return all(map(np.array_equal, all_bits(results), all_bits(others)))


@pytest.mark.parametrize("block", range(WARP, LARGEST_BLOCK + 1, WARP))
@each_kept
def test_every_block_size(kernel: Implementation, block: int):
    """Under the depth that this block size claims."""
    claims = {"backend": "cupy", "domain": kernel.contract.domain, "statistics": kernel.contract.statistics}
    if kernel.contract.summation:
        claims["summation"] = f"lanes:{block}"
    chosen = made(kernel.op, functools.partial(kernel.function, block=block), name=kernel.name, **claims)
    for n in (1, 33, min(1003, 32 * block)):
        assert verdict(chosen, case_for(kernel, 3, n)).findings() == []


@each_kept
def test_lengths_end_at_131072(kernel: Implementation):
    longest = min(LONGEST, kernel.contract.max_length or LONGEST)
    assert len(all_bits(launched(kernel, case_for(kernel, 1, longest).inputs))[0]) == 1
    with pytest.raises(ValueError, match=f"n={longest + 1}|{longest + 1}"):
        launched(kernel, case_for(kernel, 1, longest + 1).inputs)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("misaligned", "stride0")])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@each_right
def test_bits_do_not_depend_on_the_layout(kernel: Implementation, dtype: str, layout: str):
    for n in filter(kernel.contract.takes_length, (5, 64, 1003, 1024, 16_384, LONGEST)):
        inputs = case_for(kernel, 3, n, dtype).inputs
        laid_out = {
            name: lent(LAYOUTS[layout](inputs.arrays[name])) for name in {"x", "residual"} & inputs.arrays.keys()
        }
        assert same(launched(kernel, inputs, **laid_out), launched(kernel, inputs))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "kernel", [i for i in RIGHT if [o.per_row for o in operator_named(i.op).outputs] == [False]], ids=lambda i: i.id
)
def test_out_may_be_x(kernel: Implementation, dtype: str):
    for n in filter(kernel.contract.takes_length, (5, 64, 1003, 4096, 16_384, LONGEST)):
        inputs = case_for(kernel, 3, n, dtype).inputs
        x = lent(np.array(inputs.x))
        assert launched(kernel, inputs, x, out=x) is x
        assert same(x, launched(kernel, inputs))


@each_right
def test_rows_do_not_depend_on_the_batch(kernel: Implementation):
    n = 1003
    inputs = case_for(kernel, 4096, n).inputs
    whole = all_bits(launched(kernel, inputs))
    for rows in (1, 2, 255, 256, 257):
        for start in (0, 1000):
            part = all_bits(launched(kernel, inputs.rows(start, start + rows)))
            assert all(np.array_equal(some, of[start : start + rows]) for some, of in zip(part, whole, strict=True))


@each_right
def test_200_launches_give_the_same_bits(kernel: Implementation):
    inputs = case_for(kernel, 257, 1003).inputs
    first = all_bits(launched(kernel, inputs))
    assert all(all(map(np.array_equal, all_bits(launched(kernel, inputs)), first)) for _ in range(200))


def test_an_unwritten_tail_is_seen_through_out():
    kernel = named("softmax", "tail_not_written")
    assert call(kernel, case_for(kernel, 3, 31).inputs, with_out=True).reason is Reason.UNWRITTEN
    assert call(kernel, case_for(kernel, 3, 32).inputs, with_out=True).reason is None


@pytest.mark.parametrize("n", [1, 7, 33, 1003, 4096, 50257])
@pytest.mark.parametrize("name", ["two_pass", "welford"])
def test_mean_and_rstd_are_outputs(name: str, n: int):
    """The mean within the bound of mean; rstd to about 30 units in the last place of an exact variance."""
    kernel = named("layer_norm", name)
    case = Case("layer_norm", "float32", "moderate_logits", rows=5, n=n, seed=3)
    mean, rstd = cupy.empty(5, np.float32), cupy.empty(5, np.float32)
    launched(kernel, case.inputs, mean=mean, rstd=rstd)
    twin = Case("mean", "float32", "moderate_logits", rows=5, n=n, seed=3)
    assert np.array_equal(twin.inputs.x, case.inputs.x)
    as_mean = made("mean", lambda x: mean, backend="cupy", summation=kernel.contract.summation)
    assert verdict(as_mean, twin).findings() == []
    exact = 1 / np.sqrt(case.inputs.x.astype(np.float64).var(axis=-1) + case.eps)
    assert np.abs(cupy.asnumpy(rstd) / exact - 1).max() < 2e-6


def residual_case(dtype: str) -> tuple[Case, Array]:
    """Rows and residuals whose sums are rounded in storage."""
    case = Case("rms_norm", dtype, "standard_normal", rows=7, n=1003, seed=11, weight=True)
    return case, Case("rms_norm", dtype, "moderate_logits", rows=7, n=1003, seed=12).inputs.x


def fused(case: Case, x: Any, residual: Any, **more: Any) -> tuple[Any, Any]:
    kernel = importlib.import_module("gpu_impls.cuda.fused_add_rms_norm").fused_add_rms_norm
    return kernel(x, residual, lent(np.array(case.inputs.arrays["weight"])), case.eps, **more)


@pytest.mark.parametrize("statistics", ["unrounded", "rounded"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_fused_add_stores_the_sum_and_normalises_what_its_statistics_see(dtype: str, statistics: str):
    """Rounded: the bits of rms_norm of the stored sum. Unrounded: half an ulp from the norm of the exact sum."""
    case, residual = residual_case(dtype)
    y, updated = fused(case, lent(case.inputs.x), lent(residual), statistics=statistics)
    exact = case.inputs.x.astype(np.float64) + residual.astype(np.float64)
    stored = exact.astype(np.float32).astype(case.fmt.dtype)  # twice rounded is once rounded: 24 >= 2 p + 2
    assert np.array_equal(bits(updated), bits(lent(stored)))
    of_stored = bits(launched(named("rms_norm", "two_read"), case.inputs, updated))
    if statistics == "rounded" or dtype == "float32":
        assert np.array_equal(bits(y), of_stored)
        return
    assert not np.array_equal(bits(y), of_stored)
    weight = case.inputs.arrays["weight"].astype(np.float64)
    norm = exact / np.sqrt((exact**2).mean(axis=-1, keepdims=True) + case.eps) * weight
    unit = np.maximum(2.0 ** (np.frexp(np.abs(norm))[1] - case.fmt.precision), case.fmt.smallest_subnormal)
    assert (np.abs(BACKENDS["cupy"].to_numpy(y).astype(np.float64) - norm) / unit).max() < 0.51


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_fused_add_works_in_place(dtype: str):
    case, residual = residual_case(dtype)
    apart = fused(case, lent(case.inputs.x), lent(residual))
    x, place = lent(np.array(case.inputs.x)), lent(np.array(residual))
    within = fused(case, x, place, out=x, updated=place)
    assert within[0] is x
    assert within[1] is place
    assert all(np.array_equal(bits(a), bits(b)) for a, b in zip(apart, within, strict=True))


SUBNORMAL = [2.0**-140, 2.0**-141, 2.0**-149]


@pytest.mark.parametrize("name", ["block_tree", "block_tree_ftz"])
def test_subnormals_are_kept_or_flushed_as_the_name_says(name: str):
    total = float(launched(named("sum", name), row_case("sum", SUBNORMAL).inputs)[0])
    assert total == (0.0 if name.endswith("_ftz") else sum(SUBNORMAL))


def test_cupy_overrules_ftz_false():
    """Why gpu_impls.cuda.compiled does not hand its options to RawModule."""
    source = 'extern "C" __global__ void halve(float *x) { x[0] *= 0.5f; }'
    x = cupy.array([2.0**-140], np.float32)
    cupy.RawModule(code=source, options=("-ftz=false",)).get_function("halve")((1,), (1,), (x,))
    assert float(x[0]) == 0.0


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_arrays_of_other_libraries_come_by_dlpack(dtype: str, library: str):
    backend = BACKENDS[f"{library}_cuda"]
    if backend.missing():
        pytest.skip(backend.missing())
    backend.load()
    kernel = named("softmax", "three_pass")
    case = case_for(kernel, 3, 100, dtype)
    theirs = backend.lend(np.array(case.inputs.x)).native
    assert np.array_equal(bits(kernel.function(theirs)), bits(launched(kernel, case.inputs)))
    assert (backend.to_numpy(theirs) == case.inputs.x).all()


@pytest.mark.parametrize("x", [np.zeros((2, 3), np.float32), [[1.0]], None], ids=["numpy", "list", "nothing"])
def test_what_is_not_on_the_device_is_refused_in_words(x: Any):
    with pytest.raises(ValueError, match="expected an array on a CUDA device"):
        named("sum", "block_tree").function(x)


@pytest.mark.parametrize("x", [[-0.8522298, np.inf], [np.inf, 1.0, 2.0]], ids=str)
def test_torch_loses_finite_elements_beside_an_infinity_on_the_gpu_alone(x: list[float]):
    if absent("torch+cuda"):
        pytest.skip(absent("torch+cuda"))
    case = row_case("rms_norm", x, eps=1e-6)
    (cpu, gpu) = (
        call(next(i for i in implementations(("rms_norm",)) if i.name == name), case.inputs).outputs[0]
        for name in ("torch", "torch_cuda")
    )
    finite = np.isfinite(case.inputs.x)
    assert (cpu[finite] == 0).all()
    assert np.isnan(gpu).all()


def test_cupys_functions_raise_on_empty_rows():
    """What ``min_length=1`` stands for."""
    for name in ("max", "logsumexp", "softmax", "log_softmax"):
        function = next(i for i in implementations((name,)) if i.name == "cupy").function
        with pytest.raises(Exception):  # noqa: B017, PT011
            function(cupy.zeros((2, 0), np.float32))
    assert importlib.import_module("gpu_impls.adapters.cupy").cupy_sum(cupy.zeros((2, 0), np.float32)).tolist() == [
        0,
        0,
    ]


def test_cupys_variance_of_bfloat16_is_float64():
    x = lent(np.ones((2, 3), FORMATS["bfloat16"].dtype))
    assert cupy.var(x, axis=-1).dtype == np.float64
