"""What is to be run, and in which order."""

from dataclasses import dataclass
from typing import Optional

DEFAULT_POLICIES = ("none", "static", "dynamic")
ALL = "all"

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
    """A flow-control policy and its number of mailbox slots for each peer."""

    policy: str
    slots: int


@dataclass(frozen=True)
class Case:
    """A benchmark at one message size; Barrier has no size."""

    benchmark: str
    size_bytes: Optional[int]


def setups(policies, slots, reference_slots):
    """Every policy with every number of slots, and the reference: no flow control, many slots."""
    wanted = [Setup(policy, count) for count in slots for policy in policies]
    reference = Setup("none", reference_slots)
    return wanted if reference in wanted else [reference] + wanted


def cases(benchmarks, sizes):
    return [
        Case(benchmark, size)
        for benchmark in benchmarks
        for size in ([None] if benchmark == "Barrier" else sizes)
    ]
