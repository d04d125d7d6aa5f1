"""Executes runs and turns each into a result: a time and counters, or a failure with its reason."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from .. import imb_output
from ..counters import ReportError, counters_of, find_report
from ..process import attempt, shell_line
from ..rounds import Run
from .launch import mpirun_command


@dataclass
class Result:
    run: Run
    command: str
    seconds: float
    time_usec: Optional[float] = None
    repetitions: Optional[int] = None
    counters: Optional[dict] = None
    failure: Optional[str] = None
    warnings: list = field(default_factory=list)
    output_tail: str = ""


class Runner:
    """Runs one after the other, with a directory for the files that the benchmark reads."""

    def __init__(self, launch, timeout_seconds):
        self._launch = launch
        self._timeout_seconds = timeout_seconds
        self._directory = tempfile.TemporaryDirectory(prefix="velo-compare-")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._directory.cleanup()

    def execute(self, run):
        command = mpirun_command(self._launch, run.case, run.setup, self._lengths_file(run.case.size_bytes))
        result = Result(run, shell_line(command), 0.0)
        finished, failure = attempt(command, self._timeout_seconds)
        result.seconds = finished.seconds
        result.failure = failure or _read_times(finished.stdout, result)
        if result.failure:
            result.output_tail = finished.tail()
        else:
            _read_counters(finished.stdout + finished.stderr, result)
        return result

    def _lengths_file(self, size_bytes):
        path = Path(self._directory.name) / f"lengths-{size_bytes}"
        if size_bytes is not None and not path.exists():
            path.write_text(f"{size_bytes}\n")
        return path


def _read_times(stdout, result):
    """Takes the time from the output; returns a failure or None."""
    case = result.run.case
    output = imb_output.parse(stdout)
    section = output.section(case.benchmark)
    if section is None:
        return f"no section for {case.benchmark} in the output"
    row = section.row(case.size_bytes)
    if row is None or row.time_usec is None:
        return "no time in the output" + (f": {section.notices[0]}" if section.notices else "")
    if not output.finished:
        return "the output ends early"
    if row.defects:
        return f"data check: {row.defects} defects"
    result.time_usec = row.time_usec
    result.repetitions = row.repetitions
    return None


def _read_counters(text, result):
    try:
        report = find_report(text)
    except ReportError as error:
        result.warnings.append(str(error))
        return
    if report is not None:
        result.counters = counters_of(report)
