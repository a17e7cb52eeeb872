"""Adapters: contracts as measured, absent libraries named, threads pinned, and the facts their docstrings tell."""

import importlib.util
import re

import numpy as np
import pytest

from faulty import claiming, found, registered, row_case
from gpu_impls.call import call
from gpu_impls.libraries import EXTRAS, Library, absent
from gpu_impls.registry import BUILT_IN, Implementation, implementations, load_built_in
from oracles.formats import FORMATS
from properties.case import Case
from properties.declarations import check_declarations

ADAPTERS = [i for i in implementations() if (i.origin or "").startswith("gpu_impls.adapters.")]
MODULES = {module: extra for module, extra in BUILT_IN.items() if module.startswith("gpu_impls.adapters.")}


def needs(*extras: str) -> None:
    for extra in extras:
        reason = absent(extra)
        if reason:
            pytest.skip(reason)


def ran(op: str, name: str, case: Case) -> np.ndarray:
    run = call(registered(op, name), case.inputs)
    assert run.reason is None, run
    return run.outputs[0]


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_absent_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, extra: str):
    library, real = EXTRAS[extra][0], importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == library else real(name))
    told = f"{library} is not installed: pip install 'trueulp[{extra}]'"
    assert absent(extra) == told
    assert told in [reason for module, reason in load_built_in().items() if BUILT_IN[module].partition("+")[0] == extra]


def test_every_library_is_one_of_pyprojects_extras(pytestconfig: pytest.Config):
    text = (pytestconfig.rootpath / "pyproject.toml").read_text()
    for extra, needed in EXTRAS.items():
        (line,) = (line for line in text.splitlines() if line.startswith(f"{extra} = "))
        assert all(re.search(f'"{library.replace("_", "-")}(-cuda13x)?>=', line) for library in needed)


@pytest.mark.parametrize("module", MODULES)
def test_each_module_registers_what_it_is_called_for(module: str):
    needs(*(() if MODULES[module] == "numpy" else (MODULES[module],)))
    assert [i for i in ADAPTERS if i.origin == module]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda i: i.id)
def test_contracts_say_where_the_code_is_from_and_why_they_deviate(adapter: Implementation):
    assert adapter.contract.source
    assert adapter.function.__doc__
    assert not adapter.contract.known_faulty
    assert all(reason.strip() for reason in adapter.contract.deviates.values())
    check_declarations([adapter])


def test_a_library_is_imported_once_and_prepared_once():
    prepared = []
    library = Library("fractions", prepared.append)
    assert prepared == []
    assert library.Fraction(1, 2) + library.Fraction(1, 2) == 1
    assert prepared == [library.load()]
    with pytest.raises(AttributeError):
        library.__wrapped__  # noqa: B018 - what inspect asks for


def test_torch_runs_on_one_thread():
    needs("torch")
    assert ran("sum", "torch", row_case("sum", [1.0, 2.0])).tolist() == [3]
    import torch

    assert torch.get_num_threads() == 1


def test_llama_rounds_before_the_weight_and_torch_does_not():
    """0.8485281 times 1.015625 is 0.8617863, next to 0.86328125; from 0.84765625, its rounding, 0.86090088."""
    needs("transformers")
    case = row_case("rms_norm", [3.0, 4.0], "bfloat16", weight=[1.015625, 1.0], eps=1e-6)
    once, twice = (ran("rms_norm", name, case).astype(np.float64)[0, 0] for name in ("torch", "llama"))
    assert (once, twice) == (0.86328125, 0.859375)


def test_llamas_cast_needs_its_contract():
    needs("transformers")
    llama = registered("rms_norm", "llama")
    case = Case("rms_norm", "bfloat16", "standard_normal", rows=4, n=33, seed=2, weight=True)
    assert found(llama, case) == set()
    honest = {"backend": "torch", "domain": llama.contract.domain}
    assert found(claiming(llama, "bfloat16", **honest), case) == {"accuracy"}


def test_llamas_cast_may_hit_a_subnormal():
    """x r = 2.049e-5 is subnormal in float16: its rounding costs half a smallest subnormal, times the weight."""
    needs("transformers")
    case = Case.parse(
        "rms_norm:float16:wide_dynamic_range:1x15:eps=1e-06:x=7600.0600.3c00.3c00.3c00.3c00.3c00.3c00.3c00.7400.3100."
        "3c00.3c00.3c00.3c00:weight_bits=3c00.3c00.3c00.3c00.3c00.3c00.3c00.3c00.3c00.3c00.3eff.3c00.3c00.3c00.3c00"
    )
    assert found(registered("rms_norm", "llama"), case) == set()


def test_llama_without_a_weight_has_ones():
    needs("transformers")
    bare = ran("rms_norm", "llama", row_case("rms_norm", [3.0, 4.0], eps=0.0))
    ones = ran("rms_norm", "llama", row_case("rms_norm", [3.0, 4.0], weight=[1.0, 1.0], eps=0.0))
    assert bare.tolist() == ones.tolist() == [[np.float32(0.84852815), np.float32(1.1313709)]]


def test_torch_log_softmax_of_bfloat16_rounds_more_than_once():
    needs("torch")
    case = row_case("log_softmax", [0.36328125, -0.56640625], "bfloat16")
    assert ran("log_softmax", "torch_narrow", case)[0, 0] == FORMATS["bfloat16"].dtype.type(-0.3359375)
    assert found(claiming(registered("log_softmax", "torch_narrow"), "bfloat16", backend="torch"), case) == {"accuracy"}


@pytest.mark.parametrize(("rows", "n", "lost"), [(63, 64, False), (64, 64, True), (1, 4096, True)])
def test_jax_loses_nan_in_large_maxima(rows: int, n: int, lost: bool):
    """With JAX 0.10.2 on x86-64, from 4,096 elements on."""
    needs("jax")
    maxima = ran("max", "jax", row_case("max", np.full((rows, n), np.nan).tolist()))
    assert np.isneginf(maxima).all() if lost else np.isnan(maxima).all()


def test_jax_standardizes_by_squares():
    needs("jax")
    case = row_case("layer_norm", [1000.001, 1000.002, 1000.003], eps=1e-5)
    fast, stable = (ran("layer_norm", name, case)[0, 0] for name in ("jax_standardize", "jax_standardize_stable"))
    assert fast == pytest.approx(-0.0032, abs=1e-4)
    assert stable == pytest.approx(-0.2989, abs=1e-4)  # within the bound of this row: 0.118 of -0.3113


@pytest.mark.parametrize(("x", "wrong"), [([-4772.0, -4764.0, -4710.0], -np.inf), ([800.0, 0.0], np.inf)], ids=str)
def test_onnxruntime_sums_exponentials_of_float16_unshifted(x: list[float], wrong: float):
    needs("onnx")
    assert ran("logsumexp", "onnxruntime_float16", row_case("logsumexp", x, "float16"))[0] == wrong
    assert np.isfinite(ran("logsumexp", "onnxruntime", row_case("logsumexp", x)))[0]
