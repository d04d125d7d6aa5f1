"""What velo-mpi-bench phases prints: when each phase of the program began and ended."""

import dataclasses
import re

from .errors import TraceError

_PHASE = re.compile(r"^phase \d+ ranks (\d+) executions (\d+) begin_ns (\d+) end_ns (\d+) slowest_us ([\d.]+) defects (\d+)$",
                    re.MULTILINE)
_MARK = re.compile(r"^mark (\d+) (\d+)$", re.MULTILINE)
_END = re.compile(r"^end$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Phase:
    """Times are CLOCK_MONOTONIC of the host of rank 0. `slowest_us`: an execution, as the slowest rank saw it."""

    ranks: int
    executions: int
    begin_ns: int
    end_ns: int
    slowest_us: float
    defects: int


@dataclasses.dataclass(frozen=True)
class Output:
    phases: list
    marks: list  # (executions so far, time in ns)
    complete: bool


def parse(text):
    phases = [Phase(*map(int, match.groups()[:4]), float(match[5]), int(match[6])) for match in _PHASE.finditer(text)]
    marks = [(int(match[1]), int(match[2])) for match in _MARK.finditer(text)]
    return Output(phases, marks, _END.search(text) is not None)


def read_phases(path):
    """The phases in the output of velo-mpi-bench phases."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    if phases := parse(text).phases:
        return phases
    raise TraceError(f"{path}: has no line of the form \"phase 0 ranks 8 executions 100 begin_ns 1 end_ns 2 slowest_us 3.0 "
                     "defects 0\"; give what velo-mpi-bench phases printed")
