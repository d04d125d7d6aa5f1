"""Runs contestants on cases; a failure costs the contestant that case, and nobody else anything."""

from dataclasses import dataclass, field
from typing import Optional

from velo_compare.command import environment, shell_line
from velo_compare.process import run_limited

from . import program
from .contestants import Contestant
from .patterns import Case


@dataclass
class Result:
    contestant: Contestant
    case: Case
    round: int
    command: str
    seconds: float = 0.0
    times: dict = field(default_factory=dict)  # Time by size, right ones alone
    library: Optional[str] = None
    failure: Optional[str] = None
    failed_at: Optional[int] = None  # size
    output_tail: str = ""


def interleaved(cases, contestants, rounds):
    """All runs: contestants take turns on each case, and each round begins with another one."""
    for number in range(rounds):
        first = number % len(contestants)
        for case in cases:
            for contestant in contestants[first:] + contestants[:first]:
                yield contestant, case, number


def execute(contestant, case, number, how):
    """`how` has the compiler, point_ms, window and timeout."""
    arguments = [case.pattern.name, how.point_ms, how.window, *case.sizes]
    command = contestant.command(case.ranks, [how.compiler.program(contestant.mpicc), *arguments])
    result = Result(contestant, case, number, shell_line(command))
    try:
        finished = run_limited(command, environment(), how.timeout)
    except OSError as error:
        result.failure, result.failed_at = f"cannot start: {error}", case.sizes[0]
        return result
    result.seconds = finished.seconds
    _read(finished, result, how.timeout)
    return result


def _read(finished, result, timeout):
    output = program.parse(finished.stdout)
    result.library = output.library
    result.times = {size: time for size, time in output.times.items() if time.defects == 0}
    missing = [size for size in result.case.sizes if size not in result.times]
    wrong = next((time.defects for time in output.times.values() if time.defects), None)
    result.failure = finished.failure(timeout)
    if result.failure is None and wrong:
        result.failure = f"data check: {wrong} defects"
    if result.failure is None and (missing or not output.complete):
        result.failure = "the output ends early"
    if result.failure:
        result.failed_at = missing[0] if missing else None
        result.output_tail = finished.tail()
