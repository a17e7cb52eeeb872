"""What an implementation claims. Claims are tested: a contract sharpens the judge or states a known weakness."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

from gpu_impls.backends import BACKENDS
from oracles.bounds import ErrorModel
from oracles.formats import FORMATS, Format, format_named

MASKED_ROW = ("zero", "nan")
SUBNORMALS = ("keep", "flush")
CASTS = ("before_weight",)
SHIFTS = ("unfused",)
STATISTICS = ("rounded",)


@dataclass(frozen=True)
class Contract:
    """The claims of one implementation.

    Attributes:
        dtypes: storage formats it takes and returns.
        backend: the library whose arrays it takes and returns, one of ``gpu_impls.backends``.
        accumulate: format of its internal arithmetic; None means float32, and float64 for float64 storage.
        masked_row: what a row without visible elements becomes (softmax family; for log_softmax "zero" is -inf).
        domain: (lo, hi), every non-zero |x_i| lies within; None promises the whole format
            (``properties.domain`` spells it out).
        subnormals: "flush" where results and inputs below the accumulator's smallest normal may be taken as 0
            (also stored ones, in the formats that share its exponents: not in float16).
        deterministic: the same call gives the same bits.
        batch_invariant: a row's bits do not depend on the rows beside it.
        max_ulp: a claimed error budget by storage format, judged in place of the derived bound.
        min_length, max_length: row lengths outside of which it makes no promise.
        contiguous_only: strided x is not offered.
        summation: "lanes:T", "tree" or "compensated": depth of its sums, see ``oracles.bounds.depth``.
        cast: "before_weight" where the normalised row is rounded to storage before the weight (rms_norm).
        statistics: "rounded" where a norm sees the sum with the residual as it was stored (fused_add_rms_norm).
        through: a format that results are rounded to before they are rounded to storage ("float32" where a float64
            result is cast to 16 bits by a library that goes that way).
        shift: "unfused" where x*c - m*c is computed from separately rounded products (softmax family).
        source: where the code comes from.
        deviates: property or regime -> reason: a known deviation; one that no longer happens fails.
        known_faulty: property -> reason: a faulty implementation kept to test the harness.
    """

    dtypes: tuple[str, ...]
    backend: str = "numpy"
    accumulate: str | None = None
    masked_row: str = "zero"
    domain: tuple[float, float] | None = None
    subnormals: str = "keep"
    deterministic: bool = True
    batch_invariant: bool = True
    max_ulp: Mapping[str, float] = field(default_factory=dict)
    min_length: int = 0
    max_length: int | None = None
    contiguous_only: bool = False
    summation: str | None = None
    cast: str | None = None
    shift: str | None = None
    statistics: str | None = None
    through: str | None = None
    source: str = ""
    deviates: Mapping[str, str] = field(default_factory=dict)
    known_faulty: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for claim in _KINDS:
            _of_its_kind(claim, getattr(self, claim))
        if not self.dtypes:
            raise ValueError(f"dtypes is empty: name at least one of {', '.join(FORMATS)}")
        for name in (*self.dtypes, *self.max_ulp, *filter(None, [self.accumulate, self.through])):
            format_named(name)
        _one_of("backend", self.backend, tuple(BACKENDS))
        _one_of("masked_row", self.masked_row, MASKED_ROW)
        _one_of("subnormals", self.subnormals, SUBNORMALS)
        _one_of("cast", self.cast, (None, *CASTS))
        _one_of("statistics", self.statistics, (None, *STATISTICS))
        _one_of("shift", self.shift, (None, *SHIFTS))
        if self.domain is not None and not 0 < self.domain[0] < self.domain[1]:
            raise ValueError(f"domain={self.domain}: expected (lo, hi) with 0 < lo < hi")
        if not 0 <= self.min_length <= (self.min_length if self.max_length is None else self.max_length):
            raise ValueError(f"min_length={self.min_length}, max_length={self.max_length}: expected 0 <= min <= max")
        for name, budget in self.max_ulp.items():
            if name not in self.dtypes:
                raise ValueError(f"max_ulp for {name}: expected one of its dtypes, {', '.join(self.dtypes)}")
            if not budget >= 0.5:
                raise ValueError(f"max_ulp={budget} for {name}: no rounded result promises less than 0.5")
        self.error_model(self.dtypes[0])  # refuses an unknown summation

    def accumulate_in(self, dtype: str) -> Format:
        """The format of the internal arithmetic for storage ``dtype``."""
        return format_named(self.accumulate or ("float64" if dtype == "float64" else "float32"))

    def error_model(self, dtype: str) -> ErrorModel:
        """What the bounds are told of this implementation."""
        return ErrorModel(
            accumulate=self.accumulate_in(dtype),
            flush=self.subnormals == "flush",
            summation=self.summation,
            cast_before_weight=self.cast == "before_weight",
            unfused_shift=self.shift == "unfused",
            rounded_statistics=self.statistics == "rounded",
            through=format_named(self.through) if self.through else None,
            bounded_domain=self.domain is not None,
        )

    def takes_length(self, n: int) -> bool:
        return self.min_length <= n and (self.max_length is None or n <= self.max_length)

    @property
    def expected_failures(self) -> Mapping[str, str]:
        """Properties and regimes that are declared to fail, with their reasons."""
        return {**self.deviates, **self.known_faulty}


CLAIMS = tuple(f.name for f in fields(Contract) if f.name != "dtypes")


def contract(dtypes: tuple[str, ...], **claims: Any) -> Contract:
    """A validated contract; a claim it does not know raises ``ValueError`` listing those it does."""
    unknown = sorted(claims.keys() - set(CLAIMS))
    if unknown:
        raise ValueError(f"unknown keyword {', '.join(unknown)}: expected some of name, {', '.join(CLAIMS)}")
    dtypes = tuple(dtypes) if isinstance(dtypes, Iterable) and not isinstance(dtypes, str) else (dtypes,)
    _of_its_kind("dtypes", dtypes)
    budget = claims.get("max_ulp")
    if _is_number(budget):
        claims["max_ulp"] = dict.fromkeys(dtypes, float(budget))
    return Contract(dtypes, **claims)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(map(_is_number, value))


def _is_reasons(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, (*value, *value.values())))


# The claims that are no choice among words: what they have to be, and what a message says is expected.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "dtypes": (lambda v: isinstance(v, tuple) and all(map(_is_text, v)), f"some of {', '.join(FORMATS)}"),
    **dict.fromkeys(
        ("accumulate", "through"), (lambda v: v is None or _is_text(v), f"None or one of {', '.join(FORMATS)}")
    ),
    "domain": (lambda v: v is None or _is_pair(v), "None or two numbers (lo, hi)"),
    "deterministic": (lambda v: isinstance(v, bool), "True or False"),
    "batch_invariant": (lambda v: isinstance(v, bool), "True or False"),
    "max_ulp": (
        lambda v: isinstance(v, Mapping) and all(map(_is_text, v)) and all(map(_is_number, v.values())),
        "a number, or one by dtype as in {'float32': 2}",
    ),
    "min_length": (_is_whole, "a whole number"),
    "max_length": (lambda v: v is None or _is_whole(v), "None or a whole number"),
    "contiguous_only": (lambda v: isinstance(v, bool), "True or False"),
    "summation": (lambda v: v is None or _is_text(v), "None or text"),
    "source": (_is_text, "text"),
    "deviates": (_is_reasons, "reasons by property or regime as in {'masks': 'it takes none'}"),
    "known_faulty": (_is_reasons, "reasons by property as in {'accuracy': 'on purpose'}"),
}


def _of_its_kind(claim: str, value: Any) -> None:
    right, expected = _KINDS[claim]
    if not right(value):
        raise ValueError(f"{claim}={value!r}: expected {expected}")


def _one_of(keyword: str, value: str | None, known: tuple[str | None, ...]) -> None:
    if value not in known:
        raise ValueError(f"{keyword}={value!r}: expected one of {', '.join(map(repr, known))}")
