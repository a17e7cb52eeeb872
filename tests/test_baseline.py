"""Baselines as files: exact, sorted, one line per row; and every way to be unusable is refused in words."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rows_for_gate import baseline, row

from gpu_impls.outcome import Reason
from reports.gate.baseline import default_baseline, read_baseline, require_writable, write_baseline
from reports.gate.schema import VERSION


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_baseline(tmp_path / "b.json", baseline(row(), row(n=300, bound_used=0.1), row(impl="a|b \ud800 \u00e9")))
    return tmp_path / "b.json"


@pytest.mark.parametrize("number", [0.0, 0.1, 5e-324, 1 / 3, 1.7976931348623157e308, math.inf])
def test_floats_come_back_exactly(tmp_path: Path, number: float):
    kept = baseline(row(bound_used=number, mean_ulp=number))
    write_baseline(tmp_path / "b.json", kept)
    assert read_baseline(tmp_path / "b.json") == kept


def test_order_of_rows_does_not_matter_and_lines_are_rows(tmp_path: Path):
    rows = [row(n=n, regime=regime) for n in (300, 33, 1025) for regime in ("near_ties", "absorbed")]
    write_baseline(tmp_path / "one.json", baseline(*rows))
    write_baseline(tmp_path / "two.json", baseline(*reversed(rows)))
    text = (tmp_path / "one.json").read_text("ascii")
    assert text == (tmp_path / "two.json").read_text("ascii")
    lines = [json.loads(line.rstrip(",")) for line in text.splitlines() if line.startswith('{"op"')]
    assert [(entry["regime"], entry["n"]) for entry in lines] == sorted((r.regime, r.n) for r in rows)


def test_one_changed_row_is_one_changed_line(file: Path):
    before = file.read_text().splitlines()
    kept = read_baseline(file)
    changed = replace(next(iter(kept.rows.values())), misrounded=1)
    write_baseline(file, replace(kept, rows={**kept.rows, changed.key: changed}))
    after = file.read_text().splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def _set(*path: Any) -> Callable[[Any], None]:
    """An edit of the document: the last of ``path`` is put where the others lead."""

    def edit(document: Any) -> None:
        for step in path[:-2]:
            document = document[step]
        document[path[-2]] = path[-1]

    return edit


def _drop(*path: Any) -> Callable[[Any], None]:
    def edit(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        del document[path[-1]]

    return edit


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (_set("format", "glibc"), "format is 'glibc'"),
        (_set("version", VERSION + 1), f"version is {VERSION + 1}, of another trueulp: expected {VERSION}"),
        (_set("version", 1), "version is 1, of another trueulp: expected 2"),
        (_set("version", True), "version is True"),
        (_drop("plan"), "'plan' is missing"),
        (_set("surprise", 1), "'surprise' is unknown"),
        (_set("rows", {}), "expected an object and a list"),
        (_set("environment", None), "expected an object and a list"),
        (_set("plan", "quick", 1), "plan: quick is 1"),
        (_set("plan", "seed", -1), "plan: seed is -1"),
        (_drop("plan", "rows"), "plan: 'rows' is missing"),
        (_set("plan", "lengths", ["33"]), "plan: lengths is ['33']"),
        (_set("plan", "dtypes", "float32"), "plan: dtypes is 'float32'"),
        (_set("rows", 1, 7), "row 2 is a int"),
        (_drop("rows", 1, "max_row_ulp"), "row 2: 'max_row_ulp' is missing"),
        (_set("rows", 0, "n", "33"), "row 1: n is '33'"),
        (_set("rows", 0, "n", True), "row 1: n is True"),
        (_set("rows", 0, "misrounded", 1.5), "row 1: misrounded is 1.5"),
        (_set("rows", 0, "bound_used", 0.3), "row 1: bound_used is 0.3: expected text"),
        (_set("rows", 0, "bound_used", "nan"), "row 1: bound_used is 'nan'"),
        (_set("rows", 0, "bound_used", "-0x1p+0"), "row 1: bound_used is '-0x1p+0'"),
        (_set("rows", 0, "bound_used", "a lot"), "row 1: bound_used is 'a lot'"),
        (_set("rows", 0, "outcome", "good"), "row 1: outcome is 'good': expected one of pass, fail, not judged"),
        (_set("rows", 0, "reason", "raised"), "row 1: outcome is pass beside reason raised"),
        (_set("rows", 0, "input_bits", "xyz"), "row 1: input_bits is 'xyz': expected 16 digits"),
        (_set("rows", 0, "levels", "0AZz..0"), "row 1: levels is '0AZz..0': expected 8 letters, digits or ."),
        (_set("rows", 0, "levels", "0AZz..0-"), "row 1: levels is '0AZz..0-': expected 8"),
        (_set("rows", 0, "levels", 7), "row 1: levels is 7: expected text"),
        (lambda document: document["rows"].append(document["rows"][0]), "row 4: softmax a|b"),
    ],
)
def test_a_damaged_file_names_what_is_wrong(file: Path, edit: Callable[[Any], None], told: str):
    document = json.loads(file.read_text())
    edit(document)
    file.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="unusable") as refused:
        read_baseline(file)
    assert told in str(refused.value)
    assert str(file) in str(refused.value)
    assert "--update" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["", "not json", "[", "[" * 100_000, '{"a": NaN}', '{"a": 1, "a": 2}', "<<<<<<< HEAD\n{}", "\ufeff{}", "9" * 5000],
)
def test_text_that_is_no_baseline(file: Path, text: str):
    file.write_text(text, "utf-8")
    with pytest.raises(ValueError, match="unusable: "):
        read_baseline(file)


def test_bytes_that_are_no_text(file: Path):
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="unusable: it is not JSON"):
        read_baseline(file)


def test_no_file_and_a_folder(tmp_path: Path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ValueError, match=r"cannot read baseline .*--update"):
            read_baseline(path)


def test_unwritable_places_are_refused_beforehand(tmp_path: Path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "b.json", tmp_path / "new" / "b.json", Path("/proc/b.json")):
        with pytest.raises(ValueError, match=f"cannot write baseline {path}"):
            require_writable(path)
    require_writable(tmp_path / "b.json")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch):
    before = file.read_bytes()

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_baseline(file, baseline(row(misrounded=0)))
    assert file.read_bytes() == before
    assert [p.name for p in file.parent.iterdir()] == ["b.json"]


def test_a_link_stays_one(file: Path):
    link = file.with_name("link.json")
    link.symlink_to(file)
    write_baseline(link, baseline())
    assert link.is_symlink()
    assert read_baseline(file).rows == {}


def test_the_default_one_holds_numpy_and_scipy_alone():
    kept = read_baseline(default_baseline())
    assert len(kept.rows) > 1000
    assert kept.recipe.quick
    assert {r.reason for r in kept.rows.values()}.isdisjoint({Reason.RAISED, Reason.CRASHED, Reason.HUNG})
    assert default_baseline().stat().st_size < 2_000_000
