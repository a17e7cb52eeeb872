"""The registry: implementations by operator and name, and how files bring theirs."""

import importlib
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.machinery import SourceFileLoader
from inspect import Parameter
from pathlib import Path
from typing import Any

from gpu_impls.contract import Contract, contract
from gpu_impls.libraries import absent
from oracles.catalogue import operator_named
from oracles.operator import Operator

# Triton's interpreter needs no GPU (gpu_impls.triton).
TRITON = "triton" if os.environ.get("TRITON_INTERPRET") == "1" else "triton+cuda"
# Modules that register our own implementations, and what each needs (gpu_impls.libraries.absent).
BUILT_IN = {
    **{f"gpu_impls.numpy.{op}": "numpy" for op in (
        "sum", "mean", "var", "max", "logsumexp", "softmax", "log_softmax", "rms_norm", "fused_add_rms_norm",
        "layer_norm",
    )},
    **{f"gpu_impls.cuda.{op}": "cupy+cuda" for op in (
        "sum", "max", "logsumexp", "softmax", "log_softmax", "rms_norm", "fused_add_rms_norm", "layer_norm",
        "faulty",
    )},
    **{f"gpu_impls.triton.{op}": TRITON for op in (
        "softmax", "rms_norm", "fused_add_rms_norm", "layer_norm",
    )},
    "gpu_impls.adapters.numpy": "numpy",
    **{f"gpu_impls.adapters.{extra}": extra for extra in ("scipy", "torch", "jax", "transformers")},
    "gpu_impls.adapters.onnxruntime": "onnx",
    "gpu_impls.adapters.cupy": "cupy+cuda",
    "gpu_impls.adapters.liger": "liger+cuda",
    **{f"gpu_impls.adapters.{extra}_cuda": f"{extra}+cuda" for extra in ("torch", "jax", "transformers")},
}  # fmt: skip


@dataclass(frozen=True)
class Implementation:
    """A callable under test and what it claims. ``origin`` is the module or file that registers it, where another
    process can find it; None where none could (a notebook, a test)."""

    op: str
    name: str
    function: Callable[..., Any]
    contract: Contract
    origin: str | None = None

    @property
    def id(self) -> str:
        return f"{self.op}-{self.name}"

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Names that may be passed by keyword; all of the operator's where the function takes ``**kwargs``."""
        _, *rest = inspect.signature(self.function).parameters.values()
        named = [p.name for p in rest if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        operator = operator_named(self.op)
        open_ended = any(p.kind is p.VAR_KEYWORD for p in rest)
        return frozenset({*named, *((*operator.optional, *operator.parameters) if open_ended else ())})

    @property
    def takes_out(self) -> bool:
        return "out" in self.parameters


_REGISTRY: dict[tuple[str, str], Implementation] = {}
_FILES: dict[Path, list[Implementation]] = {}


def implementation(
    op: str, *, dtypes: tuple[str, ...], name: str | None = None, origin: str | None = None, **claims: Any
) -> Callable[..., Any]:
    """Register the decorated function as an implementation of ``op``. Returns the function unchanged.

    Args:
        op: an operator of ``oracles.catalogue``.
        dtypes: storage formats it takes and returns.
        name: unique per operator; the function's own name by default.
        origin: the module of ours that registers it, where that is not the function's own.
        claims: see :class:`gpu_impls.contract.Contract`.

    Raises:
        ValueError: an unknown operator, dtype, keyword or value (the known ones are listed), a name that is taken, or a
            function that cannot be called with x and what the operator has.
    """
    operator = operator_named(op)
    agreed = contract(dtypes, **claims)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        module = origin or getattr(function, "__module__", None) or ""
        found_in = module if module.startswith(f"{__package__}.") else None
        called = name or getattr(function, "__name__", None)
        if not called:
            raise ValueError(f"{function!r} has no name of its own: give it one with name=")
        _require_callable_with(operator, called, function)
        made = Implementation(op, called, function, agreed, found_in)
        if (op, made.name) in _REGISTRY:
            raise ValueError(f"{op} already has an implementation named {made.name!r}: give this one another name=")
        _REGISTRY[op, made.name] = made
        return function

    return register


def _require_callable_with(operator: Operator, called: str, function: Callable[..., Any]) -> None:
    """x comes first and by position; all else that it cannot do without must be the operator's."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise ValueError(f"{called} tells no signature: wrap it in a function with named parameters") from None
    if not parameters or parameters[0].kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD):
        raise ValueError(f"{called} takes nothing by position: expected x as its first parameter")
    known = (*operator.optional, *operator.parameters, "out")
    for p in parameters[1:]:
        required = p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        if required and (p.name not in known or p.kind is p.POSITIONAL_ONLY):
            raise ValueError(
                f"{called} needs {p.name}: {operator.name} is called with x by position and some of "
                f"{', '.join(known)} by keyword (give {p.name} a default, or wrap {called})"
            )


def implementations(ops: tuple[str, ...] = (), patterns: tuple[str, ...] = ()) -> list[Implementation]:
    """The registered implementations, ours loaded first, of these operators and matching any of these globs.

    Raises:
        ValueError: an operator that does not exist, or a glob that matches nothing.
    """
    load_built_in()
    for op in ops:
        operator_named(op)
    wanted = [i for i in _REGISTRY.values() if not ops or i.op in ops]
    for pattern in patterns:
        if not any(fnmatchcase(i.name, pattern) for i in wanted):
            names = ", ".join(sorted({i.name for i in wanted}))
            raise ValueError(f"no implementation matches {pattern!r}: expected one of {names}")
    return [i for i in wanted if not patterns or any(fnmatchcase(i.name, p) for p in patterns)]


def load_built_in() -> dict[str, str]:
    """Import our own modules for which all is there; the others come back with what is missing."""
    missing = {}
    for module, need in BUILT_IN.items():
        reason = absent(need)
        if reason is None:
            importlib.import_module(module)
        else:
            missing[module] = reason
    return missing


def load_file(path: str) -> list[Implementation]:
    """Import a Python file and return the implementations it registered.

    Raises:
        ValueError: no such file, a folder, it does not import, or it registers nothing.
    """
    file = Path(path).resolve()
    if file.is_dir():
        raise ValueError(f"{path} is a folder: expected a Python file that uses @implementation")
    if not file.is_file():
        raise ValueError(f"no such file: {path} (expected a Python file that uses @implementation)")
    if file not in _FILES:
        load_built_in()  # so that a name that is taken is refused in this file, not in ours
        before = set(_REGISTRY)
        try:
            _execute(file)
        except (Exception, SystemExit) as error:  # whatever a user's file raises, it is the file that does not import
            for key in set(_REGISTRY) - before:
                del _REGISTRY[key]
            raise ValueError(f"{path} does not import: {type(error).__name__}: {error}") from error
        for key in _REGISTRY.keys() - before:
            _REGISTRY[key] = replace(_REGISTRY[key], origin=str(file))
        _FILES[file] = [made for key, made in _REGISTRY.items() if key not in before]
    if not _FILES[file]:
        raise ValueError(
            f"{path} registers no implementation: decorate a function with @implementation(op, dtypes=...)"
        )
    return _FILES[file]


def _execute(file: Path) -> None:
    """Run a file as a module of its own name, from whichever folder it lies in."""
    module = f"trueulp_file_{len(_FILES)}_{file.stem}"
    loader = SourceFileLoader(module, str(file))  # does not care how the file's name ends
    loaded = sys.modules[module] = types.ModuleType(module)
    loaded.__file__ = str(file)
    loader.exec_module(loaded)


def find(origin: str, op: str, name: str) -> Implementation:
    """The implementation that a module or file registers: how another process gets it.

    Raises:
        ValueError: the file does not load, or registers no such implementation.
        ImportError: the module does not import.
    """
    if origin.startswith(f"{__package__}."):
        importlib.import_module(origin)
    else:
        load_file(origin)
    if (op, name) not in _REGISTRY:
        raise ValueError(f"{origin} registers no {op} named {name!r}")
    return _REGISTRY[op, name]


@contextmanager
def isolated() -> Iterator[None]:
    """Undo within tests what is registered inside the block."""
    load_built_in()
    before, files = dict(_REGISTRY), dict(_FILES)
    try:
        yield
    finally:
        for kept, now in ((before, _REGISTRY), (files, _FILES)):
            now.clear()
            now.update(kept)
