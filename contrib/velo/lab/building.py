"""Workloads and points that several experiments have in common."""

from .. import policies
from ..plugin import Unavailable
from .experiment import Plan
from .measurement import BENCH, MEASURE, REFERENCE, Point, Workload
from .runner import POINTS

# Thesis, chapter 5: a message of 2 KB with its header takes 37 packets.
MESSAGE_BYTES, MESSAGE_PACKETS = 2048, 37


def alltoall(context, active=None, name="alltoall", size_bytes=MESSAGE_BYTES, ranks=None):
    ranks = ranks or context.ranks
    words = (POINTS, "Pairwise", "--bytes", str(size_bytes), "--active", str(active or ranks), "--seconds", f"{context.seconds:g}",
             "--repetitions", "2000")
    return Workload(name, MEASURE, words, ranks, size_bytes=size_bytes)


# Of an alltoall that is counted and not timed: 8 and 16 ranks show what more do, on any number of cores.
COUNTED_CALLS, QUICK_COUNTED_CALLS = 100, 30
# Messages that are delayed now and then whatever the mailbox is: when it is full by chance, or at the start.
FEW_PERCENT = 1.0


def counted(context, name, ranks, active=None, groups=1, size_bytes=MESSAGE_BYTES, benchmark="Alltoall"):
    """So many calls, each after a barrier, of `groups` at the same time: delayed messages and credit packets are counts that
    depend neither on the scheduler nor on the time that a call takes. A root moves with each call."""
    words = (POINTS, benchmark, "--bytes", str(size_bytes), "--active", str(active or ranks), "--groups", str(groups), "--hold", "1",
             "--calls", str(context.choose(COUNTED_CALLS, QUICK_COUNTED_CALLS)))
    return Workload(name, MEASURE, words, ranks, size_bytes=size_bytes)


def bench(context, benchmark, name=None, size_bytes=MESSAGE_BYTES, repetitions=None, ranks=None, calls=None, pinned=False):
    """A benchmark of the IMB; Multi-: as many pairs at once as there are ranks for. `repetitions` and megabytes at most, as
    for its -iter; `calls`: exactly so many, for counts."""
    multi, ranks = benchmark.startswith("Multi-"), ranks or context.ranks
    words = [benchmark.removeprefix("Multi-")] + (["-multi", "0", "-npmin", "2"] if multi else ["-npmin", str(ranks)])
    words += (["-iter", str(calls), "-iter_policy", "off"] if calls else
              ["-iter", repetitions or ("10000" if multi else "1000"), "-time", f"{context.seconds:g}"])
    return Workload(name or benchmark, BENCH, tuple(words), ranks, benchmark, size_bytes, pinned)


def ping_pong(context):
    return bench(context, "Multi-PingPong", "multi-ping-pong")


def in_packets(context):
    """All data in packets, as the papers have it."""
    return (("by_reference", "never"),) if context.plugin.offers("by_reference") else ()


def thesis_format(context, piggyback):
    """Packets as in the thesis: all data in them, a header in each, credit packets at once; and credits with data, or not."""
    pairs = [("piggyback", "1" if piggyback else "0")] if context.plugin.offers("piggyback") else []
    if context.plugin.offers("packet_trains"):
        pairs.append(("packet_trains", "0"))
    if context.plugin.offers("delay_credits"):
        pairs.append(("delay_credits", "0"))
    return (*pairs, *in_packets(context))


def reference(context, common=(), slots=None, x=None):
    """No flow control, and a mailbox that never gets full."""
    pairs = (("slots_per_peer", slots or context.reference_slots), *common)
    return Point(REFERENCE, "none", x, policies.mca(pairs), is_reference=True)


def point(context, policy, slots, common=(), series=None, credit_slots=2, x=None, ranks=None):
    own = policies.parameters(policy, slots, ranks or context.ranks, credit_slots)
    return Point(series or policy, policy, slots if x is None else x, policies.mca((*own, *common)))


def chosen_policies(context, default):
    """The policies to run, and in words those that the plugin does not have."""
    wanted = context.policies or default
    missing = context.plugin.missing_policies(wanted)
    present = tuple(policy for policy in wanted if policy not in missing)
    skipped = [f"policy {policy}: this plugin offers {', '.join(context.plugin.policies)}" for policy in missing]
    if not present:
        raise Unavailable("; ".join(skipped))
    return present, skipped


def chosen_slots(context, full, quick):
    return tuple(context.slots or context.choose(full, quick))


def plan(points_of, panels, skipped=()):
    return Plan(points_of, list(panels), list(skipped))
