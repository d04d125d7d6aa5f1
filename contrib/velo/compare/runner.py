"""Executes runs and turns each into a result: a time and counters, or a failure with its reason."""

from dataclasses import dataclass, field
from typing import Optional

from .. import imb_output, rounds
from ..counters import ReportError, counters_of, find_report
from .launch import mpirun_command


@dataclass
class Result:
    run: rounds.Run
    command: str = ""
    seconds: float = 0.0
    time_usec: Optional[float] = None
    repetitions: Optional[int] = None
    counters: Optional[dict] = None
    failure: Optional[str] = None
    warnings: list = field(default_factory=list)
    output_tail: str = ""


class Runner(rounds.Runner):
    def __init__(self, launch, timeout_seconds):
        super().__init__(timeout_seconds)
        self._launch = launch

    def execute(self, run):
        return self._carry_out(mpirun_command(self._launch, run.case, run.setup, self._lengths(run.case.size_bytes)), Result(run), _read)


def _read(finished, result):
    row, failure = imb_output.read_row(finished.stdout, result.run.case.benchmark, result.run.case.size_bytes)
    if failure is None:
        result.time_usec, result.repetitions = row.time_usec, row.repetitions
        _read_counters(finished.stdout + finished.stderr, result)
    return failure


def _read_counters(text, result):
    try:
        report = find_report(text)
    except ReportError as error:
        result.warnings.append(str(error))
        return
    if report is not None:
        result.counters = counters_of(report)
