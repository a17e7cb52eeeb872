"""Where python-flint or crival has no wheel: everything runs, gives the same bits, and says on what ground."""

import json
import subprocess
import sys

import pytest

from oracles.formats import FORMATS
from oracles.truth import compute_truth
from test_oracles_inputs import ALONE as OPERATORS
from test_oracles_inputs import arguments

SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
for library in sys.argv[2:]:
    sys.modules[library] = None  # importing it fails from here on
from test_oracles_inputs import ALONE as OPERATORS, arguments
from oracles.arithmetics import ARITHMETICS, BEST
from oracles.formats import FORMATS
from oracles.truth import compute_truth
truths = {name: compute_truth(op, arguments(op, FORMATS["float32"]))[0] for name, op in OPERATORS.items()}
found = {
    name: [str(t.ground), sorted(t.arithmetics), FORMATS["float32"].hex(t.rounded)] for name, t in truths.items()
}
print(json.dumps([BEST.name, sorted(ARITHMETICS), found]))
"""


Found = tuple[str, list[str], dict[str, tuple[str, list[str], list[str]]]]


def without(*libraries: str) -> Found:
    tests = __file__.rpartition("/")[0]
    command = [sys.executable, "-W", "error", "-c", SCRIPT, tests, *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=[("flint",), ("ival",), ("flint", "ival")], ids="-".join)
def found(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], Found]:
    return request.param, without(*request.param)


def test_mpmath_takes_the_place_of_flint(found: tuple[tuple[str, ...], Found]):
    missing, (best, known, _) = found
    assert best == ("mpmath" if "flint" in missing else "flint")
    assert known == sorted({"mpmath", "rational", best})


@pytest.mark.parametrize("name", OPERATORS)
def test_the_bits_are_the_same_and_the_ground_is_told(found: tuple[tuple[str, ...], Found], name: str):
    missing, (best, _, truths) = found
    ground, arithmetics, bits = truths[name]
    op, fmt = OPERATORS[name], FORMATS["float32"]
    assert bits == fmt.hex(compute_truth(op, arguments(op, fmt))[0].rounded)
    assert ground == ("mpmath" if "mpmath" in arithmetics else "proved")
    last = "rational" if op.rational else best
    assert arithmetics == [last] if "ival" in missing else set(arithmetics) <= {"double_words", last}
