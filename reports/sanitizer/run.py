"""An implementation beneath one tool, in a child with a deadline; what is found becomes measurements."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpu_impls.call import Run
from gpu_impls.outcome import Reason
from gpu_impls.registry import Implementation
from properties.case import Case
from properties.oracle_check import Verdict
from reports.measurement import Partial, partials
from reports.sanitizer.child import ENVIRONMENT
from reports.sanitizer.log import Findings, Log, read
from reports.sanitizer.tools import FOUND, Tool, command


def sanitize(
    implementation: Implementation, cases: Sequence[Case], tool: Tool, program: str, deadline: float
) -> list[Partial]:
    """One partial measurement for each case, with the tool in the place of the regime.

    A case is clean where it ended and nothing was found in it. Beyond the deadline, the case that had begun hung; where
    the child ended before its cases, the one that had begun crashed. Those that never began were not run.
    """
    text, ended_by = _printed(implementation, cases, tool, program, deadline)
    log = read(text.splitlines())
    made = []
    for case in cases:
        run = _outcome(case.id, log, tool, ended_by)
        for part in partials(Verdict(implementation, case, run, ())):
            made.append(replace(part, key=(*part.key[:4], str(tool), part.key[5])))
    return made


def _outcome(case: str, log: Log, tool: Tool, ended_by: Run | None) -> Run:
    found = log.cases.get(case, Findings())
    if found.count:
        return Run(reason=tool.reason, detail=found.told)
    if found.answer:
        return Run(reason=Reason.RAISED, detail=found.answer)
    if found.ended:
        return Run(reason=Reason.CLEAN)
    ended_by = ended_by or Run(reason=Reason.CRASHED, detail="; ".join(log.trouble))
    if case == log.last or log.last is None:
        return ended_by
    return Run(reason=Reason.NOT_RUN, detail=f"after {log.last}: {ended_by.detail}")


def _printed(
    implementation: Implementation, cases: Sequence[Case], tool: Tool, program: str, deadline: float
) -> tuple[str, Run | None]:
    """All that was printed, and how it came to an end where that is not the usual one."""
    where = [implementation.origin or "", implementation.op, implementation.name]
    child = [sys.executable, "-m", "reports.sanitizer.child", *where, *(case.id for case in cases)]
    path = os.pathsep.join(filter(None, sys.path))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"  # a file: no pipe fills up, and what was printed before a hang is kept
        with output.open("wb") as file:
            process = subprocess.Popen(
                [*command(program, tool), *child],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that what it starts dies with it
                env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            )
            ended_by = None
            try:
                code = process.wait(timeout=deadline)
                if code not in (0, FOUND):
                    ended_by = Run(reason=Reason.CRASHED, detail=f"its process ended with {code}")
            except subprocess.TimeoutExpired:
                ended_by = Run(reason=Reason.HUNG, detail=f"no answer within {deadline:g} s")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        printed = output.read_text(encoding="utf-8", errors="backslashreplace")
    if ended_by is not None and ended_by.reason is Reason.CRASHED:
        last = [line for line in printed.splitlines() if line.strip() and not line.startswith("=")]
        ended_by = replace(ended_by, detail=f"{ended_by.detail}: {last[-1]}" if last else ended_by.detail)
    return printed, ended_by
