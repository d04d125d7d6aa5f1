"""What is measured: workloads, setups, points, and the lines that come of them."""

import statistics
from dataclasses import dataclass, field
from typing import Optional

from ..compare.summary import overhead_percent
from ..counters import medians
from ..rounds import interleaved

REFERENCE = "none, large mailbox"
# A workload's program: the measuring program, whose first word is its mode, a benchmark like the IMB's, velo-goal with its subcommands,
# one of the user's, whose path is the first word, and velo-sim, which needs no mpirun.
MEASURE, BENCH, GOAL, PROGRAM, SIMULATED = "measure", "bench", "goal", "program", "sim"


@dataclass(frozen=True)
class Workload:
    """A program on a number of ranks. `words` follow the name of the program."""

    name: str
    program: str
    words: tuple
    ranks: int
    benchmark: Optional[str] = None  # its section in the output of velo-mpi-bench
    size_bytes: Optional[int] = 2048
    pinned: bool = False  # a core for each rank, where there are as many
    once: bool = False  # in one round: counts, which are the same in each
    patience: int = 1  # times the time limit of a run


@dataclass(frozen=True)
class Launch:
    """How a run is started that is not one of the BTL under some policy."""

    contestant: object  # of versus.contestants
    program: str  # as of Workload
    words: tuple
    mca: tuple = ()


@dataclass(frozen=True)
class Point:
    """A place on a curve: how a workload is run."""

    series: str
    policy: str
    x: Optional[float]
    mca: tuple = ()  # (name, value) pairs beside the policy
    is_reference: bool = False
    launch: Optional[Launch] = None


@dataclass
class Outcome:
    """One run."""

    workload: Workload
    point: Point
    round: int
    command: str = ""
    seconds: float = 0.0
    time_usec: Optional[float] = None
    spread_percent: Optional[float] = None  # of the batches within the run
    mbytes_per_second: Optional[float] = None
    messages: int = 0  # of the pattern
    counted: Optional[tuple] = None  # messages of counted calls, and those that waited
    counters: dict = field(default_factory=dict)
    phases: list = field(default_factory=list)
    marks: list = field(default_factory=list)
    failure: Optional[str] = None
    output_tail: str = ""


@dataclass
class Line:
    """A point after all rounds. What was not measured is None."""

    workload: str
    series: str
    policy: str
    x: Optional[float]
    is_reference: bool
    ranks: int
    rounds: int
    time_usec: Optional[float] = None
    time_min_usec: Optional[float] = None
    time_max_usec: Optional[float] = None
    spread_percent: Optional[float] = None
    overhead_percent: Optional[float] = None
    mbytes_per_second: Optional[float] = None
    counters: dict = field(default_factory=dict)

    def value(self, key):
        return getattr(self, key) if hasattr(self, key) else self.counters.get(key)


def schedule(points_of, rounds):
    """All runs, round after round. `points_of`: points by workload; those of a workload take turns. Some run once."""
    runs = [run for workload, points in points_of.items()
            for run in interleaved([workload], points, 1 if workload.once else rounds)]
    return sorted(runs, key=lambda run: run.round)


def lines(points_of, outcomes):
    result = []
    for workload, points in points_of.items():
        block = [_line(workload, point, outcomes) for point in points]
        base = next((line.time_usec for line in block if line.is_reference), None)
        for line in block:
            line.overhead_percent = overhead_percent(line.time_usec, base)
        result += block
    return result


def _line(workload, point, outcomes):
    good = [o for o in outcomes if (o.workload, o.point) == (workload, point) and o.failure is None]
    line = Line(workload.name, point.series, point.policy, point.x, point.is_reference, workload.ranks, len(good))
    if not good:
        return line
    times = [outcome.time_usec for outcome in good]
    line.time_usec = statistics.median(times)
    line.time_min_usec, line.time_max_usec = min(times), max(times)
    spreads = [outcome.spread_percent for outcome in good if outcome.spread_percent is not None]
    line.spread_percent = statistics.median(spreads) if spreads else None
    if good[0].mbytes_per_second:
        line.mbytes_per_second = statistics.median(outcome.mbytes_per_second for outcome in good)
    line.counters = medians([outcome.counters for outcome in good if outcome.counters])
    return line
