"""The worked examples of the README and of the trigger lists: what a reader can check with a pencil."""

import numpy as np
import pytest

from oracles.catalogue import OPERATORS
from oracles.formats import FORMATS
from oracles.truth import compute_truth
from test_oracles_inputs import INF, given

# Operator, format, row, parameters, and the digits that are printed of the exact result.
EXAMPLES = [
    ("rms_norm", "float32", [3, 4], {"eps": 0.0}, [0.8485281, 1.1313708]),
    ("rms_norm", "float16", [300, 400], {"eps": 0.0}, [0.8485, 1.1314]),
    ("rms_norm", "float32", [3e19, 4e19], {"eps": 0.0}, [0.8485, 1.1314]),
    ("rms_norm", "float32", [1e-3, -1e-3], {"eps": 1e-5}, [0.301511, -0.301511]),
    ("softmax", "float32", [1000, 1001], {}, [0.2689414, 0.7310586]),
    ("softmax", "float32", [1, 3, 2], {}, [0.0900306, 0.6652410, 0.2447285]),
    ("softmax", "float32", [-70000, -70001], {}, [0.7310586, 0.2689414]),
    ("log_softmax", "float32", [1e7, 1e7], {}, [-0.6931472, -0.6931472]),
    ("logsumexp", "float32", [0, -20], {}, [2.0611536e-9]),
    ("logsumexp", "float32", [-INF, -INF, 3, 1], {}, [3.126928]),
    ("logsumexp", "float32", [0, 100], {}, [100]),
    ("sum", "float32", [2**24, 1, 1], {}, [16777218]),
    ("sum", "bfloat16", [1] * 300, {}, [300]),
    ("sum", "float32", [1] * 64, {}, [64]),
    ("max", "float32", [-3, -5], {}, [-3]),
    ("var", "float32", [4096, 4097, 4098, 4099], {}, [1.25]),
    ("var", "float32", [16385, 16386, 16387], {}, [0.6667]),
    ("var", "float32", [1000 + i / 1000 for i in range(1, 11)], {}, [8.248e-6]),
    ("mean", "float32", [0.5, 0.25, 0.75], {}, [0.5]),
]


def label(op: str, dtype: str, row: list[float]) -> str:
    return f"{op}-{dtype}-{len(row)}-from-{row[0]:g}"


@pytest.mark.parametrize(
    ("op", "dtype", "row", "parameters", "printed"),
    [pytest.param(*e, id=label(e[0], e[1], e[2])) for e in EXAMPLES],
)
def test_the_exact_result_has_the_printed_digits(op, dtype, row, parameters, printed):
    (truth,) = compute_truth(OPERATORS[op], given(FORMATS[dtype], row, **parameters))
    for y, digits in zip(truth.enclosure.value().ravel().tolist(), printed, strict=True):
        places = len(repr(digits).partition("e")[0].replace("-", "").replace(".", "").lstrip("0"))
        assert float(f"{y:.{places - 1}e}") == digits


def test_the_variance_is_of_the_rounded_row():
    """Not of 1000.001 ... 1000.010 themselves: input quantisation is never charged to a kernel."""
    row = [1000 + i / 1000 for i in range(1, 11)]
    variances = [compute_truth(OPERATORS["var"], given(FORMATS[f], row))[0] for f in ("float32", "float64")]
    in_float32, in_float64 = (float(t.enclosure.value()[0]) for t in variances)
    assert in_float64 == pytest.approx(8.25e-6, rel=1e-9, abs=0)
    assert in_float32 == pytest.approx(np.var(np.array(row, np.float32).astype(np.float64)), rel=1e-9, abs=0)
    assert in_float32 != pytest.approx(in_float64, rel=1e-5, abs=0)
