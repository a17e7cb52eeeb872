"""The tools of compute-sanitizer, and where it is found."""

import shutil
from enum import StrEnum

from gpu_impls.outcome import Reason

PROGRAM = "compute-sanitizer"
FOUND = 99  # its exit code where it has found something


class Tool(StrEnum):
    MEMCHECK = "memcheck"
    RACECHECK = "racecheck"
    SYNCCHECK = "synccheck"
    INITCHECK = "initcheck"

    @property
    def reason(self) -> Reason:
        """What its findings are, in words."""
        return _REASONS[self]


_REASONS = {
    Tool.MEMCHECK: Reason.MEMORY,
    Tool.RACECHECK: Reason.RACE,
    Tool.SYNCCHECK: Reason.BARRIER,
    Tool.INITCHECK: Reason.UNINITIALISED,
}


def program(named: str | None = None) -> str:
    """The path of compute-sanitizer, or of what was named in its place.

    Raises:
        ValueError: it is not there, with how to get it.
    """
    found = shutil.which(named or PROGRAM)
    if found is None and named:
        raise ValueError(f"--sanitizer {named}: expected the path of a program that can be run")
    if found is None:
        raise ValueError(
            f"{PROGRAM} is not on the PATH: it comes with NVIDIA's CUDA toolkit (as apt's cuda-sanitizer-13-0, or in "
            "/usr/local/cuda/bin); --sanitizer names it elsewhere"
        )
    return found


def command(path: str, tool: Tool) -> list[str]:
    """How it is called. A kernel that fails ends alone, so that the cases after it are still run; errors that calls of
    CUDA return are for the library that made them."""
    options = ["--error-exitcode", str(FOUND), "--show-backtrace", "no"]
    if tool is Tool.MEMCHECK:
        options += ["--destroy-on-device-error", "kernel", "--report-api-errors", "no"]
    return [path, "--tool", str(tool), *options]
