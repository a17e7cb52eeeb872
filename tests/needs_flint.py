"""Importing this skips the module that does so, with its cause, where python-flint is missing (a GPU machine)."""

import pytest

flint = pytest.importorskip("flint", reason="python-flint is not installed, and this compares with it")
