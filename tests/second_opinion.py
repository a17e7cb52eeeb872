"""A second opinion on the row operators: the oracle, written again from the textbook.

Why it exists: an oracle that is wrong condemns right kernels and acquits wrong ones, and no test that shares
its definitions can tell. So the tests compare the project's oracle with this one, which imports nothing from
the project, on purpose, and takes another road to every value wherever there is one:

    sum, mean       exact rationals
    var             E[x^2] - E[x]^2 in exact rationals
    logsumexp       log(sum_j exp(x_j)), unshifted: the exponents of a ball (arb) have no limit
    softmax         exp(x_i) / sum_j exp(x_j), unshifted
    log_softmax     log(softmax_i)
    rms_norm        x_i w_i / sqrt(E[x^2] + eps) + b_i
    layer_norm      (x_i - E[x]) w_i / sqrt(E[x^2] - E[x]^2 + eps) + b_i

What is not a real number (NaN, infinities, some masked and empty rows) is answered by name: "nan", "+inf",
"-inf", or "any" where nothing is promised. Values are real numbers: no format and no accumulator overflows
here, and the sign of a zero is not told.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite, isnan

from flint import arb, ctx, fmpq

Answer = arb | str

REDUCTIONS = ("sum", "mean", "var", "max", "logsumexp")
SOFTMAXES = ("softmax", "log_softmax")
NORMS = ("rms_norm", "layer_norm")

ENOUGH_BITS = 200  # the relative accuracy a ball must reach,
NEAR_ZERO = arb((1, -1300))  # or else this radius (2^-226 of the smallest float64), where the value may be 0,
MOST_BITS = 20_000  # or else the working precision at which we stop


def second_opinion(
    op: str,
    row: Sequence[float],
    *,
    mask: Sequence[bool] | None = None,
    weight: Sequence[float] | None = None,
    bias: Sequence[float] | None = None,
    eps: float | None = None,
    masked_row: str = "zero",
    prec: int = 400,
) -> list[Answer]:
    """The exact result of `op` on one row: a ball around each value, or its name if it is no real number.

    Args:
        op: one of REDUCTIONS, SOFTMAXES, NORMS.
        row: (n,) exact inputs.
        mask: (n,) True takes part; None shows all. Not for the norms.
        weight, bias: (n,) or None, for the norms only. `eps`, under the root, is required there.
        masked_row: what a softmax of nothing is: "zero" (for log_softmax -inf) or "nan".
        prec: the first working precision in bits; it doubles until the balls are small.

    Returns:
        One entry for a reduction, n otherwise. The balls are fine, but arithmetic on them works at the
        caller's `ctx.prec`: raise it.

    Raises:
        ValueError: an unknown operator, a parameter the operator does not have, lengths that differ.
    """
    n = len(row)
    if any(given is not None and len(given) != n for given in (mask, weight, bias)):
        raise ValueError(f"mask, weight and bias must have the length of the row, {n}")
    if masked_row not in ("zero", "nan"):
        raise ValueError(f"masked_row is 'zero' or 'nan', not {masked_row!r}")
    if op in NORMS:
        if mask is not None or eps is None or not 0 <= eps < inf:
            raise ValueError(f"{op} takes no mask, and a finite eps >= 0")
        weight = [1.0] * n if weight is None else weight
        bias = [0.0] * n if bias is None else bias
        promised = [isfinite(w) and isfinite(b) for w, b in zip(weight, bias, strict=True)]
        weight = [w if ok else 0.0 for w, ok in zip(weight, promised, strict=True)]
        bias = [b if ok else 0.0 for b, ok in zip(bias, promised, strict=True)]
        answers = _norm(op, row, weight, bias, eps, prec)
        return [answer if ok else "any" for answer, ok in zip(answers, promised, strict=True)]
    if not (weight is None and bias is None and eps is None):
        raise ValueError(f"{op} takes neither weight nor bias nor eps")
    mask = [True] * n if mask is None else mask
    if op in SOFTMAXES:
        return _softmax(op, row, mask, masked_row, prec)
    if op in REDUCTIONS:
        return [_reduction(op, [x for x, m in zip(row, mask, strict=True) if m], prec)]
    raise ValueError(f"unknown operator {op!r}; known: {', '.join(REDUCTIONS + SOFTMAXES + NORMS)}")


def _reduction(op: str, xs: Sequence[float], prec: int) -> Answer:
    if op == "max":
        return "nan" if any(map(isnan, xs)) else _number(max(xs, default=-inf))
    if op == "logsumexp":
        if not all(x < inf for x in xs):
            return "nan" if any(map(isnan, xs)) else "+inf"
        terms = [x for x in xs if x > -inf]
        return _sharp(lambda: [sum(map(_exp, terms), arb(0)).log()], prec)[0] if terms else "-inf"
    if not xs and op != "sum":
        return "nan"
    specials = [x for x in xs if not isfinite(x)]
    if specials:
        return "nan" if op == "var" else _number(sum(specials))  # IEEE: inf - inf is NaN
    exact = {"sum": _sum, "mean": _mean, "var": _variance}[op]([_rational(x) for x in xs])
    return _sharp(lambda: [arb(exact)], prec)[0]


def _softmax(op: str, row: Sequence[float], mask: Sequence[bool], masked_row: str, prec: int) -> list[Answer]:
    seen = [m and x != -inf for x, m in zip(row, mask, strict=True)]
    nothing: Answer = arb(0) if op == "softmax" else "-inf"
    if not any(seen):
        return [nothing if masked_row == "zero" else "nan"] * len(row)
    terms = [x for x, s in zip(row, seen, strict=True) if s]
    if not all(map(isfinite, terms)):
        return ["nan" if s else "any" for s in seen]

    def formula() -> list[arb]:
        exps = [_exp(x) for x in terms]
        total = sum(exps, arb(0))
        shares = [e / total for e in exps]
        return shares if op == "softmax" else [share.log() for share in shares]

    values = iter(_sharp(formula, prec))
    return [next(values) if s else nothing for s in seen]


def _norm(
    op: str, row: Sequence[float], weight: Sequence[float], bias: Sequence[float], eps: float, prec: int
) -> list[Answer]:
    if any(map(isnan, row)):
        return ["nan"] * len(row)
    if not all(map(isfinite, row)):  # x / inf is 0, inf / inf is NaN
        if op == "layer_norm":
            return ["nan"] * len(row)
        return [arb(b) if isfinite(x) else "nan" for x, b in zip(row, bias, strict=True)]
    if not len(row):
        return []
    xs = [_rational(x) for x in row]
    centre = _mean(xs) if op == "layer_norm" else fmpq(0)
    square = _rational(eps) + (_variance(xs) if op == "layer_norm" else _mean([x * x for x in xs]))
    if square == 0:  # 0 / 0, unless rounding makes the zeros of a constant row something else
        return ["nan" if op == "rms_norm" or len(row) == 1 or not any(row) else "any"] * len(row)
    scaled = [(x - centre) * _rational(w) for x, w in zip(xs, weight, strict=True)]

    def formula() -> list[arb]:
        root = arb(square).sqrt()
        return [arb(p) / root + arb(b) for p, b in zip(scaled, bias, strict=True)]

    return _sharp(formula, prec)


def _sharp(formula: Callable[[], list[arb]], prec: int) -> list[Answer]:
    """The balls of `formula`, computed at rising precision until every one is small."""
    while True:
        with ctx.workprec(prec):
            balls = formula()
        small = all(b.rel_accuracy_bits() >= ENOUGH_BITS or b.rad() < NEAR_ZERO for b in balls)
        if small or prec >= MOST_BITS:
            return list(balls)
        prec = min(2 * prec, MOST_BITS)


def _number(x: float) -> Answer:
    return arb(x) if isfinite(x) else "nan" if isnan(x) else f"{x:+}"


def _rational(x: float) -> fmpq:
    return fmpq(*x.as_integer_ratio())


def _exp(x: float) -> arb:
    return arb(x).exp()


def _sum(xs: Sequence[fmpq]) -> fmpq:
    return sum(xs, fmpq(0))


def _mean(xs: Sequence[fmpq]) -> fmpq:
    return _sum(xs) / len(xs)


def _variance(xs: Sequence[fmpq]) -> fmpq:
    return _mean([x * x for x in xs]) - _mean(xs) ** 2
