"""Runs that take turns, so that a drift of the machine meets all of them."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .process import attempt, shell_line
from .progress import Progress


@dataclass(frozen=True)
class Run:
    case: Any  # what is measured
    setup: Any  # who takes part, or how
    round: int


def interleaved(cases, setups, rounds):
    """All runs. Each round starts with another setup, so that none always follows the same one."""
    return [Run(case, setup, number) for number in range(rounds) for case in cases
            for setup in setups[number % len(setups):] + setups[:number % len(setups)]]


def perform(runs, execute, label, failure_text, progress):
    """Yields the results. What failed once is not tried again in a later round: a hang costs its whole time limit."""
    broken = set()
    for run in runs:
        progress.starting(label(run))
        if (run.case, run.setup) not in broken:
            result = execute(run)
            if result.failure:
                broken.add((run.case, run.setup))
                progress.message(failure_text(result))
            yield result


def perform_all(name, runs, execute, label, failure_text):
    """The results, with warnings as they come, and whether all runs took place: an interrupt keeps what there is."""
    results, progress = [], Progress(len(runs))
    try:
        for result in perform(runs, execute, label, failure_text, progress):
            results.append(result)
            for warning in getattr(result, "warnings", ()):
                progress.message(f"{name}: {warning}\n  {result.command}")
    except KeyboardInterrupt:
        progress.message(f"{name}: interrupted after {len(results)} of {len(runs)} runs")
        return results, False
    progress.finish()
    return results, True


class Runner:
    """Runs one after the other, with a directory for the files that a benchmark reads."""

    def __init__(self, timeout_seconds):
        self._timeout_seconds = timeout_seconds
        self._directory = tempfile.TemporaryDirectory(prefix="velo-runs-")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._directory.cleanup()

    def _carry_out(self, command, result, read, patience=1):
        """Fills in the result: `read` takes what it wants of what has ended, and returns a failure or None. `patience`: so many times the
        time limit."""
        result.command = shell_line(command)
        finished, failure = attempt(command, patience * self._timeout_seconds)
        result.seconds = finished.seconds
        result.failure = failure or read(finished, result)
        if result.failure:
            result.output_tail = finished.tail()
        return result

    def _lengths(self, size_bytes):
        """Words that have an IMB benchmark measure one size."""
        if size_bytes is None:
            return []
        path = Path(self._directory.name) / f"lengths-{size_bytes}"
        path.write_text(f"{size_bytes}\n", encoding="ascii")
        return ["-msglen", str(path)]
