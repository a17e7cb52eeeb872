"""Arithmetics: what an operator's definition is evaluated in.

A definition is written once, against the :class:`~oracles.arithmetics.protocol.Arithmetic` protocol. The rational
arithmetic serves definitions without roots and exponentials; python-flint's balls prove the others; mpmath stands
in, slower and without a proof, where python-flint is not installed.
"""

from oracles.arithmetics.mpmath import MPMATH
from oracles.arithmetics.protocol import Arithmetic, Definition, Vector
from oracles.arithmetics.rational import RATIONAL

ARITHMETICS: dict[str, Arithmetic] = {a.name: a for a in (RATIONAL, MPMATH)}

try:
    from oracles.arithmetics.flint import FLINT
except ImportError:  # python-flint has no wheel for every machine; every report says which ground it stands on
    BEST: Arithmetic = MPMATH
else:
    ARITHMETICS[FLINT.name] = BEST = FLINT

__all__ = ["ARITHMETICS", "BEST", "RATIONAL", "Arithmetic", "Definition", "Vector"]
