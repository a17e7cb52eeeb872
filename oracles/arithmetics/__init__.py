"""Arithmetics: what an operator's definition is evaluated in.

A definition is written once, against the :class:`~oracles.arithmetics.protocol.Operations` that all of them offer.
Double words enclose whole arrays of rows, fast and proved, within a few units of float64. What that leaves open is
evaluated row by row with any precision: rational numbers serve definitions without roots and exponentials;
python-flint's balls prove the others; mpmath stands in, slower and without a proof, where that is not installed.
"""

from oracles.arithmetics.mpmath import MPMATH
from oracles.arithmetics.protocol import Arithmetic, Definition, Operations, Vector
from oracles.arithmetics.rational import RATIONAL

ARITHMETICS: dict[str, Arithmetic] = {a.name: a for a in (RATIONAL, MPMATH)}

try:
    from oracles.arithmetics.flint import FLINT
except ImportError:  # python-flint has no wheel for every machine; every report says which ground it stands on
    BEST: Arithmetic = MPMATH
else:
    ARITHMETICS[FLINT.name] = BEST = FLINT

try:
    from oracles.arithmetics.vectorised import VECTORISED
except (ImportError, OSError):  # nor has crival; every row goes the slow way then
    VECTORISED = None  # type: ignore[assignment]

__all__ = ["ARITHMETICS", "BEST", "RATIONAL", "VECTORISED", "Arithmetic", "Definition", "Operations", "Vector"]
