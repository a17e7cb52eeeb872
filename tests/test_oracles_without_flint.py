"""Where python-flint has no wheel: everything still runs, gives the same bits, and says on what ground it stands."""

import json
import subprocess
import sys

import pytest

from oracles.catalogue import OPERATORS
from oracles.formats import FORMATS
from oracles.truth import compute_truth
from test_oracles_inputs import arguments

SCRIPT = """
import json, sys
sys.modules["flint"] = None  # importing it fails from here on
sys.path.insert(0, sys.argv[1])
from test_oracles_inputs import arguments
from oracles.arithmetics import ARITHMETICS, BEST
from oracles.catalogue import OPERATORS
from oracles.formats import FORMATS
from oracles.truth import compute_truth
truths = {name: compute_truth(op, arguments(op, FORMATS["float32"]))[0] for name, op in OPERATORS.items()}
found = {name: [str(t.ground), FORMATS["float32"].hex(t.rounded)] for name, t in truths.items()}
print(json.dumps([BEST.name, sorted(ARITHMETICS), found]))
"""


@pytest.fixture(scope="module")
def without_flint() -> tuple[str, list[str], dict[str, tuple[str, list[str]]]]:
    tests = __file__.rpartition("/")[0]
    command = [sys.executable, "-W", "error", "-c", SCRIPT, tests]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_mpmath_takes_its_place(without_flint):
    best, known, _ = without_flint
    assert (best, known) == ("mpmath", ["mpmath", "rational"])


@pytest.mark.parametrize("name", OPERATORS)
def test_the_bits_are_the_same_and_the_ground_is_told(without_flint, name: str):
    ground, bits = without_flint[2][name]
    op, fmt = OPERATORS[name], FORMATS["float32"]
    assert bits == fmt.hex(compute_truth(op, arguments(op, fmt))[0].rounded)
    assert ground == ("proved" if op.rational else "mpmath")
