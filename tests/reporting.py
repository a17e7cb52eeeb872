"""Running the command line within a test: nothing registered or loaded by it is left behind."""

from pathlib import Path

import pandas as pd

from gpu_impls.registry import isolated
from properties import recorded
from reports.cli import main

KERNELS = str(Path(__file__).with_name("kernels_for_reports.py"))
# One operator, dtype and regime, short rows: a report of a few milliseconds.
SMALL = ("--op", "sum", "--dtype", "float32", "--regime", "absorbed", "--quick")


def run(*arguments: object) -> int:
    """The exit code of ``trueulp ARGUMENTS``, also where argparse leaves by SystemExit. Kernels run in this process,
    which saves a second each time; the tests with a process of their own leave them theirs."""
    words = [str(a) for a in arguments]
    if words and not words[0].startswith("-"):
        words.insert(1, "--in-process")
    with isolated():
        try:
            return main(words)
        except SystemExit as left:
            return int(left.code or 0)
        finally:
            recorded._USER.clear()


def report(folder: Path, *arguments: object) -> pd.DataFrame:
    """The measurements of a report that ends well."""
    assert run("report", *arguments, "--out", folder) == 0
    return read(folder)


def read(folder: Path, name: str = "measurements.csv") -> pd.DataFrame:
    return pd.read_csv(folder / name, keep_default_na=False)
