"""JAX on the CPU, compiled: reductions, the softmax family, and ``jax.nn.standardize``. Masks go in as ``where=``.

Measured on JAX 0.10.2 (x86-64):

- float32 and float64 bits depend on the batch everywhere but in max: a reduction over 4,096 elements or more in all
  is another program (XLA's YNN fusion).
- That program's maximum loses NaN: jnp.max of 64 rows of 64 NaN is -inf, and of [0, NaN, 0, ...] it is 0. In float16
  and bfloat16 it loses those with the sign bit set. Softmax and logsumexp get their NaN from the sum.
- softmax, log_softmax, logsumexp and standardize round intermediate results to float16 and bfloat16; sum, mean and
  var do not.
- softmax gives zeros for a row that ``where=`` hides, and NaN for a row of -inf.
- jnp.max raises on an empty row. Subnormals are flushed.
- standardize takes E[x^2] - E[x]^2 for the variance unless told ``algorithm="stable"``: on 1000.001, 1000.002,
  1000.003 it begins with -0.0032 for -0.3113.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

from gpu_impls import implementation
from gpu_impls.backends import JAX

ALL = ("float16", "bfloat16", "float32", "float64")
NARROW, WIDE = ALL[:2], ALL[2:]
Array = Any  # jax.Array, without the import
# The squares of var and standardize; see gpu_impls/numpy/var.py.
DOMAIN = (1e-15, 1e15)

OTHER_PROGRAM = "4,096 elements or more in all are reduced by another program"
ROUNDS_TWICE = "intermediate results are rounded to the storage format"
HIDDEN_OR_INFINITE = "a row of -inf gives NaN, one hidden by where= does not"

jax_function = functools.partial(implementation, backend="jax", subnormals="flush", source="jax")


@functools.cache
def compiled(name: str, **fixed: Any) -> Callable[..., Array]:
    """``jax.NAME(..., axis=-1)`` under ``jax.jit``, which compiles anew for every shape."""
    return JAX.jit(functools.partial(operator.attrgetter(name)(JAX), axis=-1, **fixed))


@jax_function("sum", name="jax_narrow", dtypes=NARROW)
@jax_function("sum", name="jax", dtypes=WIDE, deviates={"batch_invariance": OTHER_PROGRAM})
def jax_sum(x: Array, mask: Array | None = None) -> Array:
    """jnp.sum(x, axis=-1, where=mask)."""
    return compiled("numpy.sum")(x, where=mask)


@jax_function("mean", name="jax_narrow", dtypes=NARROW)
@jax_function("mean", name="jax", dtypes=WIDE, deviates={"batch_invariance": OTHER_PROGRAM})
def jax_mean(x: Array, mask: Array | None = None) -> Array:
    """jnp.mean(x, axis=-1, where=mask)."""
    return compiled("numpy.mean")(x, where=mask)


@jax_function("var", name="jax_narrow", dtypes=NARROW, domain=DOMAIN)
@jax_function("var", name="jax", dtypes=WIDE, domain=DOMAIN, deviates={"batch_invariance": OTHER_PROGRAM})
def jax_var(x: Array, mask: Array | None = None) -> Array:
    """jnp.var(x, axis=-1, where=mask): two passes."""
    return compiled("numpy.var")(x, where=mask)


@jax_function(
    "max",
    name="jax",
    dtypes=ALL,
    min_length=1,
    deviates={"special_values": "loses NaN (in 16 bits, negative NaN) where 4,096 elements or more are reduced in all"},
)
def jax_max(x: Array, mask: Array | None = None) -> Array:
    """jnp.max(x, axis=-1); with a mask, jnp.max(x, axis=-1, where=mask, initial=-inf), which JAX asks for."""
    if mask is None:
        return compiled("numpy.max")(x)
    return compiled("numpy.max", initial=-float("inf"))(x, where=mask)


@jax_function(
    "logsumexp", name="jax_narrow", dtypes=NARROW, deviates=dict.fromkeys(("accuracy", "special_values"), ROUNDS_TWICE)
)
@jax_function("logsumexp", name="jax", dtypes=WIDE, deviates={"batch_invariance": OTHER_PROGRAM})
def jax_logsumexp(x: Array, mask: Array | None = None) -> Array:
    """jax.nn.logsumexp(x, axis=-1, where=mask)."""
    return compiled("nn.logsumexp")(x, where=mask)


NARROW_SOFTMAX = {"accuracy": ROUNDS_TWICE, "special_values": f"{HIDDEN_OR_INFINITE}; {ROUNDS_TWICE}"}
WIDE_SOFTMAX = {"special_values": HIDDEN_OR_INFINITE, "batch_invariance": OTHER_PROGRAM}


@jax_function("softmax", name="jax_narrow", dtypes=NARROW, deviates=NARROW_SOFTMAX)
@jax_function("softmax", name="jax", dtypes=WIDE, deviates=WIDE_SOFTMAX)
def jax_softmax(x: Array, mask: Array | None = None) -> Array:
    """jax.nn.softmax(x, axis=-1, where=mask)."""
    return compiled("nn.softmax")(x, where=mask)


@jax_function("log_softmax", name="jax_narrow", dtypes=NARROW, deviates=NARROW_SOFTMAX)
@jax_function("log_softmax", name="jax", dtypes=WIDE, deviates=WIDE_SOFTMAX)
def jax_log_softmax(x: Array, mask: Array | None = None) -> Array:
    """jax.nn.log_softmax(x, axis=-1, where=mask)."""
    return compiled("nn.log_softmax")(x, where=mask)


FAST = "the variance is E[x^2] - E[x]^2"


@jax_function(
    "layer_norm",
    name="jax_standardize_narrow",
    dtypes=NARROW,
    domain=DOMAIN,
    deviates={"accuracy": f"{FAST}; {ROUNDS_TWICE}"},
)
@jax_function(
    "layer_norm",
    name="jax_standardize",
    dtypes=WIDE,
    domain=DOMAIN,
    deviates={"accuracy": FAST, "batch_invariance": OTHER_PROGRAM},
)
def jax_standardize(x: Array, eps: float = 1e-5) -> Array:
    """jax.nn.standardize(x, axis=-1, epsilon=eps), without weight and bias."""
    return compiled("nn.standardize")(x, epsilon=eps)


@jax_function(
    "layer_norm",
    name="jax_standardize_stable",
    dtypes=WIDE,
    domain=DOMAIN,
    deviates={"batch_invariance": OTHER_PROGRAM},
)
def jax_standardize_stable(x: Array, eps: float = 1e-5) -> Array:
    """jax.nn.standardize(x, axis=-1, epsilon=eps, algorithm="stable")."""
    return compiled("nn.standardize", algorithm="stable")(x, epsilon=eps)
