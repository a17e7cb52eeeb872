"""The commands of ``trueulp``, one module each.

``SUMMARY`` is its line in the help. ``configure(parser)`` adds its options. ``prepare(options)`` checks everything the
user gave, raising ``ValueError`` in words for them, and returns the action that does the work and gives the exit code.
"""

from collections.abc import Callable

from rich.console import Console

Action = Callable[[Console], int]

OK = 0
