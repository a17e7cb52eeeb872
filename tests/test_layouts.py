"""Layouts: equal in value, unusual in memory, apart from the original."""

import numpy as np
import pytest

from oracles.formats import FORMATS, Format
from oracles.rounding import round_floats
from properties.layouts import LAYOUTS
from properties.source import PCG64Source, normals

SHAPES = [(0, 0), (0, 5), (3, 0), (1, 1), (1, 6), (5, 1), (4, 7)]


def _rows(shape: tuple[int, int], fmt: Format) -> np.ndarray:
    values = round_floats(normals(PCG64Source("layouts"), shape[0] * shape[1]), fmt).reshape(shape)
    if values.size > 3:
        values[0, 0], values[-1, -1] = np.nan, -np.inf
    return values


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", LAYOUTS)
def test_values_are_the_same_and_the_memory_is_not(name: str, fmt: Format, shape: tuple[int, int]):
    x = _rows(shape, fmt)
    expected = np.array(np.broadcast_to(x[:1], shape)) if name == "stride0" else x
    y = LAYOUTS[name](x)
    assert y.dtype == fmt.dtype
    assert y.shape == shape
    assert fmt.bits(y).tolist() == fmt.bits(expected).tolist()
    assert not np.shares_memory(x, y)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "stride0"])
def test_writing_changes_one_element_of_the_copy(name: str, fmt: Format):
    x = _rows((4, 7), fmt)
    before, y = x.copy(), LAYOUTS[name](x)
    expected = x.copy()
    y[2, 3] = expected[2, 3] = 5
    assert fmt.bits(y).tolist() == fmt.bits(expected).tolist()
    assert fmt.bits(x).tolist() == fmt.bits(before).tolist()


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_memory_is_as_promised(fmt: Format):
    views = {name: layout(_rows((4, 7), fmt)) for name, layout in LAYOUTS.items()}
    k = fmt.dtype.itemsize
    assert {name: view.strides for name, view in views.items()} == {
        "contiguous": (7 * k, k),
        "sliced": (16 * k, 2 * k),
        "transposed": (k, 4 * k),
        "reversed": (-7 * k, -k),
        "stride0": (0, k),
        "offset": (7 * k, k),
        "misaligned": (7 * k, k),
    }
    assert [name for name, view in views.items() if not view.flags.aligned] == ["misaligned"]
    assert [name for name, view in views.items() if not view.flags.writeable] == ["stride0"]
    assert views["misaligned"].__array_interface__["data"][0] % 2 == 1


def test_a_slice_is_surrounded_by_nan():
    view = LAYOUTS["sliced"](np.ones((2, 3), dtype=np.float32))
    assert np.isnan(view.base).sum() == view.base.size - view.size
