"""Collectives between nodes: broadcasts by multicast, beside trees of messages, and alltoalls of leaders: the slides' statements that nodes
on one machine can show."""

import os
import pathlib
import re

from ...plugin import Unavailable
from .. import building
from ..contestants import BY_NODE, MULTICAST, TREE
from ..experiment import FITTED, Experiment, Panel
from ..judging import because, numbers, verdict
from ..measurement import GOAL, MEASURE, Launch, Point, Workload
from ..runner import POINTS, RUN

KIB = 1024
_SLIDES_GAIN = 112.0  # percent, throughput of co-roots with an acknowledgement for every 10th
_SLIDES_LESS = 58.0  # percent, of the latency at best


def _found(context):
    """Contestants by name, who is missing, and how many nodes there are."""
    try:
        nodes = len((pathlib.Path(os.environ["VELO_NODES"]) / "hostfile").read_text(encoding="utf-8").split("\n")) - 1
    except (KeyError, OSError):
        raise Unavailable("it needs nodes: contrib/nodes run -n 8 --slots 2 -- velo-measure papers run multicast") from None
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
_BASIC, _WINDOW, _WINDOW_TENTH, _TREE_TENTH, _CO_ROOTS = "basic", "window, each", "window, every 10th", "tree of acknowledgements", "co-roots"
# Scheme, datagrams for an acknowledgement, co-roots.
_SCHEMES = {_BASIC: ("basic", 1, 0), _WINDOW: ("window", 1, 0), _WINDOW_TENTH: ("window", 10, 0), _TREE_TENTH: ("tree", 10, 0),
            _CO_ROOTS: ("coroot", 10, 2)}
_STREAM_SIZES = (8, KIB, 4 * KIB, 16 * KIB, 64 * KIB)
_WINDOW_DATAGRAMS = 64
_ALMOST = 0.95  # of one from everybody: who reads two datagrams at once acknowledges both by one
_FEWER = 0.5  # of the acknowledgements for each datagram: every 10th leaves at once, others after a time


def _plan_stream(context):
    found, missing, nodes = _found(context)
    points_of = {}
    for size in context.choose(_STREAM_SIZES, (8,)):
        arguments = (POINTS, "bcast", "--bytes", str(size), "--seconds", f"{context.seconds:g}")
        points = [Point(series, series, nodes, launch=Launch(contestant, MEASURE, arguments)) for series, contestant in found.items()
                  if series != MULTICAST]
        for series, (scheme, every, co_roots) in _SCHEMES.items():
            mca = (("coll_velo_multicast_scheme", scheme), ("coll_velo_multicast_window", _WINDOW_DATAGRAMS), ("coll_velo_multicast_ack_every", every),
                   ("coll_velo_multicast_co_roots", min(co_roots, nodes - 1)), ("btl_velo_verbose", 5))
            # A window of one takes no broadcast of several datagrams.
            if scheme != "basic" or size <= KIB:
                points.append(Point(series, series, nodes, launch=Launch(found[MULTICAST], MEASURE, arguments, mca)))
        points_of[Workload(f"{_STREAM} {size}", MEASURE, (), nodes)] = points
    panels = [Panel(f"{_STREAM}, {size} bytes", f"{_STREAM} {size}", "time_usec", "us", "nodes") for size in context.choose(_STREAM_SIZES, (8,))]
    return building.plan(points_of, panels, missing)


def _acknowledgements(results, nodes):
    """That the root has heard for each datagram of 8 bytes, by scheme."""
    heard = {}
    for series in _SCHEMES:
        counters = next((line.counters for line in results.lines if line.workload == f"{_STREAM} 8" and line.series == series), {})
        if counters.get("multicast_datagrams"):
            heard[series] = counters["multicast_acks"] / counters["multicast_datagrams"]
    return heard, because(f"{nodes} nodes; acknowledgements at the root for each datagram: " +
                          (", ".join(f"{name} {count:.2f}" for name, count in heard.items()) or "not counted"))


def _judge_stream(results, context):
    nodes = max((line.ranks for line in results.lines), default=0)
    ratios = {series: {} for series in _SCHEMES}
    for size in _STREAM_SIZES:
        tree = _curve(results, _STREAM, size, TREE)
        for series, of_series in ratios.items():
            own = _curve(results, _STREAM, size, series)
            of_series |= {size: 100.0 * (tree[x] / own[x] - 1) for x in own.keys() & tree.keys()}
    text = because("more broadcasts for each second than along a tree of messages, by bytes: " +
                   ("; ".join(f"{series}: {numbers(of_series)}" for series, of_series in ratios.items() if of_series) or "not measured"),
                   context.crowded(nodes))
    heard, counted = _acknowledgements(results, nodes)
    basic, best = ratios[_BASIC].get(8), ratios[_CO_ROOTS]
    told = heard.keys() >= _SCHEMES.keys()
    return [
        verdict("Under the basic scheme, and with a window that is acknowledged each time, the root hears of each datagram from everybody.",
                min(heard[_BASIC], heard[_WINDOW]) >= _ALMOST * (nodes - 1) if told else None, counted),
        verdict("With an acknowledgement for every 10th datagram it hears less than half of that (Reducing ACK traffic).",
                heard[_WINDOW_TENTH] < _FEWER * heard[_WINDOW] if told else None, counted, FITTED),
        verdict("A tree of acknowledgements and co-roots take them from the root (Avoiding ACK Implosion).",
                max(heard[_TREE_TENTH], heard[_CO_ROOTS]) < heard[_WINDOW_TENTH] if told and nodes > 3 else None, counted),
        verdict("The basic scheme is slower than messages along a tree.", None if basic is None else basic < 0, text),
        verdict("A root that returns before anybody has acknowledged sends more broadcasts than one that sends messages along a tree "
                "(Sliding Window at Root).", all(value > 0 for value in best.values()) if best else None, text),
        verdict(f"By {_SLIDES_GAIN:g} % with co-roots and an acknowledgement for every 10th, for some size.",
                max(best.values()) >= _SLIDES_GAIN if best else None, text),
    ]


# --- S8 and S9: an alltoall in three phases

_LINEAR, _PHASES = "linear", "nodes"
_BLOCKS = (8, 64, 256, 1024, 4096, 16384)
_PING_PONG, _FAR_BYTES = "ping-pong", 64 * KIB
_NEAR_THE_MODEL = 4.0  # the last size for which joining pays, by startup over the time for a byte; sizes are that far apart


def _schedules(context):
    """Velo with ranks node by node, how many nodes there are, and ranks on each."""
    _, _, nodes = _found(context)
    found, missing = context.by_node()
    slots = _slots()
    if BY_NODE not in found or slots < 2:
        raise Unavailable("; ".join(missing) or "it needs several ranks on each node: contrib/nodes run -n 4 --slots 2 -- velo-measure papers run S8 S9")
    return found[BY_NODE], nodes, slots


def _slots():
    text = (pathlib.Path(os.environ["VELO_NODES"]) / "hostfile").read_text(encoding="utf-8")
    return min((int(found) for found in re.findall(r"slots=(\d+)", text)), default=1)


def _exchange(contestant, algorithm, size, slots, repetitions):
    words = (RUN, f"alltoall:{algorithm}", "--on-node", str(slots), "--bytes", str(size), "--repeat", str(repetitions), "--json")
    return Point(algorithm, algorithm, size, launch=Launch(contestant, GOAL, words, (("btl_velo_verbose", 5),)))


def _plan_joined(context):
    contestant, nodes, slots = _schedules(context)
    points_of = {Workload(f"alltoall {size}", GOAL, (), nodes * slots): [_exchange(contestant, algorithm, size, slots, context.choose(101, 21))
                                                                       for algorithm in (_LINEAR, _PHASES)]
                 for size in context.choose(_BLOCKS, (8, 16384))}
    for size in (8, _FAR_BYTES):
        # Two processes, of which the second is on another node.
        words = (POINTS, "PingPong", "--bytes", str(size), "--seconds", f"{context.seconds:g}")
        launch = Launch(context.network()[0][TREE], MEASURE, words)
        points_of[Workload(f"{_PING_PONG} {size}", MEASURE, (), 2)] = [Point(_PING_PONG, _PING_PONG, size, launch=launch)]
    return building.plan(points_of, [Panel("alltoall", "alltoall", "time_usec", "us", "bytes of a block")], [])


def _alltoalls(results, key):
    """By algorithm and size of a block."""
    return {algorithm: {line.x: line.value(key) for line in results.lines
                        if line.workload.startswith("alltoall ") and line.series == algorithm and line.value(key) is not None}
            for algorithm in (_LINEAR, _PHASES)}


def _judge_joined(results, context):
    times = _alltoalls(results, "time_usec")
    both = sorted(times[_LINEAR].keys() & times[_PHASES].keys())
    pays = [size for size in both if times[_PHASES][size] < times[_LINEAR][size]]
    far = {line.x: line.time_usec for line in results.lines if line.workload.startswith(_PING_PONG) and line.time_usec}
    text = because(*(f"{algorithm}: {numbers(curve, ' us')}" for algorithm, curve in times.items() if curve),
                   context.crowded(max((line.ranks for line in results.lines), default=0)))
    limit = None
    if far.keys() >= {8, _FAR_BYTES} and far[_FAR_BYTES] > far[8]:
        limit = far[8] * (_FAR_BYTES - 8) / (far[_FAR_BYTES] - far[8])
        text = because(text, f"startup {far[8]:.3g} us over {(far[_FAR_BYTES] - far[8]) / (_FAR_BYTES - 8):.3g} us for a byte: {limit:.0f} bytes")
    last = max(pays, default=0)
    return [
        verdict("Where start-up dominates, joining the blocks of a node pays (MPIAlltoall).", both[0] in pays if both else None, text),
        verdict("It pays for blocks up to about the size whose transmission takes as long as the start-up (Conclusions from the model).",
                None if limit is None or not both else limit / _NEAR_THE_MODEL <= last <= limit * _NEAR_THE_MODEL, text, FITTED),
    ]


_COUNTED_RUNS = 5


def _plan_connections(context):
    contestant, nodes, slots = _schedules(context)
    return building.plan({Workload("alltoall 8", GOAL, (), nodes * slots, once=True): [
        _exchange(contestant, algorithm, 8, slots, _COUNTED_RUNS) for algorithm in (_LINEAR, _PHASES)]},
                         [Panel("between nodes", "alltoall", "network_peers", "connections", "bytes of a block")], [])


def _judge_connections(results, context):
    _, nodes, slots = _schedules(context)
    peers, messages = (_alltoalls(results, key) for key in ("network_peers", "network_messages"))
    found = {algorithm: (peers[algorithm].get(8), messages[algorithm].get(8)) for algorithm in (_LINEAR, _PHASES)}
    told = all(None not in pair for pair in found.values())
    each = {_LINEAR: (nodes - 1) * slots ** 2, _PHASES: nodes - 1}
    text = because(f"{nodes} nodes of {slots} ranks",
                   *(f"{algorithm}: {pair[0] / nodes:g} connections and {pair[1] / nodes / _COUNTED_RUNS:g} messages a node"
                     for algorithm, pair in found.items() if told))
    return [
        verdict("An alltoall of processes takes (n-1) m^2 connections a node, one of leaders n-1 (Savings in Communication Resources).",
                all(pair[0] == nodes * each[algorithm] for algorithm, pair in found.items()) if told else None, text),
        verdict("So many messages go between nodes, too.",
                all(pair[1] == _COUNTED_RUNS * nodes * each[algorithm] for algorithm, pair in found.items()) if told else None, text),
    ]


_COMPARED = "contestants take turns"
EXPERIMENTS = (
    Experiment("S1", "Broadcasts by the number of nodes", "Liu, Mamidala, Panda: Broadcast Latency Test",
               "Each broadcast has the next rank as its root, which has to have got the one before: latency by nodes, by multicast, along a tree of "
               "messages and by Open MPI's own.", _plan_latency, _judge_latency, compared=_COMPARED),
    Experiment("S2", "Broadcasts in a row from one root", "Liu, Mamidala, Panda: Broadcast Throughput Test",
               "One root does not wait: the four schemes, basic, a sliding window, a tree of acknowledgements, and co-roots with an "
               "acknowledgement for every 10th datagram.", _plan_stream, _judge_stream, compared=_COMPARED),
    Experiment("S8", "Alltoall between nodes, blocks joined or not", "Subramoni: MPIAlltoall; Conclusions from the model",
               "In three phases, gathered in the node, exchanged by leaders, scattered in the node, an alltoall has fewer start-ups and more copies: "
               "it pays for blocks below start-up over the time for a byte.", _plan_joined, _judge_joined, compared=_COMPARED),
    Experiment("S9", "Connections and messages between nodes", "Subramoni: Savings in Communication Resources",
               "With leaders a node of m processes has n-1 connections for an alltoall instead of (n-1) m^2.", _plan_connections,
               _judge_connections, compared="counted"),
)
