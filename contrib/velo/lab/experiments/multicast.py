"""Broadcasts between nodes by multicast, beside trees of messages: the slides' statements that nodes on one machine can show."""

import os
import pathlib

from ...plugin import Unavailable
from .. import building
from ..contestants import MULTICAST, TREE
from ..experiment import Experiment, Panel
from ..judging import because, numbers, verdict
from ..measurement import MEASURE, Launch, Point, Workload
from ..runner import POINTS

KIB = 1024
_SLIDES_GAIN = 112.0  # percent, throughput of co-roots with an acknowledgement for every 10th
_SLIDES_LESS = 58.0  # percent, of the latency at best


def _found(context):
    """Contestants by name, who is missing, and how many nodes there are."""
    try:
        nodes = len((pathlib.Path(os.environ["VELO_NODES"]) / "hostfile").read_text(encoding="utf-8").split("\n")) - 1
    except (KeyError, OSError):
        raise Unavailable("it needs nodes: contrib/nodes run -n 8 --slots 1 -- velo-measure papers run multicast") from None
    found, missing = context.network()
    if MULTICAST not in found or TREE not in found or nodes < 2:
        raise Unavailable("; ".join(missing) or "there is one node alone")
    return found, missing, nodes


def _workloads(context, name, counts, sizes, *words):
    found, missing, _ = _found(context)
    points_of = {}
    for size in sizes:
        for count in counts:
            arguments = (POINTS, "bcast", *words, "--bytes", str(size), "--seconds", f"{context.seconds:g}")
            points_of[Workload(f"{name} {size}", MEASURE, (), count)] = [
                Point(series, series, count, launch=Launch(contestant, MEASURE, arguments)) for series, contestant in found.items()]
    panels = [Panel(f"{name}, {size} bytes", f"{name} {size}", "time_usec", "us", "nodes") for size in sizes]
    return building.plan(points_of, panels, missing)


def _curve(results, name, size, series):
    return results.curve(f"{name} {size}", series, "time_usec")


def _texts(context, **curves):
    return because(*(f"{name}: {numbers(curve, ' us', 1)}" for name, curve in curves.items() if curve),
                   context.crowded(max((x for curve in curves.values() for x in curve), default=0)))


# --- S1

_LATENCY = "roots in turn"


def _plan_latency(context):
    nodes = _found(context)[2]
    counts = [count for count in (2, 4, 8, 16, 32) if count < nodes] + [nodes]
    return _workloads(context, _LATENCY, counts, context.choose((8, 2 * KIB, 16 * KIB), (8,)), "--hold", "1")


def _judge_latency(results, context):
    own, tree = (_curve(results, _LATENCY, 8, series) for series in (MULTICAST, TREE))
    text = _texts(context, **{MULTICAST: own, TREE: tree})
    both = sorted(own.keys() & tree.keys())
    first, last = (both[0], both[-1]) if len(both) > 1 else (None, None)
    return [
        verdict("Messages along a tree take log2(n) hops, a multicast one: with more nodes its time grows less (Broadcast Latency Test).",
                None if first is None else own[last] / own[first] < tree[last] / tree[first], text),
        verdict(f"With all nodes a small broadcast takes less time by multicast; up to {_SLIDES_LESS:g} % less.",
                None if last is None else own[last] < tree[last], text),
    ]


# --- S2

_STREAM = "one root"


def _plan_stream(context):
    return _workloads(context, _STREAM, (_found(context)[2],), context.choose((8, KIB, 4 * KIB, 16 * KIB, 64 * KIB), (8,)))


def _judge_stream(results, context):
    ratios = {}
    for size in (8, KIB, 4 * KIB, 16 * KIB, 64 * KIB):
        own, tree = (_curve(results, _STREAM, size, series) for series in (MULTICAST, TREE))
        ratios |= {size: 100.0 * (tree[x] / own[x] - 1) for x in own.keys() & tree.keys()}
    text = because(f"more broadcasts for each second, by bytes: {numbers(ratios)}" if ratios else "not measured",
                   context.crowded(max((line.ranks for line in results.lines), default=0)))
    return [
        verdict("A root that returns before anybody has acknowledged sends more broadcasts than one that sends messages along a tree "
                "(Sliding Window at Root).", all(value > 0 for value in ratios.values()) if ratios else None, text),
        verdict(f"By {_SLIDES_GAIN:g} % with an acknowledgement for every 10th, for some size.",
                max(ratios.values()) >= _SLIDES_GAIN if ratios else None, text),
    ]


_COMPARED = "contestants take turns"
EXPERIMENTS = (
    Experiment("S1", "Broadcasts by the number of nodes", "Liu, Mamidala, Panda: Broadcast Latency Test",
               "Each broadcast has the next rank as its root, which has to have got the one before: latency by nodes, by multicast, along a tree of "
               "messages and by Open MPI's own.", _plan_latency, _judge_latency, compared=_COMPARED),
    Experiment("S2", "Broadcasts in a row from one root", "Liu, Mamidala, Panda: Broadcast Throughput Test",
               "One root does not wait: the sliding window with acknowledgements for every 10th datagram by co-roots.",
               _plan_stream, _judge_stream, compared=_COMPARED),
)
