"""docs/findings: every reproducer is a case that can be read, what it calls right is right, and on a GPU with the
library it names the library still answers so."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from gpu_impls.call import call
from gpu_impls.registry import BUILT_IN, implementations, load_built_in
from oracles.classes import ElementClass
from properties.case import Case

FOLDER = Path(__file__).parents[1] / "docs" / "findings"
ROW = r"^\| (\w+) (\w+) \| `(\S+)` \| ([\d.]+) \| ([0-9a-f]+) \| ([0-9a-f]+|nan) \| .+ \|$"
FOUND = [row for page in sorted(FOLDER.glob("*.md")) for row in re.findall(ROW, page.read_text("utf-8"), re.MULTILINE)]
each = pytest.mark.parametrize(
    ("op", "impl", "case", "place", "got", "expected"),
    FOUND,
    ids=[f"{r[0]}-{r[1]}-{r[2].split(':')[1]}" for r in FOUND],
)


def test_every_row_of_every_table_is_read():
    rows = [line for page in FOLDER.glob("*.md") for line in page.read_text("utf-8").splitlines() if ":x=" in line]
    assert len(FOUND) == len(rows) > 20


def test_whatever_the_atlas_holds_against_a_library_has_a_reproducer():
    with (FOLDER.parent / "atlas.csv").open(encoding="utf-8") as file:
        over = {(c["op"], c["impl"], c["dtype"]) for c in csv.DictReader(file) if c["outcome"] == "fail"}
    assert len(over) > 20
    assert over == {(op, impl, Case.parse(case).dtype) for op, impl, case, *_ in FOUND}


@each
def test_what_is_expected_is_right(op: str, impl: str, case: str, place: str, got: str, expected: str):
    stood = Case.parse(case)
    index = tuple(int(i) for i in place.split("."))
    (element_class,) = (int(c[index]) for c in stood.operator.classify(stood.inputs, "zero"))
    if expected == "nan":
        assert element_class == ElementClass.NAN
    elif element_class == ElementClass.NEG_INF:
        assert expected == stood.fmt.hex(np.array([-np.inf], stood.fmt.dtype))[0]
    else:
        assert element_class == ElementClass.VALUE
        assert stood.fmt.hex(stood.truths[0].rounded[index].reshape(1))[0] == expected
    assert got != expected


@each
def test_the_library_still_says_so(op: str, impl: str, case: str, place: str, got: str, expected: str):
    absent = {module: why for module, why in load_built_in().items() if BUILT_IN[module].endswith("+cuda")}
    found = [i for i in implementations((op,)) if i.name == impl]
    if not found:
        pytest.skip("; ".join(sorted(set(absent.values()))))
    stood = Case.parse(case)
    (output,) = call(found[0], stood.inputs).outputs
    index = tuple(int(i) for i in place.split("."))
    assert stood.fmt.hex(output[index].reshape(1))[0] == got
