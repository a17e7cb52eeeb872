"""A user's file for ``--impls``: a right sum, and one implementation for every way to misbehave.

Only ever loaded by path and inside of ``isolated()``; each loading starts the counters anew.
"""

import os
import time
from pathlib import Path

import numpy as np

from gpu_impls import implementation

FLOAT32 = ("float32",)
calls = {"interrupted": 0, "slow": 0}


def right(x, mask=None):
    """Partial sums in float64: all but correctly rounded."""
    shown = x if mask is None else np.where(mask, x, 0)
    return shown.sum(axis=-1, dtype=np.float64).astype(x.dtype)


implementation("sum", dtypes=("float32", "float64", "float16"), name="right")(right)
implementation("sum", dtypes=FLOAT32, name="a|b [red]*`<i>")(right)
implementation("sum", dtypes=FLOAT32, name="narrow", domain=(1e-3, 1e3))(right)
implementation("sum", dtypes=FLOAT32, name="never_so_short", min_length=100_000)(right)
implementation("sum", dtypes=FLOAT32, name="known_zeros", known_faulty={"accuracy": "always 0"})(
    lambda x, mask=None: np.zeros(len(x), x.dtype)
)


@implementation("sum", dtypes=FLOAT32)
def without_mask(x):
    return right(x)


class Unusual(BaseException):
    """Not even an Exception."""


@implementation("sum", dtypes=FLOAT32)
def raises(x, mask=None):
    raise RuntimeError("two\nlines, a | and half a pair \ud800")


@implementation("sum", dtypes=FLOAT32)
def raises_unusual(x, mask=None):
    raise Unusual("bye")


@implementation("sum", dtypes=FLOAT32)
def exits(x, mask=None):
    raise SystemExit(0)


@implementation("sum", dtypes=FLOAT32)
def as_list(x, mask=None):
    return right(x, mask).tolist()


@implementation("sum", dtypes=FLOAT32)
def as_nothing(x, mask=None):
    right(x, mask)


@implementation("sum", dtypes=FLOAT32)
def wider(x, mask=None):
    return right(x, mask).astype(np.float64)


@implementation("sum", dtypes=FLOAT32)
def as_column(x, mask=None):
    return right(x, mask)[:, None]


@implementation("sum", dtypes=FLOAT32)
def writes_input(x, mask=None):
    x[...] = 0
    return right(x, mask)


@implementation("sum", dtypes=FLOAT32)
def all_nan(x, mask=None):
    return np.full(len(x), np.nan, x.dtype)


@implementation("sum", dtypes=FLOAT32)
def interrupted(x, mask=None):
    """Ctrl-C, pressed during its third call."""
    calls["interrupted"] += 1
    if calls["interrupted"] == 3:
        raise KeyboardInterrupt
    return right(x, mask)


@implementation("sum", dtypes=FLOAT32)
def slow(x, mask=None):
    """Tells by a file that its third call has begun, which then takes its time."""
    calls["slow"] += 1
    if calls["slow"] == 3:
        Path(os.environ["TRUEULP_TEST_MARKER"]).touch()
        time.sleep(60)
    return right(x, mask)
