"""Stories: one element of one run, digit by digit, as failures and ``trueulp replay`` print it."""

from fractions import Fraction

import mpmath
import numpy as np

from gpu_impls.registry import Implementation
from oracles.classes import ElementClass
from oracles.enclosure import Enclosure
from oracles.formats import Array, Format
from oracles.operator import Inputs
from properties.case import Case
from properties.judge import Judgement

SHOWN = 12  # elements of a row that are written out


def story(implementation: Implementation, case: Case, judgement: Judgement, index: tuple[int, ...]) -> str:
    """Everything about one element: where, input, got, expected, error, bound, condition and the verdict."""
    lines = {
        "operator": f"{case.op}, implementation {implementation.name}, {case.dtype}",
        "case": f"{case.id}, element {list(index)}",
        **element_lines(case.inputs, judgement, index),
    }
    return "\n".join(f"  {name:<10} {text}" for name, text in lines.items())


def element_lines(inputs: Inputs, judgement: Judgement, index: tuple[int, ...]) -> dict[str, str]:
    """One element: its row's input, what came out, what should have, and the verdict."""
    reason = judgement.reason_at(index)
    return {
        **input_lines(inputs, index),
        **result_lines(judgement, index),
        "verdict": f"{reason.outcome}: {reason}",
    }


def input_lines(inputs: Inputs, index: tuple[int, ...]) -> dict[str, str]:
    """The row's input, in decimal and in bits, cut around the element where it is long."""
    row, place = index[0], index[1] if len(index) > 1 else 0
    n = inputs.x.shape[-1]
    start = max(0, min(place - SHOWN // 2, n - SHOWN))
    window = slice(start, start + SHOWN)
    lines = {}
    for name, array in inputs.arrays.items():
        values = array[row] if array.ndim == 2 else array
        where = "" if n <= SHOWN else f" [{start}:{start + SHOWN} of {n}]"
        shown = values[window]
        if shown.dtype == np.bool_:
            lines[name] = "".join("1" if m else "0" for m in shown) + where
        else:
            lines[name] = f"{decimal(shown)}{where}"
            lines[f"{name} bits"] = " ".join(inputs.fmt.hex(shown))
    return lines | {name: repr(value) for name, value in inputs.parameters.items()}


def result_lines(judgement: Judgement, index: tuple[int, ...]) -> dict[str, str]:
    """Got and expected, error, bound and condition of one element."""
    e, fmt = judgement.expectation, judgement.expectation.fmt
    lines = {"got": with_bits(judgement.computed[index], fmt)}
    errors = f"{judgement.errors[index]:.4g} ULP ({judgement.row_errors[index]:.4g} ULP of the row's largest output)"
    element_class = ElementClass(int(e.classes[index]))
    if element_class is not ElementClass.VALUE:
        return lines | {"expected": element_class.name}
    lines |= {
        "expected": f"{with_bits(e.truth.rounded[index], fmt)}, correctly rounded ({e.truth.ground})",
        "exact": exact_decimal(e.truth.enclosure, index),
    }
    if not np.isnan(judgement.errors[index]):  # a NaN or a wrong infinity has no error
        lines |= {"error": errors, "allowed": _allowance(judgement, index)}
    return lines | {"condition": f"{e.condition[index]:.4g}"}


def _allowance(judgement: Judgement, index: tuple[int, ...]) -> str:
    e = judgement.expectation
    if e.max_ulp is not None:
        return f"{e.max_ulp:g} ULP by its own claim, {judgement.used[index]:.4g} of it used"
    bound, allowed = float(e.bound[index]), float(e.allowed[index])
    # In 16 bits the share is that of the bound beyond storage's half ulp (oracles.bounds).
    whole = "it" if e.fmt.precision >= 24 else "the bound"
    return f"{allowed:.4g} absolute (bound {bound:.4g} before storage), {judgement.used[index]:.4g} of {whole} used"


def decimal(values: Array) -> str:
    """Values in as few digits as give them back."""
    return " ".join(str(v) for v in values)


def with_bits(value: Array, fmt: Format) -> str:
    return f"{value!s} (0x{fmt.hex(np.array([value], fmt.dtype))[0]})"


def exact_decimal(enclosure: Enclosure, index: tuple[int, ...], digits: int = 30) -> str:
    """The enclosure's centre to ``digits`` digits, and its radius relative to it."""
    value = enclosure.fraction(index)
    with mpmath.workprec(digits * 4 + 64):
        text = mpmath.nstr(mpmath.mpf(value.numerator) / value.denominator, digits)
    radius = Fraction(float(enclosure.radius[index])) * Fraction(2) ** int(enclosure.exponent[index])
    if radius == 0:
        return f"{text} (the pair of floats is exact)"
    relative = float(radius / abs(value)) if value else float(radius)
    return f"{text} (+- {relative:.1g} {'relative' if value else 'absolute'})"
