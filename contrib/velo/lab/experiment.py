"""What an experiment is: what it runs, what it plots, which statements of a paper it is held against."""

from dataclasses import dataclass, field
from typing import Callable, Optional

SHOWN, NOT_SHOWN, OPEN = "shown", "not shown", "cannot be judged"
# Whose the bound is: the paper's (a number that it gives, or a direction, which needs none), or ours for a word such as
# "similar" or "close", chosen in the knowledge of results.
PREDICTED, FITTED = "predicted", "fitted"


@dataclass(frozen=True)
class Context:
    """How experiments are run this time."""

    plugin: object
    ranks: int
    cores: int
    quick: bool = False
    policies: Optional[tuple] = None  # None: those of the experiment
    slots: Optional[tuple] = None
    reference_slots: int = 512
    seconds: float = 0.5
    directory: object = None  # for traces
    contestants: Callable = lambda: ({}, [])  # by name, and in words who is missing: see contestants.py
    npb: Optional[str] = None  # directory of the NAS Parallel Benchmarks
    network: Callable = lambda: ({}, [])  # those between nodes
    by_node: Callable = lambda: ({}, [])  # with ranks that fill a node before the next

    def choose(self, full, quick):
        return quick if self.quick else full

    def crowded(self, ranks=None):
        """Why figures of more ranks than cores differ from a cluster's; empty where each rank has a core."""
        ranks = ranks or self.ranks
        if ranks <= self.cores:
            return ""
        return (f"{ranks} ranks share {self.cores} cores: whoever waits for credits waits for a turn of the scheduler, "
                "not for a network")


@dataclass(frozen=True)
class Verdict:
    statement: str
    status: str
    because: str
    kind: str = PREDICTED

    def text(self):
        return f"{self.statement} {self.status.upper()} here ({self.kind}): {self.because}"


@dataclass(frozen=True)
class Panel:
    title: str
    workload: Optional[str]
    key: str  # of Line
    y_label: str
    x_label: str = "slots per peer"
    overhead_scale: bool = False
    x_log: bool = True
    series: Optional[tuple] = None  # None: all of the workload
    # Where a line stands across the x axis: the paper's figures.
    landmarks: tuple = ()


@dataclass
class Plan:
    points_of: dict  # points by workload, the reference first
    panels: list
    skipped: list = field(default_factory=list)  # what the plugin cannot do, in words


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    source: str  # section and figures of the paper
    statement: str
    plan: Callable  # of a Context; raises plugin.Unavailable
    judge: Callable  # of the Results and the Context: verdicts
    draw: Optional[Callable] = None  # further panels: (title, function of a matplotlib axes and the Results) pairs
    finish: Optional[Callable] = None  # of the Results and the Context: further files
    least_rounds: int = 1  # of which fewer mean nothing, unless the user says so
    compared: Optional[str] = None  # with whom, in words; None: as overheads are


@dataclass
class Results:
    lines: list
    outcomes: list

    def curve(self, workload, series, key="overhead_percent"):
        """Values by x, where there are any."""
        found = {line.x: line.value(key) for line in self.lines
                 if line.workload == workload and line.series == series and line.x is not None}
        return {x: found[x] for x in sorted(found) if found[x] is not None}

    def reference(self, workload):
        return next((line for line in self.lines if line.workload == workload and line.is_reference), None)
