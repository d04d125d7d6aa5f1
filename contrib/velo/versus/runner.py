"""Runs contestants on cases; a failure costs the contestant that case, and nobody else anything."""

from dataclasses import dataclass, field
from typing import Optional

from .. import measuring
from ..process import attempt, shell_line
from . import distance
from .contestants import Contestant
from .patterns import Case

# Of the time for a size, for the line beside it.
_LINE_SHARE = 0.2


@dataclass
class Result:
    contestant: Contestant
    case: Case
    round: int
    command: str
    seconds: float = 0.0
    times: dict = field(default_factory=dict)  # Point by size, right ones alone
    lines: dict = field(default_factory=dict)  # before and after a size, (microseconds of a cache line that the two ranks bounce, slowdown)
    library: Optional[str] = None
    failure: Optional[str] = None
    failed_at: Optional[int] = None  # size
    output_tail: str = ""

    def distance(self, size):
        return distance.of_block(self.lines.get(size))


def execute(run, how):
    """`how` has the compiler, point_ms, window and timeout."""
    contestant, case = run.setup, run.case
    arguments = ["points", case.pattern.name, "--bytes", ",".join(map(str, case.sizes)), "--seconds", how.point_ms / 1e3, "--window",
                 how.window, "--one-buffer", 1]
    if case.ranks == 2:
        arguments += ["--line", how.point_ms / 1e3 * _LINE_SHARE]
    command = contestant.command(case.ranks, [how.compiler.program(contestant.mpicc), *arguments])
    result = Result(contestant, case, run.round, shell_line(command))
    finished, result.failure = attempt(command, how.timeout)
    result.seconds = finished.seconds
    _read(finished, result)
    return result


def _read(finished, result):
    output = measuring.parse(finished.stdout)
    result.library, result.lines = output.library, output.lines
    result.times = {size: time for size, time in output.points.items() if time.defects == 0}
    missing = [size for size in result.case.sizes if size not in result.times]
    wrong = next((time.defects for time in output.points.values() if time.defects), None)
    if result.failure is None and wrong:
        result.failure = f"data check: {wrong} defects"
    if result.failure is None and (missing or not output.complete):
        result.failure = "the output ends early"
    if result.failure:
        result.failed_at = missing[0] if missing else None
        result.output_tail = finished.tail()
