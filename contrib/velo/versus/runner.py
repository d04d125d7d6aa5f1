"""Runs contestants on cases; a failure costs the contestant that case, and nobody else anything."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from .. import measuring
from ..process import attempt, shell_line
from ..rounds import Run
from . import distance
from .contestants import Contestant
from .patterns import BY_NAME, MPI, Case

# Of the time for a size, for the line beside it.
_LINE_SHARE = 0.2
# In contrib/ as in share/velo.
_TIME_IN_MPI = Path(__file__).resolve().parents[2] / "versus" / "time_in_mpi.c"


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
    share_percent: Optional[float] = None  # of a program's time: in MPI
    failure: Optional[str] = None
    failed_at: Optional[int] = None  # size
    output_tail: str = ""

    def distance(self, size):
        return distance.of_block(self.lines.get(size))


def execute(run, how):
    """`how` has the compiler, point_ms, window and timeout, and for programs whom `probe` asks how far apart the processors are, and
    what was `seen` last."""
    contestant, case = run.setup, run.case
    if case.pattern.program:
        return _execute_program(run, how)
    arguments = [*case.pattern.arguments(), "--bytes", ",".join(map(str, case.sizes)), "--seconds", how.point_ms / 1e3, "--window",
                 how.window, "--one-buffer", 1]
    if case.ranks == 2:
        arguments += ["--line", how.point_ms / 1e3 * _LINE_SHARE]
    command = contestant.command(case.ranks, [how.compiler.program(contestant.mpicc), *arguments])
    result = Result(contestant, case, run.round, shell_line(command))
    finished, result.failure = attempt(command, how.timeout)
    result.seconds = finished.seconds
    _read(finished, result)
    return result


def _execute_program(run, how):
    contestant, case = run.setup, run.case
    library = how.compiler.preloaded(contestant.mpicc, _TIME_IN_MPI)
    words = [word.replace(MPI, contestant.mpi) for word in case.pattern.program]
    command = contestant.command(case.ranks, ["env", f"LD_PRELOAD={library}", *words])
    result = Result(contestant, case, run.round, shell_line(command))
    finished, result.failure, ends = beside_the_line(lambda: attempt(command, how.timeout), how, case.ranks)
    result.seconds = finished.seconds
    times = [tuple(map(float, found)) for found in re.findall(r"^velo-time (\S+) (\S+)$", finished.stdout + "\n" + finished.stderr, re.MULTILINE)]
    if result.failure is None and len(times) != case.ranks:
        result.failure = f"{len(times)} of {case.ranks} ranks have told their time"
    if result.failure:
        result.output_tail = finished.tail()
        return result
    slowest = 1e6 * max(total for total, _ in times)
    result.times[0] = measuring.Point(slowest, slowest, slowest, 1, 1, 0, 0, 0.0)
    result.share_percent = 100.0 * sum(inside for _, inside in times) / sum(total for total, _ in times)
    if ends:
        result.lines[0] = ends
    return result


def beside_the_line(perform, how, ranks=2):
    """What the perform() of a program has returned, and the line before and after it, or None."""
    before, how.seen = how.seen or _probe(how) if ranks == 2 else None, None
    finished, failure = perform()
    how.seen = _probe(how) if before and failure is None else None  # what the next program begins with
    return finished, failure, (before[1], how.seen[0]) if how.seen else None


def _probe(how):
    """What the measuring program tells of the distance between the processors; it runs only a moment."""
    size = 8
    trial = execute(Run(Case(2, BY_NAME["pingpong"], (size,)), how.probe, 0), how)
    return trial.lines.get(size)


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
