"""Cases: everything that is measured is one, prints as a short ID, and expands from that ID to the same bits anywhere.

    softmax:float32:rising_tiles:4x256:s7:mask=prefix
    rms_norm:bfloat16:outlier_channels:8x64:s0:weight:eps=1e-06
    layer_norm:float32:real_rows:48x384:s0:block=ln_x2
    sum:bfloat16:all_equal:1x3:x=3f80.3f80.3f80

operator, dtype, regime, rows x n, then a seed and what varies, or the bits themselves.
"""

import functools
import math
import re
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from oracles.cache import truth_of
from oracles.catalogue import operator_named
from oracles.formats import Array, Format, format_named
from oracles.operator import Inputs, Operator
from oracles.rounding import round_floats
from oracles.truth import Truth
from properties.masks import hide, mask_named
from properties.recorded import block_named
from properties.regimes import REGIMES, Regime
from properties.source import PCG64Source, normals

RECORDED = ("real_rows", "user_rows")
# Drawn cases of more elements are slips of the keyboard, and would take all memory there is.
MOST_ELEMENTS = 2**24
DEFAULT_EPS = {"rms_norm": 1e-6, "fused_add_rms_norm": 1e-6, "layer_norm": 1e-5}


@dataclass(frozen=True)
class Case:
    """One reproducible input.

    Attributes:
        op, dtype, regime: names.
        rows, n: the shape of x.
        seed: which draw of the regime; for recorded rows, which run of ``rows`` rows.
        mask: a kind of ``properties.masks``, or None for no mask.
        weight, bias: whether the norms get them (drawn; a recording's own where it has them).
        eps: for the norms; rounded to float32.
        block: which block of recorded rows.
        x, mask_bits, residual_bits, weight_bits, bias_bits: explicit bits in hex joined by dots (the mask as 0 and 1)
            in the place of a draw. An operator that takes a residual gets one, of the same regime.
    """

    op: str
    dtype: str
    regime: str
    rows: int
    n: int
    seed: int = 0
    mask: str | None = None
    weight: bool = False
    bias: bool = False
    eps: float | None = None
    block: str | None = None
    x: str | None = None
    mask_bits: str | None = None
    residual_bits: str | None = None
    weight_bits: str | None = None
    bias_bits: str | None = None

    def __post_init__(self) -> None:
        operator, _ = operator_named(self.op), format_named(self.dtype)
        if self.regime not in (*REGIMES, *RECORDED):
            raise ValueError(f"unknown regime {self.regime!r}: expected one of {', '.join((*REGIMES, *RECORDED))}")
        for name in ("mask", "residual", "weight", "bias", "eps"):
            given = getattr(self, name, None) or getattr(self, f"{name}_bits", None)
            if given and name not in (*operator.optional, *operator.parameters):
                raise ValueError(f"{self.op} takes no {name}: leave it out of the case")
        if self.regime in RECORDED and self.block is None and self.x is None:
            raise ValueError(f"{self.regime} are read from a block: expected block=NAME in the case, as reports print")
        if self.regime == "masks" and "mask" in operator.optional and self.mask is None and self.x is None:
            object.__setattr__(self, "mask", "each")
        if self.eps is None and "eps" in operator.parameters:
            object.__setattr__(self, "eps", DEFAULT_EPS[self.op])
        if self.eps is not None:
            object.__setattr__(self, "eps", _float32(self.eps))  # exactly a float32, as kernels take it

    @property
    def operator(self) -> Operator:
        return operator_named(self.op)

    @property
    def fmt(self) -> Format:
        return format_named(self.dtype)

    @property
    def id(self) -> str:
        parts = [self.op, self.dtype, self.regime, f"{self.rows}x{self.n}"]
        if self.x is None:
            parts.append(f"s{self.seed}")
        for name in _VARIATIONS:
            value = getattr(self, name)
            if value is True:
                parts.append(name)
            elif name == "eps" and value is not None:
                parts.append(f"eps={np.float32(value)!s}")
            elif value not in (None, False):
                parts.append(f"{name}={value}")
        return ":".join(parts)

    def __str__(self) -> str:
        return self.id

    @classmethod
    def parse(cls, text: str) -> "Case":
        """The case whose ID is ``text``. Raises ``ValueError`` naming the part that cannot be read."""
        parts = text.split(":")
        shape = re.fullmatch(r"(\d+)x(\d+)", parts[3]) if len(parts) > 3 else None
        if shape is None:
            raise ValueError(
                f"cannot read case {text!r}: expected operator:dtype:regime:ROWSxN:sSEED, as reports print"
            )
        values: dict[str, Any] = {"rows": int(shape[1]), "n": int(shape[2])}
        for part in parts[4:]:
            name, equals, value = part.partition("=")
            if re.fullmatch(r"s\d+", part):
                values["seed"] = int(part[1:])
            elif name not in _VARIATIONS or (name in ("weight", "bias")) == bool(equals):
                raise ValueError(
                    f"cannot read {part!r} in case {text!r}: expected some of sSEED, {', '.join(_VARIATIONS)}"
                )
            else:
                values[name] = _number(name, value, text) if name == "eps" else value if equals else True
        return cls(*parts[:3], **values)

    @functools.cached_property
    def inputs(self) -> Inputs:
        """The arrays and parameters this case stands for. Read-only: calls get copies."""
        self._refuse_mixtures()
        recorded = self.block is not None
        arrays = self._recorded() if recorded else self._explicit() if self.x is not None else self._drawn()
        for array in arrays.values():
            array.setflags(write=False)
        return Inputs(self.fmt, arrays, {} if self.eps is None else {"eps": self.eps})

    @functools.cached_property
    def truths(self) -> tuple[Truth, ...]:
        """The exact results, computed once for everybody who stands this case."""
        return truth_of(self.operator, self.inputs)

    def _refuse_mixtures(self) -> None:
        """What would be passed over in silence is refused: bits without x, and draws beside an explicit x."""
        drawn = [name for name in ("mask", "weight", "bias", "block") if getattr(self, name)]
        known = ("mask_bits", "residual_bits", "weight_bits", "bias_bits")
        bits = [name for name in known if getattr(self, name) is not None]
        if bits and self.x is None:
            raise ValueError(f"{', '.join(bits)} in case {self.id} without x: expected x=BITS too")
        if drawn and self.x is not None:
            raise ValueError(f"{', '.join(drawn)} in case {self.id} beside x: expected only the bits of others")

    def _drawn(self) -> dict[str, Array]:
        """Every row has a stream of its own: row r does not depend on how many others there are."""
        if max(self.rows, self.n, self.rows * self.n) > MOST_ELEMENTS:
            raise ValueError(f"case {self.id} is too large: expected at most {MOST_ELEMENTS:,} rows, n and elements")
        regime, fmt = REGIMES[self.regime], self.fmt
        x = np.zeros((self.rows, self.n), fmt.dtype)
        mask = np.ones((self.rows, self.n), np.bool_)
        for r in range(self.rows):
            x[r] = regime.row(PCG64Source(self.regime, self.seed, r), self.n, fmt)
            if self.mask is not None:
                source = PCG64Source("mask", self.mask, self.seed, r)
                mask[r] = mask_named(self.mask).build(source, self.n, r)
                x[r] = hide(x[r], mask[r], source, fmt)
        return {"x": x} | ({} if self.mask is None else {"mask": mask}) | self._residual(regime) | self._affine()

    def _residual(self, regime: Regime) -> dict[str, Array]:
        """Rows of a regime with streams of their own, where the operator takes them."""
        if "residual" not in self.operator.optional:
            return {}
        rows = [regime.row(PCG64Source("residual", self.seed, r), self.n, self.fmt) for r in range(self.rows)]
        return {"residual": np.array(rows, self.fmt.dtype).reshape(self.rows, self.n)}

    def _affine(self) -> dict[str, Array]:
        """Weights about 1 and biases about 0, with both signs and zeros among them."""
        arrays = {}
        for name, wanted, centre, spread in (("weight", self.weight, 1.0, 0.5), ("bias", self.bias, 0.0, 1.0)):
            if wanted:
                values = centre + spread * normals(PCG64Source(name, self.seed), self.n)
                values[3::61] = 0.0
                arrays[name] = round_floats(values, self.fmt)
        return arrays

    def _recorded(self) -> dict[str, Array]:
        block = block_named(self.regime, self.block or "")
        rows = block.rows[self.seed * self.rows : (self.seed + 1) * self.rows]
        if rows.shape != (self.rows, self.n):
            raise ValueError(f"case {self.id}: block {block.name} has rows of shape {block.rows.shape}")
        arrays = {"x": rows, **self._residual(REGIMES["standard_normal"]), **self._affine()}
        for name, recorded in (("weight", block.weight), ("bias", block.bias)):
            if getattr(self, name) and recorded is not None:
                arrays[name] = recorded
        return {name: round_floats(a, self.fmt) for name, a in arrays.items()}

    def _explicit(self) -> dict[str, Array]:
        shape = (self.rows, self.n)
        arrays = {"x": _shaped("x", _from_hex(self.x or "", self.fmt), shape)}
        if self.mask_bits is not None:
            if not set(self.mask_bits) <= {"0", "1"}:
                raise ValueError(f"mask_bits={self.mask_bits} in case {self.id}: expected 0 and 1 only")
            arrays["mask"] = _shaped("mask_bits", np.array([c == "1" for c in self.mask_bits], np.bool_), shape)
        if "residual" in self.operator.optional:
            if self.residual_bits is None:
                raise ValueError(f"case {self.id} has an x and no residual: expected residual_bits=BITS too")
            arrays["residual"] = _shaped("residual_bits", _from_hex(self.residual_bits, self.fmt), shape)
        for name, bits in (("weight", self.weight_bits), ("bias", self.bias_bits)):
            if bits is not None:
                arrays[name] = _shaped(f"{name}_bits", _from_hex(bits, self.fmt), (self.n,))
        return arrays


_VARIATIONS = tuple(f.name for f in fields(Case) if f.name not in ("op", "dtype", "regime", "rows", "n", "seed"))


def explicit_case(op: str, dtype: str, regime: str, arrays: dict[str, Array], eps: float | None = None) -> Case:
    """The case that holds these very arrays, x of shape (rows, n)."""
    fmt, (rows, n) = format_named(dtype), arrays["x"].shape
    bits = {f"{k}_bits": to_hex(arrays[k], fmt) for k in ("residual", "weight", "bias") if k in arrays}
    if "mask" in arrays:
        bits["mask_bits"] = "".join("1" if m else "0" for m in arrays["mask"].ravel())
    return Case(op, dtype, regime, rows, n, eps=eps, x=to_hex(arrays["x"], fmt), **bits)


def to_hex(values: Array, fmt: Format) -> str:
    return ".".join(fmt.hex(values))


def _from_hex(text: str, fmt: Format) -> Array:
    try:
        bits = [int(word, 16) for word in text.split(".") if word]
        return fmt.from_bits(np.array(bits, dtype=fmt.bits_dtype))
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a list of {fmt.name} bit patterns in hex, joined by dots") from None


def _shaped(name: str, values: Array, shape: tuple[int, ...]) -> Array:
    if values.size != math.prod(shape):
        raise ValueError(f"{name} holds {values.size} elements: expected {'x'.join(map(str, shape))}")
    return values.reshape(shape)


def _float32(eps: float) -> float:
    with np.errstate(over="ignore"):
        rounded = float(np.float32(eps))
    if not 0 <= rounded < math.inf:
        raise ValueError(f"eps={eps!r}: expected a number from 0 to the largest float32")
    return rounded


def _number(name: str, value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{name}={value!r} in case {text!r} is not a number") from None
