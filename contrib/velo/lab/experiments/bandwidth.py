"""Liu & Panda, section 6.2: latency, and windows of messages against pre-posted buffers."""

import dataclasses
import statistics

from ... import policies
from .. import building
from ..experiment import FITTED, PREDICTED, Experiment, Panel
from ..judging import because, too_noisy, verdict
from ..measurement import MEASURE, Point, Workload
from ..runner import POINTS

_RANKS = 2
_WINDOWS, _QUICK_WINDOWS = (1, 2, 4, 8, 10, 16, 32, 64, 100), (1, 10, 32, 100)
# (bytes, buffers) of figures 3 and 4, 5 and 6, 7 and 8; the last one is section 6.3.2's extreme.
_CASES = ((4, 100), (4, 10), (32768, 10), (4, 1))
# Of figure 2, where each message is answered and buffers suffice.
_LATENCY, _LATENCY_BUFFERS = "ping-pong", 100
_DEFAULT = ("rnr", "mvapich_static", "mvapich_dynamic", "static", "dynamic")
_SIMILAR = 1.25
_FEW, _USER_LEVEL = (4, 10), ("mvapich_static", "mvapich_dynamic")


def _name(size, buffers, kind):
    return f"{size} B, {buffers} buffers, {kind}"


def _plan(context):
    chosen, skipped = building.chosen_policies(context, _DEFAULT)
    if any(policy in chosen for policy in ("rnr", "mvapich_static", "mvapich_dynamic")):
        context.plugin.require("preposted_buffers")
    points_of = {}
    panels = [Panel(f"{_LATENCY}, {_LATENCY_BUFFERS} buffers", _LATENCY, "time_usec", "us, one way", "bytes")]
    for size in context.choose((4, 16, 64, 256, 1024, 4096), (4, 1024)):
        words = (POINTS, "PingPong", "--bytes", str(size), "--seconds", f"{context.seconds:g}")
        workload = Workload(f"{_LATENCY} {size}", MEASURE, words, _RANKS, size_bytes=size, pinned=True)
        points_of[workload] = [building.reference(context, building.in_packets(context), slots=4096, x=size)] + [
            _point(context, policy, _LATENCY_BUFFERS, size) for policy in chosen]
    for size, buffers in _CASES:
        for kind in ("blocking", "nonblocking"):
            name = _name(size, buffers, kind)
            for window in context.choose(_WINDOWS, _QUICK_WINDOWS):
                workload = Workload(f"{name}, window {window}", MEASURE, _words(context, kind, size, window), _RANKS)
                points_of[workload] = [building.reference(context, building.in_packets(context), slots=4096, x=window)] + [
                    _point(context, policy, buffers, window) for policy in chosen]
                if (size, buffers) == _FEW and window > buffers:
                    points_of[workload] += [_matched(context, policy, buffers, window) for policy in _USER_LEVEL if policy in chosen]
            panels.append(Panel(name, f"{name}, window", "mbytes_per_second", "MB/s", "window, messages",
                                landmarks=(buffers,)))
    return building.plan(points_of, panels, skipped)


_BENCHMARKS = {"blocking": "Blocking", "nonblocking": "Uniband"}


def _words(context, kind, size, window):
    return (POINTS, _BENCHMARKS[kind], "--bytes", str(size), "--window", str(window), "--seconds", f"{context.seconds / 4:g}",
            "--repetitions", "100000")


def _point(context, policy, buffers, x):
    return Point(policy, policy, x, policies.mca((*policies.with_buffers(policy, buffers, _RANKS), *building.in_packets(context))))


def _matched(context, policy, buffers, x):
    """The same over the MTL, which knows of credits when it chooses how a message goes."""
    point = _point(context, policy, buffers, x)
    return dataclasses.replace(point, series=_over_mtl(policy), mca=(*point.mca, ("mtl", "velo")))


def _over_mtl(policy):
    return f"{policy}, MTL"


def _bandwidths(results, name, series, windows):
    """Geometric mean of the bandwidth over windows that `windows` accepts."""
    values = [line.mbytes_per_second for line in results.lines if line.workload.startswith(f"{name}, window")
              and line.series == series and not line.is_reference and line.mbytes_per_second and windows(line.x)]
    return statistics.geometric_mean(values) if values else None


def _compare(results, size, buffers, kinds, windows):
    """Bandwidth by policy, for each kind."""
    names = list(dict.fromkeys(line.series for line in results.lines if not line.is_reference))
    found = {kind: {p: _bandwidths(results, _name(size, buffers, kind), p, windows) for p in names} for kind in kinds}
    return {kind: {p: v for p, v in values.items() if v} for kind, values in found.items()}


def _text(found):
    return "; ".join(f"{kind}: " + ", ".join(f"{p} {v:.3g}" for p, v in values.items()) + " MB/s"
                     for kind, values in found.items() if values) or "not measured"


_KINDS = ("blocking", "nonblocking")
_SCHEMES = ("rnr", "mvapich_static", "mvapich_dynamic")


def _of_paper(found):
    """Those of the three schemes, if all are there."""
    return [{p: values[p] for p in _SCHEMES} for values in found.values() if set(_SCHEMES) <= values.keys()]


def _judge(results, context):
    enough = _compare(results, 4, 100, _KINDS, lambda window: True)
    scarce = _compare(results, 4, 10, _KINDS, lambda window: window > 10)
    large = _compare(results, 32768, 10, _KINDS, lambda window: True)
    missing = ", ".join(context.plugin.missing_policies(_SCHEMES))
    note = f"not all of the paper's schemes are there: {missing} missing" if missing else ""
    return [
        _judge_latency(results, note),
        _judged("With 100 buffers, more than a window, all schemes perform alike (figures 3, 4).", enough, _alike, note, FITTED),
        _judged("With 10 buffers and larger windows the user-level dynamic scheme is best and the user-level static one "
                "worst (figures 5, 6).", scarce,
                lambda v: max(v, key=v.get) == "mvapich_dynamic" and min(v, key=v.get) == "mvapich_static", note),
        *(_judge_handshake(scarce, policy) for policy in _USER_LEVEL),
        _judged("With 32 KB messages all schemes do well with 10 buffers, because the rendezvous makes the pattern "
                "symmetric (figures 7, 8).", large, _alike, note, FITTED),
        _judge_overlap(large),
    ]


def _judge_handshake(scarce, policy):
    blocking, free = (scarce[kind].get(_over_mtl(policy)) for kind in _KINDS)
    shown = None if None in (blocking, free) else blocking > free
    return verdict(f"With 10 buffers and larger windows blocking calls are faster than others under {policy}, as small messages without a credit go by "
                   "rendezvous, whose handshake brings credits (section 6.2.2).", shown,
                   because("over the MTL; over the BTL ob1 chooses, without knowing of credits", "" if shown is None else f"blocking {blocking:.3g}, others {free:.3g} MB/s"))


def _alike(values):
    return max(values.values()) <= _SIMILAR * min(values.values())


def _judged(statement, found, holds, note, kind=PREDICTED):
    of_paper = _of_paper(found)
    measured = of_paper and len(of_paper) == len(found)
    return verdict(statement, all(map(holds, of_paper)) if measured else None, because(_text(found), note), kind)


def _judge_latency(results, note):
    found = {}
    for line in results.lines:
        if line.workload.startswith(_LATENCY + " ") and not line.is_reference and line.time_usec:
            found.setdefault(line.workload.removeprefix(_LATENCY + " "), {})[line.policy] = line.time_usec
    of_paper = _of_paper(found)
    noisy = too_noisy(results, *(f"{_LATENCY} {size}" for size in found))
    shown = all(map(_alike, of_paper)) if of_paper and len(of_paper) == len(found) and not noisy else None
    text = "; ".join(f"{size} bytes: " + ", ".join(f"{policy} {usec:.3g}" for policy, usec in values.items()) + " us" for size, values in found.items())
    return verdict("In ping-pong the three schemes perform alike: credits travel with the messages (figure 2).", shown,
                   because(text or "not measured", note, noisy), FITTED)


def _judge_overlap(large):
    pairs = [(large["blocking"][p], value) for p, value in large["nonblocking"].items() if p in large["blocking"]]
    shown = all(free > blocked for blocked, free in pairs) if pairs else None
    return verdict("For large messages non-blocking calls are faster than blocking ones: they overlap (figures 7, 8).",
                   shown, because(_text(large)))


EXPERIMENT = Experiment(
    "bandwidth", "Windows of messages and pre-posted buffers", "Liu & Panda, section 6.2, figures 2 to 8",
    "As long as buffers suffice all schemes perform alike; when the window exceeds the buffers, the user-level dynamic scheme is "
    "best and the user-level static one worst. Here a buffer is a packet of 64 bytes. The policies of Velo itself have as many "
    "data slots.",
    _plan, _judge)
