"""What velo-phases prints: when each phase of the program began and ended."""

import dataclasses
import re

from .reader import TraceError

_LINE = re.compile(r"^phase (\d+) ranks (\d+) executions (\d+) begin_ns (\d+) end_ns (\d+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Phase:
    """Times are CLOCK_MONOTONIC of the host of rank 0."""

    ranks: int
    executions: int
    begin_ns: int
    end_ns: int


def read_phases(path):
    """The phases in the output of velo-phases."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    phases = [Phase(*map(int, match.groups()[1:])) for match in _LINE.finditer(text)]
    if not phases:
        raise TraceError(f"{path}: has no line of the form \"phase 0 ranks 8 executions 100 begin_ns 1 end_ns 2\"; give what "
                         "velo-phases printed")
    return phases
