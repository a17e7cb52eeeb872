"""Baselines: what implementations did, kept in a file that git can compare, one line per row.

Stdlib JSON; floats in hex, so that they are exact; rows sorted by key. The head holds the version of the schema, the
plan that the gate reruns and the environment the numbers come from.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import reports
from reports.gate.schema import FORMAT, VERSION, Baseline, Row, decoded

SHIPPED = "default_baseline.json"  # its name in a wheel


def default_baseline() -> Path:
    """The one that comes with trueulp: NumPy and SciPy only."""
    package = Path(reports.__file__).parent
    shipped = package / SHIPPED
    return shipped if shipped.exists() else package.parent / "baselines" / "default.json"


def is_shipped(path: Path) -> bool:
    """Whether it is part of an installed package, not of a checkout."""
    return path.name == SHIPPED


def read_baseline(path: Path) -> Baseline:
    """Raises ``ValueError`` naming the file, the key, what was expected and what to do."""
    try:
        document = json.loads(path.read_text("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except OSError as error:
        raise ValueError(f"cannot read baseline {path}: {error.strerror or error} (make it with --update)") from None
    except (ValueError, RecursionError) as error:
        raise _unusable(path, f"it is not JSON: {error}") from None
    try:
        return decoded(document)
    except ValueError as error:
        raise _unusable(path, str(error)) from None


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Replace the file as a whole: whoever reads it meanwhile, or after a crash, finds the old or the new one."""
    path = path.resolve()  # a link stays one
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(_encoded(baseline), "utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def require_writable(path: Path) -> None:
    """Raises ``ValueError`` before anything is measured where the file could not be written."""
    try:
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.touch()
        part.unlink()
    except OSError as error:
        raise ValueError(f"cannot write baseline {path}: {error.strerror or error} (give a file you own)") from None
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise ValueError(f"cannot write baseline {path}: there is no file that can be overwritten")


def _encoded(baseline: Baseline) -> str:
    head = {
        "format": FORMAT,
        "version": VERSION,
        "plan": asdict(baseline.recipe),
        "environment": baseline.environment,
    }
    opening = "".join(f"{json.dumps(k)}: {json.dumps(v, indent=1, sort_keys=True)},\n" for k, v in head.items())
    lines = ",\n".join(json.dumps(_plain(row)) for row in sorted(baseline.rows.values(), key=lambda row: row.key))
    return f'{{\n{opening}"rows": [\n{lines}\n]\n}}\n'


def _plain(row: Row) -> dict[str, Any]:
    return {k: v.hex() if isinstance(v, float) else v for k, v in asdict(row).items()}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"a key is there twice among {', '.join(k for k, _ in pairs)}")
    return record


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON: floats stand in hex")


def _unusable(path: Path, problem: str) -> ValueError:
    return ValueError(
        f"baseline {path} is unusable: {problem} "
        "(move it away and make a new one with --update, from the kernels to compare with; or take it from git again)"
    )
