"""Reading what compute-sanitizer prints. Its lines begin with ``=========`` and come in the order of what they are
about, between the lines of :mod:`reports.sanitizer.child` that say which case begins and ends."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

MARK = "========="
BEGINS, ENDS = "trueulp begins ", "trueulp ends "

# A message starts a finding unless it is one of these; lines that go on with it are indented.
_NO_FINDING = re.compile(
    r"COMPUTE-SANITIZER|.* SUMMARY: |This tool is deprecated|.*process didn't terminate|Program hit |Target application"
    r"|No kernels were found"
)
_KERNEL = re.compile(r"\bat (?:.*::)?(\w+)(?:\(.*\))?(?:<.*>)?(?:\(.*\))?\+0x")


@dataclass
class Findings:
    """Of one case: how many, and the first in words."""

    count: int = 0
    first: str = ""
    ended: bool = False
    answer: str = ""  # what the child had to say at its end: nothing where all went well

    @property
    def told(self) -> str:
        more = f", and {self.count - 1} more" if self.count > 1 else ""
        return f"{self.first}{more}"


@dataclass
class Log:
    """``cases`` by ID in the order in which they began; ``last`` is the one that began last. ``trouble`` is what the
    sanitizer says of itself, or found outside of any case."""

    cases: dict[str, Findings] = field(default_factory=dict)
    last: str | None = None
    trouble: list[str] = field(default_factory=list)


def read(lines: Iterable[str]) -> Log:
    """The findings of every case."""
    log, within, summed_up = Log(), None, False
    for line in lines:
        if line.startswith(BEGINS):
            log.last = line.removeprefix(BEGINS).strip()
            within = log.cases.setdefault(log.last, Findings())
        elif line.startswith(ENDS):
            if within is not None:
                _, _, within.answer = line.removeprefix(ENDS).strip().partition("\t")
                within.ended = True
            within = None
        elif line.startswith(MARK):
            summed_up = _take(log, within, line.removeprefix(MARK)) or summed_up
    if not summed_up:
        log.trouble.append("it printed no summary")
    return log


def _take(log: Log, within: Findings | None, text: str) -> bool:
    """Whether the line is the summary, the last thing that the sanitizer prints."""
    message, indented = text.strip(), text.startswith("  ")
    if " SUMMARY: " in message:
        return True
    if not message or (not indented and _NO_FINDING.match(message)):
        return False
    if not indented and within is None:
        log.trouble.append(message)
    elif not indented and within is not None:
        within.count += 1
        within.first = within.first or _with_kernel(message)
    elif within is not None and within.count == 1 and " at " not in within.first:
        within.first = _with_kernel(f"{within.first} {message}")
    return False


def _with_kernel(text: str) -> str:
    """``text`` up to the kernel's name: addresses change from run to run."""
    found = _KERNEL.search(text)
    return f"{text[: found.start()]}at {found[1]}" if found else text
