"""Sources of integers, and the numbers made of them.

A regime is written once, against a :class:`Source`. Sampled, the integers come from raw PCG64 output; in a hypothesis
test each one is drawn, and shrinks. Numbers are made of integers by float64 +, -, *, /, sqrt and ldexp alone, which
IEEE 754 fixes to the last bit, so that rows are the same on every machine and NumPy version: no exp, no log, no
``Generator``.

Hypothesis shrinks integers towards 0 (or the bound nearest to it) and, drawing, prefers those of few bits. So the
integer 0 gives the simplest number, and fractions read their integer's bits in reverse: 0, 1, 2, 3 give 0, 1/2, 1/4,
3/4. A small integer is a short fraction, and small integers still cover the whole range.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FRACTION_BITS = 53
_REVERSED_BYTE = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], dtype=np.uint8)
_LOW_HALF = np.uint64(2**32 - 1)
_HALF = np.uint64(32)


class Source(Protocol):
    """Where a row's integers come from."""

    def integers(self, low: int, high: int, size: int) -> Ints:
        """``size`` integers from ``low`` to ``high``, both included."""
        ...


class PCG64Source:
    """Integers from raw 64-bit PCG64 output; the same ``key`` gives the same integers everywhere.

    State and increment come from SHA-256 of the key directly, past NumPy's seeding.
    """

    def __init__(self, *key: int | str) -> None:
        text = json.dumps([part if isinstance(part, str) else int(part) for part in key])
        digest = hashlib.sha256(text.encode()).digest()
        self._bits = np.random.PCG64(0)
        self._bits.state = {
            "bit_generator": "PCG64",
            "state": {
                "state": int.from_bytes(digest[:16], "big"),
                "inc": int.from_bytes(digest[16:], "big") | 1,  # PCG's increment is odd
            },
            "has_uint32": 0,
            "uinteger": 0,
        }

    def integers(self, low: int, high: int, size: int) -> Ints:
        """``low + floor(raw * span / 2**64)``: a value's probability is off by less than 2**-64."""
        span = _span(low, high)
        raw = np.asarray(self._bits.random_raw(size), dtype=np.uint64)
        return low + _high_product(raw, span).astype(np.int64)


class DrawnSource:
    """Integers drawn one by one with hypothesis' ``draw``, so that each of them shrinks."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def integers(self, low: int, high: int, size: int) -> Ints:
        _span(low, high)
        strategy = st.integers(low, high)
        return np.array([self._draw(strategy) for _ in range(size)], dtype=np.int64)


def _span(low: int, high: int) -> int:
    if not 1 <= high - low + 1 <= 2**63:
        raise ValueError(f"no integers to draw from {low} to {high}: expected 1 to 2**63 of them")
    return high - low + 1


def _high_product(raw: NDArray[np.uint64], span: int) -> NDArray[np.uint64]:
    """``floor(raw * span / 2**64)`` from 32-bit halves, exactly; no partial sum reaches 2**64."""
    span_high, span_low = np.uint64(span >> 32), np.uint64(span & 0xFFFF_FFFF)
    raw_high, raw_low = raw >> _HALF, raw & _LOW_HALF
    first, second = raw_high * span_low, raw_low * span_high
    carry = ((raw_low * span_low) >> _HALF) + (first & _LOW_HALF) + (second & _LOW_HALF)
    return raw_high * span_high + (first >> _HALF) + (second >> _HALF) + (carry >> _HALF)


def whole(source: Source, low: int, high: int) -> int:
    """One integer from ``low`` to ``high``, both included."""
    return int(source.integers(low, high, 1)[0])


def choice(source: Source, options: tuple[Any, ...]) -> Any:
    """One of ``options``; the first is the simplest."""
    return options[whole(source, 0, len(options) - 1)]


def signs(source: Source, size: int) -> Floats:
    """+1 (simplest) or -1."""
    return 1.0 - 2.0 * source.integers(0, 1, size)


def uniforms(source: Source, size: int) -> Floats:
    """Uniform in [0, 1): multiples of 2**-53."""
    return _reversed_fractions(source.integers(0, 2**FRACTION_BITS - 1, size), FRACTION_BITS)


def signed_uniforms(source: Source, size: int) -> Floats:
    """Uniform in (-1, 1): the integer's lowest bit is the sign, the others are the fraction."""
    drawn = source.integers(0, 2**FRACTION_BITS - 1, size)
    fractions = _reversed_fractions(drawn >> 1, FRACTION_BITS - 1)
    return np.where(drawn & 1, -fractions, fractions) + 0.0  # + 0.0 makes -0 a 0


def normals(source: Source, size: int) -> Floats:
    """Nearly standard normal, from one integer each: within (-5.8, 5.8), standard deviation 1, kurtosis 2.6.

    ``1.4445 v / (1 + 2**-16 - v**2)**(1/8)`` for v uniform in (-1, 1): an algebraic stand-in for the quantile
    function, whose logarithm would differ between machines; 2**-16 bounds it.
    """
    v = signed_uniforms(source, size)
    return 1.4445 * v / np.sqrt(np.sqrt(np.sqrt(1.0 + 2.0**-16 - v * v)))


def magnitudes(source: Source, low: int, high: int, size: int) -> Floats:
    """Positive, log-uniform by binades: ``2**e * (1 + f)`` with e from ``low`` to ``high``, both included."""
    exponents = source.integers(low, high, size)
    return np.ldexp(1.0 + uniforms(source, size), exponents.astype(np.int32))


def _reversed_fractions(drawn: Ints, bits: int) -> Floats:
    """``drawn``, of ``bits`` bits, as the binary fraction whose first digit is the lowest bit."""
    octets = drawn.astype(np.uint64).view(np.uint8).reshape(-1, 8)
    mirrored = np.ascontiguousarray(_REVERSED_BYTE[octets[:, ::-1]]).view(np.uint64).ravel()
    return np.ldexp((mirrored >> np.uint64(64 - bits)).astype(np.float64), -bits)
