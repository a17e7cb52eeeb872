"""The registry: names, globs, files that bring implementations, and libraries that are not there."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu_impls import implementation, registry
from gpu_impls.registry import BUILT_IN, Implementation, implementations, isolated, load_built_in, load_file
from oracles.catalogue import OPERATORS

HEAD = "from gpu_impls import implementation\n"
ONE = HEAD + "@implementation('max', dtypes=('float32',))\ndef mine(x, mask=None):\n    return x.max(axis=-1)\n"


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    with isolated():
        yield


def names(op: str) -> list[str]:
    return [i.name for i in implementations((op,))]


def nothing(x: np.ndarray) -> None:
    """Registered by the tests below; never called."""


def test_the_decorator_returns_the_function_and_registers_it_by_its_name():
    assert implementation("sum", dtypes=("float32",))(nothing) is nothing
    (found,) = implementations(("sum",), ("nothing",))
    assert (found.id, found.function, found.contract.dtypes) == ("sum-nothing", nothing, ("float32",))


def test_a_name_may_be_given():
    implementation("sum", dtypes=("float32",), name="other")(nothing)
    assert "other" in names("sum")
    assert "nothing" not in names("sum")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"op": "argmax"}, f"unknown operator 'argmax': expected one of {', '.join(OPERATORS)}"),
        ({"dtypes": ("float8",)}, "unknown dtype 'float8': expected one of float16, bfloat16, float32, float64"),
        ({"sumation": "tree"}, "unknown keyword sumation: expected some of name, backend, "),
    ],
    ids=["operator", "dtype", "keyword"],
)
def test_what_is_unknown_is_refused_where_it_is_written(arguments: dict, message: str):
    with pytest.raises(ValueError, match=message):
        implementation(**({"op": "sum", "dtypes": ("float32",)} | arguments))


def test_a_name_is_unique_per_operator():
    implementation("sum", dtypes=("float32",))(nothing)
    with pytest.raises(ValueError, match="sum already has an implementation named 'nothing': give this one another"):
        implementation("sum", dtypes=("bfloat16",))(nothing)
    implementation("mean", dtypes=("float32",))(nothing)
    assert "nothing" in names("mean")


def test_every_operator_has_right_and_faulty_implementations():
    for op in OPERATORS:
        kinds = {bool(i.contract.known_faulty) for i in implementations((op,))}
        assert kinds == {False, True}, op


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ((), ["one", "two", "three"]),
        (("t*",), ["two", "three"]),
        (("two", "one"), ["one", "two"]),
        (("[ot]?[eo]",), ["one", "two"]),
    ],
    ids=["all", "star", "several", "classes"],
)
def test_globs_choose_by_name(monkeypatch: pytest.MonkeyPatch, patterns: tuple[str, ...], chosen: list[str]):
    monkeypatch.setattr(registry, "_REGISTRY", {})
    for name in ("one", "two", "three"):
        implementation("sum", dtypes=("float32",), name=name)(nothing)
    assert [i.name for i in implementations(("sum",), patterns)] == chosen


def test_a_glob_that_matches_nothing_lists_the_names():
    with pytest.raises(ValueError, match="no implementation matches 'onlin': expected one of ") as error:
        implementations(("softmax",), ("three_pass", "onlin"))
    assert all(name in str(error.value) for name in names("softmax"))
    assert "kahan" not in str(error.value)


def test_an_unknown_operator_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown operator 'softmin': expected one of sum, mean, .*layer_norm"):
        implementations(("softmin",))


def test_a_missing_library_is_reported_in_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(registry.BUILT_IN, "gpu_impls.adapters.absent", "no_such_library")
    told = load_built_in()["gpu_impls.adapters.absent"]
    assert told == "no_such_library is not installed: pip install 'trueulp[no_such_library]'"
    assert implementations(("sum",))


def test_what_is_built_in_can_run_here():
    optional = {"torch", "jax", "onnx", "transformers", "triton", "liger"}
    assert {BUILT_IN[module] for module in load_built_in()} <= optional | {
        f"{extra}+cuda" for extra in (*optional, "cupy")
    }
    assert {module.rpartition(".")[2] for module in BUILT_IN} >= set(OPERATORS)


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_file_brings_its_implementations_once(tmp_path: Path):
    path = written(tmp_path, ONE)
    first = load_file(path)
    assert [i.id for i in first] == ["max-mine"]
    assert load_file(path) is first
    assert load_file(str(tmp_path / "." / "mine.py")) is first
    assert names("max").count("mine") == 1


def test_a_file_may_have_any_name_and_two_may_have_the_same(tmp_path: Path):
    (tmp_path / "other").mkdir()
    load_file(written(tmp_path, ONE, "my kernel.txt"))
    load_file(written(tmp_path / "other", ONE.replace("mine", "yours"), "my kernel.txt"))
    assert {"mine", "yours"} <= set(names("max"))


BROKEN = {
    "raises": (ONE + "raise RuntimeError('no GPU')\n", "RuntimeError: no GPU"),
    "exits": (ONE + "raise SystemExit(3)\n", "SystemExit: 3"),
    "syntax": (ONE + "def broken(:\n", "SyntaxError: "),
    "import": (ONE + "import no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library'"),
    "twice": (ONE + ONE, "ValueError: max already has an implementation named 'mine'"),
    "taken": (ONE + ONE.replace("mine", "propagating"), "ValueError: max already has an implementation named"),
    "claim": (ONE + ONE.replace("float32", "float8"), "ValueError: unknown dtype 'float8': expected one of"),
}


@pytest.mark.parametrize(("text", "cause"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_does_not_import_leaves_nothing_behind(tmp_path: Path, text: str, cause: str):
    path, before = written(tmp_path, text), implementations()
    with pytest.raises(ValueError, match="does not import: ") as error:
        load_file(path)
    assert str(error.value).startswith(f"{path} does not import: {cause}")
    assert error.value.__cause__ is not None
    assert implementations() == before


def test_a_file_that_was_mended_can_be_loaded(tmp_path: Path):
    path = written(tmp_path, ONE + "raise RuntimeError\n")
    with pytest.raises(ValueError, match="does not import"):
        load_file(path)
    assert [i.id for i in load_file(written(tmp_path, ONE))] == ["max-mine"]


def test_a_file_that_is_not_there(tmp_path: Path):
    for path, problem in ((tmp_path / "absent.py", "no such file: .*"), (tmp_path, ".* is a folder: ")):
        with pytest.raises(ValueError, match=f"{problem}expected a Python file that uses @implementation"):
            load_file(str(path))


def test_a_file_that_registers_nothing(tmp_path: Path):
    path = written(tmp_path, HEAD)
    for _ in range(2):
        with pytest.raises(ValueError, match="registers no implementation: decorate a function with @implementation"):
            load_file(path)


def test_isolation_undoes_registrations_and_files(tmp_path: Path):
    path = written(tmp_path, ONE)
    for _ in range(2):
        with isolated():
            load_file(path)
        assert "mine" not in names("max")


PARAMETERS = {
    "x-alone": (lambda x: x, set()),
    "mask": (lambda x, mask=None: x, {"mask"}),
    "out": (lambda x, mask=None, out=None: x, {"mask", "out"}),
    "first-of-any-name": (lambda scores, *, mask=None: scores, {"mask"}),
    "anything": (lambda x, **others: x, {"mask"}),
    "by-position": (lambda x, /, mask=None: x, {"mask"}),
}


@pytest.mark.parametrize(("function", "expected"), PARAMETERS.values(), ids=PARAMETERS)
def test_the_parameters_that_may_be_passed(function, expected: set[str]):
    implementation("softmax", dtypes=("float32",), name="f")(function)
    (made,) = implementations(("softmax",), ("f",))
    assert isinstance(made, Implementation)
    assert (made.parameters, made.takes_out) == (expected, "out" in expected)


def test_a_callable_without_a_signature_is_refused():
    with isolated(), pytest.raises(ValueError, match="max tells no signature: wrap it in a function"):
        implementation("max", dtypes=("float32",))(max)


UNCALLABLE = {
    "nothing": (lambda: None, "f takes nothing by position: expected x as its first parameter"),
    "keywords only": (lambda *, x: x, "f takes nothing by position"),
    "any keywords": (lambda **arrays: None, "f takes nothing by position"),
    "two arrays": (
        lambda x, y: x,
        "f needs y: softmax is called with x by position and some of mask, out by keyword .give y a default, or wrap f",
    ),
    "a keyword": (lambda x, *, axis: x, "f needs axis: softmax"),
    "another operator's": (lambda x, eps: x, "f needs eps: softmax"),
    "mask by position": (lambda x, mask, /: x, "f needs mask: softmax"),
}


@pytest.mark.parametrize(("function", "message"), UNCALLABLE.values(), ids=UNCALLABLE)
def test_what_cannot_be_called_is_refused_where_it_is_written(function, message: str):
    with pytest.raises(ValueError, match=message):
        implementation("softmax", dtypes=("float32",), name="f")(function)
    assert "f" not in names("softmax")


CALLABLE = {
    "anything": lambda *arrays, **others: arrays[0],
    "defaults": lambda x, axis=-1, *more, mask=None: x,
    "an operator's own": lambda x, mask: x,
}


@pytest.mark.parametrize("function", CALLABLE.values(), ids=CALLABLE)
def test_what_can_be_called_is_not(function):
    implementation("softmax", dtypes=("float32",), name="f")(function)
    assert "mask" in implementations(("softmax",), ("f",))[0].parameters
