"""What the credits cost where they never run out: dynamic against none in pairs of runs, on two ranks."""

import dataclasses
import statistics

from ...policies import mca
from .. import building
from ..experiment import Experiment, Panel
from ..judging import because, verdict
from ..measurement import REFERENCE, Point

_RANKS, _SLOTS = 2, 64
_LEAST_PAIRS = 15
_MOST_PERCENT = 2.0
# Until the time of a run is over.
_REPETITIONS = "1000000,8192"
_BENCHMARKS, _SIZES = ("PingPong", "Alltoall"), (8, 1024, 2048)


def _plan(context):
    chosen, skipped = building.chosen_policies(context, ("dynamic",))
    slots = (context.slots or (_SLOTS,))[0]
    # What goes by reference needs no credits to speak of.
    fixed = building.in_packets(context)
    points = [Point(REFERENCE, "none", None, mca((("slots_per_peer", slots), *fixed)), is_reference=True)]
    points += [building.point(context, policy, slots, fixed, x=slots, ranks=_RANKS) for policy in chosen]
    context = dataclasses.replace(context, ranks=_RANKS)
    workloads = [
        dataclasses.replace(building.bench(context, name, f"{name}, {size} bytes", size, _REPETITIONS), benchmark=name, pinned=True)
        for name in _BENCHMARKS for size in context.choose(_SIZES, _SIZES[:1])]
    panels = [Panel(w.name, w.name, "overhead_percent", "overhead %") for w in workloads]
    return building.plan({workload: points for workload in workloads}, panels, skipped)


def ratios(results, workload, policy):
    """Time by time of the reference in the same round, round by round."""
    times = {}
    for outcome in results.outcomes:
        if outcome.workload.name == workload and outcome.failure is None:
            name = "" if outcome.point.is_reference else outcome.point.policy
            times.setdefault(outcome.round, {})[name] = outcome.time_usec
    return [of[policy] / of[""] for of in times.values() if {policy, ""} <= of.keys()]


def _overhead(values):
    """Median, and the quartiles about it, in percent."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return tuple(100.0 * (value - 1.0) for value in (middle, low, high))


def _judge(results, context):
    policies = dict.fromkeys(line.policy for line in results.lines if not line.is_reference)
    return [_judge_policy(results, policy) for policy in policies]


def _judge_policy(results, policy):
    statement = f"Credits that never run out cost below {_MOST_PERCENT:g} %: {policy} against none with as many slots, in pairs."
    names = dict.fromkeys(line.workload for line in results.lines)
    pairs = {name: found for name in names if len(found := ratios(results, name, policy)) > 1}
    seen = {name: _overhead(found) for name, found in pairs.items()}
    text = "; ".join(f"{name}: {middle:+.1f} % (quartiles {low:+.1f}, {high:+.1f}; {len(pairs[name])} pairs)"
                     for name, (middle, low, high) in seen.items())
    enough = seen.keys() == names.keys() and min(map(len, pairs.values())) >= _LEAST_PAIRS
    shown = all(middle < _MOST_PERCENT for middle, _, _ in seen.values()) if enough else None
    return verdict(statement, shown, because(f"median of the ratios, {text or 'not measured'}",
                                             "" if enough else f"fewer than {_LEAST_PAIRS} pairs of each"))


EXPERIMENT = Experiment(
    "paired", "What credits cost when they never run out", "demand on Velo",
    "On two ranks with a core each and 64 slots per peer, the dynamic flow control takes at most 2 % longer than none in ping-pong "
    "and Alltoall. Runs are compared in pairs that follow each other directly; the median of at least 15 ratios counts.",
    _plan, _judge, least_rounds=_LEAST_PAIRS)
