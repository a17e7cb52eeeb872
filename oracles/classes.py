"""Element classes: what kind of result the oracle demands, before any number is compared."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from oracles.formats import Array

Classes = NDArray[np.int8]


class ElementClass(IntEnum):
    """VALUE is judged by its bound; NAN, POS_INF and NEG_INF by class; ANY promises nothing and is not compared."""

    VALUE = 0
    NAN = 1
    POS_INF = 2
    NEG_INF = 3
    ANY = 4


def choose(shape: tuple[int, ...], *rules: tuple[Array | np.bool_, ElementClass]) -> Classes:
    """The class of the first rule whose condition (broadcast to ``shape``) holds, and VALUE where none does."""
    classes = np.full(shape, ElementClass.VALUE, dtype=np.int8)
    for condition, element_class in reversed(rules):
        classes[np.broadcast_to(condition, shape)] = element_class
    return classes


def class_of(values: Array) -> Classes:
    """The classes of computed values: finite ones are VALUE. The sign of a NaN does not matter."""
    with np.errstate(invalid="ignore"):  # a signalling NaN, as uninitialised memory may hold, is a NaN
        wide = values.astype(np.float64)
    return choose(
        wide.shape,
        (np.isnan(wide), ElementClass.NAN),
        (wide == np.inf, ElementClass.POS_INF),
        (wide == -np.inf, ElementClass.NEG_INF),
    )
