"""``trueulp gate``: did a change make anything worse?

Exit codes: 0 nothing did, 1 something is worse or missing, 2 an unusable baseline, other inputs, or nothing ran.
"""

import argparse

from reports.commands import Action
from reports.commands.options import add_filters, add_selection
from reports.gate import against_baseline, against_incumbent
from reports.gate.scatter import Tolerance

SUMMARY = "did anything get worse than a baseline, or than another implementation?"
_TOLERANCE = (
    "rise=0.1 of bound used and max row ULP; share=0 of misrounded results; scatter=3 sigmas up to which a trend of "
    "the input rows' errors passes for another order of operations, 0 forgives none (repeatable)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_filters(parser)
    parser.set_defaults(seed=None, quick=None)  # an existing baseline has its own
    parser.add_argument("--baseline", metavar="FILE", help="what to compare with (default: one of NumPy and SciPy)")
    parser.add_argument("--update", action="store_true", help="write what was measured into the baseline")
    parser.add_argument("--require-all", action="store_true", help="rows that cannot run here are a failure")
    parser.add_argument("--no-worse-than", metavar="IMPL", help="compare with this implementation, not with a file")
    parser.add_argument("--tolerance", action="append", default=[], metavar="NAME=NUMBER", help=_TOLERANCE)


def prepare(options: argparse.Namespace) -> Action:
    tolerance = Tolerance.parse(options.tolerance)
    way = against_baseline if options.no_worse_than is None else against_incumbent
    return way.prepare(options, tolerance)
