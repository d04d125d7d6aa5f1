"""Runs that take turns, so that a drift of the machine meets all of them."""

from dataclasses import dataclass
from typing import Any


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
