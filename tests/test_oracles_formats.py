"""The format table, against IEEE 754's own numbers and against every bit pattern."""

from fractions import Fraction

import numpy as np
import pytest

from oracles.classes import ElementClass, choose, class_of
from oracles.formats import FORMATS, Format, format_named
from properties.source import PCG64Source
from test_oracles_inputs import INF, NAN, each_format

HALVES = [FORMATS["float16"], FORMATS["bfloat16"]]
each_half = pytest.mark.parametrize("fmt", HALVES, ids=lambda fmt: fmt.name)

# precision, emin, emax, and the bits of: 1, the largest, the smallest normal, the smallest subnormal, infinity
FACTS = {
    "float16": (11, -14, 15, "3c00", "7bff", "0400", "0001", "7c00"),
    "bfloat16": (8, -126, 127, "3f80", "7f7f", "0080", "0001", "7f80"),
    "float32": (24, -126, 127, "3f800000", "7f7fffff", "00800000", "00000001", "7f800000"),
    "float64": (53, -1022, 1023, f"3ff{0:013x}", f"7fe{2**52 - 1:013x}", f"001{0:013x}", f"{1:016x}", f"7ff{0:013x}"),
}


def infinity(fmt: Format) -> int:
    """Infinity's bit pattern, one above the largest finite number's."""
    return int(FACTS[fmt.name][-1], 16)


def decode(fmt: Format, pattern: int) -> Fraction:
    """The value of a non-negative finite pattern, by IEEE 754, section 3.4; infinity's is what would come next."""
    field, fraction = divmod(pattern, 2 ** (fmt.precision - 1))
    significand = fraction + (2 ** (fmt.precision - 1) if field else 0)
    return significand * Fraction(2) ** (max(field, 1) - fmt.emax - fmt.precision + 1)


def number(fmt: Format, pattern: int) -> float:
    """What the format's own dtype makes of a pattern."""
    return float(fmt.from_bits(np.array([pattern]))[0])


def some_patterns(fmt: Format, count: int = 60) -> list[int]:
    """Patterns of finite numbers with a successor: the ends, the binades' edges about 1, and drawn ones."""
    normal, one, end = 2 ** (fmt.precision - 1), int(FACTS[fmt.name][3], 16), infinity(fmt)
    edges = [0, 1, 2, 3, normal - 2, normal - 1, normal, one - 2, one - 1, one, one + 1, end - 2, end - 1]
    return edges + PCG64Source("patterns", fmt.name).integers(0, end - 1, count).tolist()


@each_format
def test_the_table_is_ieee_754(fmt: Format):
    precision, emin, emax, *hexes = FACTS[fmt.name]
    assert (fmt.precision, fmt.emin, fmt.emax) == (precision, emin, emax)
    landmarks = np.array([1.0, fmt.largest, fmt.smallest_normal, fmt.smallest_subnormal, INF])
    assert fmt.hex(landmarks.astype(fmt.dtype)) == hexes
    assert FORMATS[fmt.name] is format_named(fmt.name) is fmt
    assert fmt.dtype.name == fmt.name


@each_format
def test_derived_quantities_follow_from_the_patterns(fmt: Format):
    one, end = int(FACTS[fmt.name][3], 16), infinity(fmt)
    assert Fraction(fmt.unit_roundoff) == (decode(fmt, one + 1) - decode(fmt, one)) / 2
    assert Fraction(fmt.smallest_subnormal) == decode(fmt, 1) == Fraction(2) ** fmt.quantum_exponent
    assert Fraction(fmt.smallest_normal) == decode(fmt, 2 ** (fmt.precision - 1))
    assert Fraction(fmt.largest) == decode(fmt, end - 1)


def test_unknown_formats_are_refused_by_name():
    with pytest.raises(ValueError, match="unknown dtype 'float8': expected one of float16, bfloat16, float32, float64"):
        format_named("float8")


@each_half
def test_every_pattern_of_16_bits_has_its_value_and_class(fmt: Format):
    patterns = np.arange(2**16, dtype=np.uint16)
    values = fmt.from_bits(patterns)
    assert (fmt.bits(values) == patterns).all()  # NaN payloads and all
    end, sign = infinity(fmt), 2**15
    assert [float(v) for v in values[:end]] == [float(decode(fmt, k)) for k in range(end)]
    assert (values[sign : sign + end].astype(np.float64) == -values[:end].astype(np.float64)).all()
    classes = class_of(values)
    expected = np.full(2**16, ElementClass.NAN)
    expected[:end] = expected[sign : sign + end] = ElementClass.VALUE
    expected[end], expected[sign + end] = ElementClass.POS_INF, ElementClass.NEG_INF
    assert (classes == expected).all()


@each_format
def test_drawn_patterns_have_their_value_and_survive_the_way_there_and_back(fmt: Format):
    for pattern in some_patterns(fmt):
        assert Fraction(number(fmt, pattern)) == decode(fmt, pattern)
        assert fmt.bits(fmt.from_bits(np.array([pattern]))).tolist() == [pattern]


@each_format
def test_hex_shows_signs_and_payloads(fmt: Format):
    digits = 2 * fmt.dtype.itemsize
    values = np.array([-0.0, 1.0, -INF]).astype(fmt.dtype)
    first, second, third = fmt.hex(values)
    assert (first, second) == ("8" + "0" * (digits - 1), FACTS[fmt.name][3])
    assert int(third, 16) == infinity(fmt) + 2 ** (4 * digits - 1)
    payload = infinity(fmt) + 1
    assert fmt.hex(fmt.from_bits(np.array([payload]))) == [f"{payload:0{digits}x}"]


@each_format
def test_classes_of_computed_values_ignore_the_sign_of_a_nan(fmt: Format):
    values = np.array([0.0, -0.0, 1.0, fmt.largest, NAN, np.copysign(NAN, -1), INF, -INF]).astype(fmt.dtype)
    kinds = [ElementClass(c).name for c in class_of(values)]
    assert kinds == ["VALUE"] * 4 + ["NAN"] * 2 + ["POS_INF", "NEG_INF"]


def test_the_first_rule_that_holds_decides_and_broadcasts():
    row, column = np.array([[True, False, False]]), np.array([[True], [False]])
    classes = choose((2, 3), (row, ElementClass.ANY), (column, ElementClass.NAN))
    any_, nan, value = ElementClass.ANY, ElementClass.NAN, ElementClass.VALUE
    assert classes.tolist() == [[any_, nan, nan], [any_, value, value]]
