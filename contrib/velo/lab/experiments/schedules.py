"""ESPGOAL, chapter 6: schedules beside calls of MPI, and collectives beside a computation."""

import functools

from ...plugin import Unavailable
from .. import building
from ..contestants import MPICH, SAME, VADER, VELO
from ..experiment import FITTED, Experiment, Panel
from ..judging import because, numbers, verdict
from ..measurement import GOAL, MEASURE, Launch, Point, Workload
from ..runner import CALLS, ONE_SCHEDULE, OVERLAP, POINTS, RUN

KIB = 1024
# Bounds of demands on Velo, and for words of the paper.
_SMALL, _LARGE = 4 * KIB, 64 * KIB
_START_USEC = 0.27  # of a cached schedule with one operation: 0.25, and 0.02 for it
_PAPERS_START_USEC = 30.0
_CLOSE = 1.25  # "close", as a ratio of times
_OVERLAPPED = {"small": 0.70, "large": 0.85}  # of the best other's time with a computation
_WAIT = 0.3  # of libnbc's wait after it
_OVERLAP_PERCENT = 60.0
_SLOWDOWN = 0.2  # of libnbc's, with tests
_LEAST_PERCENT = 1.0
_FALLS = 0.5  # a wait that "never falls significantly" keeps so much of itself
_COPIES = ("two ranks compute on two cores: what a rank has to copy or add itself nobody does for it meanwhile, so the time of "
           "large blocks can hide only as far as it is waiting")


def _point(series, contestant, x, program, *words, mca=()):
    return Point(series, series, x, launch=Launch(contestant, program, tuple(map(str, words)), tuple(mca)))


def _found(context, wanted):
    """Contestants by name, schedules first, and who is missing; without Velo there is nothing to say."""
    found, missing = context.contestants()
    if VELO not in found:
        raise Unavailable("; ".join(missing))
    return {name: found[name] for name in wanted if name in found}, [text for text in missing if text.split(":")[0] in wanted]


def _seconds(context):
    return f"{context.seconds:g}"


def _values(results, workload, series, key):
    """By x, of all workloads of that name."""
    found = {line.x: line.value(key) for line in results.lines
             if (line.workload == workload or line.workload.startswith(workload + " ")) and line.series == series}
    return {x: found[x] for x in sorted(found) if found[x] is not None}


def _ratios(own, others):
    """Own value by the least of the others', where any has one."""
    return {x: value / min(of[x] for of in others if of.get(x)) for x, value in own.items() if any(of.get(x) for of in others)}


def _within(curve, holds, bound):
    """Whether all values whose x `holds` accepts are at most the bound; None: there are none."""
    chosen = [value for x, value in curve.items() if holds(x)]
    return all(value <= bound for value in chosen) if chosen else None


def _text(name, curve, unit=" us", digits=2):
    return f"{name}: {numbers(curve, unit, digits)}" if curve else ""


# --- E1

_SCHEDULE = "in one schedule"


def _plan_ping_pong(context):
    found, missing = _found(context, (VELO, SAME, VADER))
    sizes = context.choose((8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB, 1024 * KIB), (8, 4 * KIB))
    seconds = _seconds(context)
    workload = Workload("ping-pong", GOAL, (), 2)
    points = [_point(_SCHEDULE, found[VELO], size, GOAL, ONE_SCHEDULE, "pingpong", "--bytes", size, "--seconds", seconds) for size in sizes]
    points += [_point(f"MPI, {_transport(name)}", found[name], size, MEASURE, POINTS, "PingPong", "--bytes", size, "--seconds", seconds)
               for name in (SAME, VADER) if name in found for size in sizes]
    return building.plan({workload: points}, [Panel("one way", "ping-pong", "time_usec", "us", "bytes")], missing)


def _transport(name):
    return {SAME: "velo", VADER: "vader"}[name]


def _judge_ping_pong(results, _context):
    own, same = (_values(results, "ping-pong", series, "time_usec") for series in (_SCHEDULE, "MPI, velo"))
    ratios = _ratios(own, [same])
    text = because(_text(_SCHEDULE, own), _text("MPI over the same mailboxes", same), _text("ratio", ratios, ""))
    least = min(own.values(), default=None)
    return [
        verdict("A message within a schedule takes no longer than the one that MPI sends over the same transport, up to 4 KiB "
                f"(figure 6.7: ESPGOAL beside the ETH-BTL); close: {_CLOSE:g} times.", _within(ratios, lambda x: x <= _SMALL, _CLOSE),
                text, FITTED),
        verdict(f"The same from 64 KiB on (figure 6.8: bandwidth); close: {_CLOSE:g} times.",
                _within(ratios, lambda x: x >= _LARGE, _CLOSE), text, FITTED),
        verdict("The smallest message takes less than the 29 us that interrupts and a kernel module cost ESPGOAL.",
                None if least is None else least < 29.0, because(_text(_SCHEDULE, own))),
    ]


# --- E2

_TYPES = ("uint8", "uint64", "float", "double")
_LOOP = "loop"


def _plan_local(context):
    found, missing = _found(context, (VELO,))
    sizes = context.choose((8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB, 1024 * KIB), (8, 256 * KIB))
    types = context.choose(_TYPES, ("uint64", "double"))
    points_of = {}
    for name in types:
        points_of[Workload(f"addition {name}", GOAL, (), 1)] = [
            _point(series, found[VELO], size, GOAL, ONE_SCHEDULE, what, "--type", name, "--bytes", size, "--seconds",
                   f"{context.seconds / 2:g}") for size in sizes for series, what in (("as a schedule", "local"), (_LOOP, "loop"))]
    panels = [Panel(f"addition of {name}", f"addition {name}", "time_usec", "us", "bytes") for name in types]
    return building.plan(points_of, panels, missing)


def _judge_local(results, _context):
    starts, ratios = {}, {}
    for name in _TYPES:
        own, loop = (_values(results, f"addition {name}", series, "time_usec") for series in ("as a schedule", _LOOP))
        large = [ratio for x, ratio in _ratios(own, [loop]).items() if x >= _LARGE]
        starts |= {name: own[8] - loop[8]} if 8 in own and 8 in loop else {}
        ratios |= {name: max(large)} if large else {}
    start_text = ", ".join(f"{name} {value:.2f} us" for name, value in starts.items())
    ratio_text = ", ".join(f"{name} {value:.2f}" for name, value in ratios.items())
    most = max(starts.values(), default=None)
    return [
        verdict("A schedule is slower than the loop by the cost of its start (figure 6.9).",
                all(value > 0 for value in starts.values()) if starts else None, because(f"with 8 bytes: {start_text or 'not measured'}")),
        verdict(f"That cost, the paper's 30 us, is what has to go (chapter 7): {_START_USEC:g} us at most.",
                None if most is None else most <= _START_USEC,
                because(f"with 8 bytes, started and waited for: {start_text or 'not measured'}",
                        f"1/{_PAPERS_START_USEC / most:.0f} of the paper's" if most and most > 0 else "")),
        verdict(f"From 64 KiB on the loop is not left behind; close: {_CLOSE:g} times, for every type (the paper: floats close, 64-bit "
                "integers worst, as data is copied into the kernel and out).",
                all(value <= _CLOSE for value in ratios.values()) if ratios else None,
                because(f"largest ratio to the loop: {ratio_text or 'not measured'}"), FITTED),
    ]


# --- E3

_GATHERS = (("gather of 512 bytes", 512, "binomial"), ("gather of 500 KiB", 500 * KIB, "linear_sync"))
_GOAL_H = "schedule of goal.h"


def _plan_collectives(context):
    found, missing = _found(context, (VELO, SAME, VADER, MPICH))
    repetitions, points_of = context.choose(500, 50), {}
    for ranks in context.choose((2, 4, 8, 16), (2, 4)):
        points_of[Workload(f"barrier {ranks}", GOAL, (), ranks)] = [
            _point(_GOAL_H, found[VELO], ranks, GOAL, RUN, "barrier:dissemination", "--repeat", repetitions, "--json")] + [
            _point(name, contestant, ranks, MEASURE, CALLS, "Barrier", "--seconds", _seconds(context),
                   mca=_forced(name, "barrier", "dissemination")) for name, contestant in found.items()]
        for title, size, algorithm in _GATHERS:
            points_of[Workload(f"{title} {ranks}", GOAL, (), ranks)] = [
                _point(_GOAL_H, found[VELO], ranks, GOAL, RUN, f"gather:{algorithm}", "--bytes", size, "--segment", 32 * KIB, "--repeat",
                       repetitions, "--json")] + [
                _point(name, contestant, ranks, MEASURE, CALLS, "Gather", "--bytes", size, "--seconds", _seconds(context),
                       mca=_forced(name, "gather", algorithm)) for name, contestant in found.items()]
    panels = [Panel(title, title, "time_usec", "us, mean of the ranks", "ranks")
              for title in ("barrier", *(title for title, _, _ in _GATHERS))]
    return building.plan(points_of, panels, missing)


def _forced(name, operation, algorithm):
    return (("coll_velo_choices", f"{operation}:{algorithm}"), ("coll_velo_boards", 0)) if name == VELO else ()


def _judge_collectives(results, context):
    return [
        _judge_beside(results, context, "barrier", (SAME,), "The dissemination barrier is faster as a schedule than MPI's over the "
                      "same transport (figure 6.10)."),
        _judge_beside(results, context, _GATHERS[0][0], (SAME,), "The binomial gather of 512 bytes is slower as a schedule than MPI's: "
                      "the start is most of its time (figure 6.11).", slower=True),
        _judge_beside(results, context, _GATHERS[1][0], (SAME, VADER, MPICH), "The linear_sync gather of 500 KiB is faster as a schedule "
                      "than all others: its sends do not block (figure 6.12)."),
    ]


def _judge_beside(results, context, workload, others, statement, slower=False):
    own = _values(results, workload, _GOAL_H, "time_usec")
    theirs = {name: _values(results, workload, name, "time_usec") for name in others}
    ratios = _ratios(own, theirs.values())
    counted = {x: ratio for x, ratio in ratios.items() if x <= context.cores} or ratios
    shown = (all(value > 1 for value in counted.values()) if slower else _within(counted, lambda x: True, 1.0)) if counted else None
    most = max(ratios, default=0)
    return verdict(statement, shown, because(
        _text(_GOAL_H, own, " us", 1), *(_text(name, curve, " us", 1) for name, curve in theirs.items()), _text("ratio", ratios, ""),
        f"judged where each rank has a core; {context.crowded(int(most))}" if most > context.cores else ""))


# --- E4

_OPERATIONS = (("Barrier", (0,)), ("Bcast", (8, _SMALL, _LARGE, 256 * KIB)), ("Allreduce", (8, _SMALL, _LARGE)), ("Alltoall", (_SMALL, 256 * KIB)))
_QUICK_OPERATIONS = (("Barrier", (0,)), ("Allreduce", (8, _LARGE)))
_MULTIPLY = "multiplication beside a barrier"


def _matrices(context):
    return context.choose((16, 32, 64, 96, 128, 192), (16, 64))


def _overlap(context, benchmark, *words):
    return (OVERLAP, benchmark, "--seconds", _seconds(context), *words)


def _multiplications(context, found, kinds):
    """Points of an N x N multiplication beside a barrier: by contestant, with a test after each block or without."""
    return [_point(f"{name}, {_kind(tests)}", found[name], rows, MEASURE,
                   *_overlap(context, "Barrier", "--matrix", rows, "--block", 16, "--tests", int(tests)))
            for name, tests in kinds if name in found for rows in _matrices(context)]


def _kind(tests):
    return "explicit" if tests else "implicit"


def _plan_overlap(context):
    found, missing = _found(context, (VELO, VADER, MPICH))
    points_of = {
        Workload(f"I{benchmark.lower()}", MEASURE, (), 2): [
            _point(name, contestant, size, MEASURE, *_overlap(context, benchmark, "--bytes", size, "--block", 8))
            for name, contestant in found.items() for size in sizes]
        for benchmark, sizes in context.choose(_OPERATIONS, _QUICK_OPERATIONS)}
    panels = [Panel(f"{workload.name}: {title}", workload.name, key, label, "bytes", x_log=len(points) > len(found)) for workload, points in
              points_of.items() for title, key, label in (("overlap", "overlap_percent", "%"), ("wait", "wait_usec", "us"))]
    kinds = [(name, tests) for name in found for tests in (False, True)]
    points_of[Workload(_MULTIPLY, MEASURE, (), 2)] = _multiplications(context, found, kinds)
    panels += [Panel("wait after N x N", _MULTIPLY, "wait_usec", "us", "N"),
               Panel("multiplication beside a barrier", _MULTIPLY, "time_usec", "us", "N")]
    return building.plan(points_of, panels, missing)


def _by_operation(results, series, key):
    """By (operation, bytes)."""
    return {(line.workload, line.x): line.value(key) for line in results.lines
            if line.series == series and line.workload != _MULTIPLY and line.value(key) is not None}


def _judge_overlap(results, context):
    own, libnbc, mpich = ({key: _by_operation(results, name, key) for key in ("time_usec", "wait_usec", "overlap_percent")}
                          for name in (VELO, VADER, MPICH))
    ratios = _ratios(own["time_usec"], [libnbc["time_usec"], mpich["time_usec"]])
    waits = _ratios(own["wait_usec"], [libnbc["wait_usec"]])
    small, large = (lambda key: key[1] <= _SMALL), (lambda key: key[1] >= _LARGE)
    overlaps = {key: value for key, value in own["overlap_percent"].items() if small(key)}
    told = functools.partial(_operations_text, results)
    return [
        _judge_falls(results, VADER, False, "libnbc does not progress without tests: its wait never drops significantly with the size of "
                     "the matrix (figure 6.13)."),
        _judge_falls(results, VELO, True, "A schedule progresses without tests: its wait falls with the size of the matrix (figure 6.14)."),
        verdict(f"With a computation that lasts as long as the call a call of at most 4 KiB takes {_OVERLAPPED['small']:g} of the best other's "
                "time at most.", _within(ratios, small, _OVERLAPPED["small"]), because(told(ratios, small, ""))),
        verdict(f"Its wait after the computation is {_WAIT:g} of libnbc's at most.", _within(waits, small, _WAIT), because(told(waits, small, ""))),
        verdict(f"At least {_OVERLAP_PERCENT:g} % of it overlap.", min(overlaps.values()) >= _OVERLAP_PERCENT if overlaps else None,
                because(told(overlaps, small, " %"))),
        verdict(f"From 64 KiB on the time with the computation is {_OVERLAPPED['large']:g} of the best other's at most.",
                _within(ratios, large, _OVERLAPPED["large"]),
                because(told(ratios, large, ""), "" if _within(ratios, large, _OVERLAPPED["large"]) or context.cores > 2 else _COPIES)),
    ]


def _operations_text(_results, curve, holds, unit):
    return ", ".join(f"{operation} {size:g}: {value:.2f}{unit}" for (operation, size), value in curve.items() if holds((operation, size))) \
        or "not measured"


def _judge_falls(results, name, should_fall, statement):
    """Waits after the smallest and the largest matrix."""
    waits = _values(results, _MULTIPLY, f"{name}, {_kind(False)}", "wait_usec")
    explicit = _values(results, _MULTIPLY, f"{name}, {_kind(True)}", "wait_usec")
    pure = _values(results, _MULTIPLY, f"{name}, {_kind(False)}", "pure_usec")
    shown = None
    if len(waits) > 1:
        # Beside the call alone: what is waited for at the end is less than half of it, or it is not.
        last = max(waits)
        shown = (waits[last] < _FALLS * pure[last]) == should_fall
    return verdict(f"{statement} It has fallen when it is below {_FALLS:g} of the call alone.", shown,
                   because(_text("implicit", waits), _text("explicit", explicit), _text("the call alone", pure) or "not measured"), FITTED)


# --- E5

def _plan_slowdown(context):
    found, missing = _found(context, (VELO, VADER, MPICH))
    kinds = ((VELO, False), (VADER, True), (MPICH, True))
    workload = Workload("slowdown", MEASURE, (), 2)
    return building.plan({workload: _multiplications(context, found, kinds)},
                         [Panel("loss by one barrier", "slowdown", "slowdown_percent", "% of the multiplication", "N")], missing)


def _judge_slowdown(results, _context):
    own, libnbc, mpich = (_values(results, "slowdown", f"{name}, {_kind(tests)}", "slowdown_percent")
                          for name, tests in ((VELO, False), (VADER, True), (MPICH, True)))
    text = because(_text(f"{VELO}, implicit", own, " %"), _text("libnbc, explicit", libnbc, " %"), _text("MPICH, explicit", mpich, " %"))
    both = [x for x in own if x in libnbc]
    told = [x for x in both if libnbc[x] >= _LEAST_PERCENT]
    shown = all(own[x] <= _SLOWDOWN * libnbc[x] for x in told) if told else None
    falls = all(max(curve[max(curve)], 0) < curve[min(curve)] for curve in (own, libnbc)) if len(both) > 1 else None
    return [verdict("A multiplication loses much less by a barrier that is a schedule, without tests, than by libnbc's with them (figure 6.15): "
                    f"{_SLOWDOWN:g} of it at most, where libnbc's is {_LEAST_PERCENT:g} % at least: less cannot be told from noise.", shown, text),
            verdict("Both losses fall with the size of the matrix.", falls, text)]


_INTERLEAVED = "contestants take turns"
EXPERIMENTS = (
    Experiment("E1", "Ping-pong within one schedule", "ESPGOAL, section 6.3, figures 6.7, 6.8",
               "100 rounds between two operations that take the time: what a message costs that a schedule sends, beside one that MPI "
               "sends over the same transport.", _plan_ping_pong, _judge_ping_pong, compared=_INTERLEAVED),
    Experiment("E2", "A local operation as a schedule and as a loop", "ESPGOAL, section 6.4, figure 6.9",
               "The schedule is slower by what its start costs; for large data it comes close to the loop.", _plan_local, _judge_local,
               compared=_INTERLEAVED),
    Experiment("E3", "Barrier and gathers by the number of ranks", "ESPGOAL, section 6.5, figures 6.10 to 6.12",
               "Dissemination barrier, binomial gather of 512 bytes, linear_sync gather of 500 KiB with a first segment of 32 KiB: the mean "
               "of the ranks, the median of the repetitions, each after a barrier. Small ones lose by the start, the large one wins.",
               _plan_collectives, _judge_collectives, compared=_INTERLEAVED),
    Experiment("E4", "Overlap with a computation", "ESPGOAL, section 6.6, figures 6.13, 6.14; IMB-NBC",
               "A non-blocking collective is begun, a matrix is multiplied in blocks, with a test after each (explicit) or without "
               "(implicit), and the end is waited for. libnbc's wait stays; that of a schedule falls.", _plan_overlap, _judge_overlap,
               compared=_INTERLEAVED),
    Experiment("E5", "What a multiplication loses by one barrier", "ESPGOAL, section 6.6, figure 6.15",
               "The time that a multiplication of N x N takes longer, the start of the call included, beside a barrier as a schedule without "
               "tests, and beside libnbc's with them.", _plan_slowdown, _judge_slowdown, compared=_INTERLEAVED),
)
