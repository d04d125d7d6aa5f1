"""What is to be run, and in which order."""

from dataclasses import dataclass
from typing import Optional

DEFAULT_POLICIES = ("static", "dynamic")
ALL = "all"
# Values of btl_velo_by_reference.
BY_REFERENCE = ("never", "auto", "always")
DEFAULT_BY_REFERENCE = ("never", "auto")

SUITE = (
    "Multi-PingPong",
    "Multi-PingPing",
    "Sendrecv",
    "Exchange",
    "Alltoall",
    "Alltoallv",
    "Allgather",
    "Allgatherv",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Bcast",
    "Reduce",
    "Allreduce",
    "Reduce_scatter",
)
QUICK_SUITE = ("Multi-PingPong", "Exchange", "Alltoall", "Allreduce")

# IMB runs these on pairs of processes; "Multi-" runs as many pairs at once as there are processes for.
SINGLE_TRANSFER = ("PingPong", "PingPing")
OTHERS = tuple(name for name in SUITE if not name.startswith("Multi-")) + ("Uniband", "Biband", "Barrier")
KNOWN = SINGLE_TRANSFER + tuple(f"Multi-{name}" for name in SINGLE_TRANSFER) + OTHERS


@dataclass(frozen=True)
class Setup:
    """A flow-control policy, its number of mailbox slots for each peer, and what goes by reference."""

    policy: str
    slots: int
    by_reference: str


@dataclass(frozen=True)
class Chosen:
    """What the user wants to see beside each other."""

    policies: tuple
    slots: tuple
    by_reference: tuple

    @property
    def series(self):
        """A curve over the slots for each of these."""
        return [(policy, mode) for policy in self.policies for mode in self.by_reference]


@dataclass(frozen=True)
class Case:
    """A benchmark at one message size; Barrier has no size."""

    benchmark: str
    size_bytes: Optional[int]


def reference(slots):
    """No flow control, many slots, all data in packets."""
    return Setup("none", slots, "never")


def setups(chosen, reference):
    """Every policy with every number of slots and each way by reference, and what they are held against."""
    wanted = [Setup(policy, count, mode) for count in chosen.slots for policy, mode in chosen.series]
    return wanted if reference in wanted else [reference] + wanted


def cases(benchmarks, sizes):
    return [
        Case(benchmark, size)
        for benchmark in benchmarks
        for size in ([None] if benchmark == "Barrier" else sizes)
    ]
