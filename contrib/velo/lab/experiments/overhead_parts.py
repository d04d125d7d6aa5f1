"""Thesis, section 7.1: how much of the overhead is waiting for credits, and how much the handling of credits."""

from ...policies import mca
from .. import building
from ..experiment import FITTED, Experiment, Panel
from ..judging import because, common, mean, numbers, tolerance, too_noisy, verdict
from ..measurement import Point

_CREDIT_SLOTS = 2
_SMALL_SLOTS = 16
_MOST_CREDIT_SLOTS = 255


def _unstalled(policy):
    return f"{policy}, no stalls"


def equally_frequent(slots, large):
    """Credit slots that give a large mailbox the credit threshold (equation 5.1) of one with `slots` for each peer."""
    wanted = _threshold(slots, _CREDIT_SLOTS)
    return min(range(1, min(_MOST_CREDIT_SLOTS, large // 2) + 1), key=lambda n: abs(_threshold(large, n) - wanted))


def _threshold(slots, credit_slots):
    return (slots - credit_slots) // (credit_slots + 1) + 1


def _plan(context):
    chosen, skipped = building.chosen_policies(context, ("static", "dynamic"))
    chosen = [policy for policy in chosen if policy in ("static", "dynamic")]
    slots = building.chosen_slots(context, (8, 16, 24, 32, 40, 48, 57, 64), (16, 32, 57))
    fixed = building.thesis_format(context, piggyback=False)
    points = [building.reference(context, fixed)]
    for policy in chosen:
        points += [building.point(context, policy, count, fixed) for count in slots]
        points += [_without_stalls(context, policy, count, fixed) for count in slots]
    workloads = (building.alltoall(context), building.ping_pong(context))
    panels = [Panel(f"{w.name}: {policy}", w.name, "overhead_percent", "overhead %", overhead_scale=True,
                    series=(policy, _unstalled(policy))) for policy in chosen for w in workloads]
    panels += [Panel(f"{w.name}: credit packets", w.name, "credit_packets_per_1000_messages", "per 1000 messages")
               for w in workloads]
    return building.plan({workload: points for workload in workloads}, panels, skipped)


def _without_stalls(context, policy, slots, fixed):
    large = context.reference_slots
    pairs = (("slots_per_peer", large), ("credit_slots", equally_frequent(slots, large)), *fixed)
    return Point(_unstalled(policy), policy, slots, mca(pairs))


def _judge(results, context):
    return [_judge_alltoall(results, context), _judge_small(results, context), _judge_ping_pong(results, context), _judge_packets(results)]


def _totals(results, workload):
    return common(results.curve(workload, "static"), results.curve(workload, "dynamic"))


def _parts(results, workload, policy):
    total, handling = common(results.curve(workload, policy), results.curve(workload, _unstalled(policy)))
    if not total:
        return f"{policy} not measured"
    return (f"{policy} {mean(total):.1f} %, and without stalls (credit packets and their handling alone) "
            f"{mean(handling):.1f} %")


def _judge_alltoall(results, context):
    static, dynamic = _totals(results, "alltoall")
    statement = "In alltoall among all, the overheads of both are very similar (figures 7.1, 7.2, left)."
    if not static:
        return verdict(statement, None, "not measured.", FITTED)
    margin = max(tolerance(results, "alltoall"), 0.25 * mean(static))
    noisy = too_noisy(results, "alltoall")
    shown = None if noisy else abs(mean(dynamic) - mean(static)) <= margin
    return verdict(statement, shown, because("mean overhead: " + _parts(results, "alltoall", "static"),
                                             _parts(results, "alltoall", "dynamic"), noisy, "" if shown else context.crowded()),
                   FITTED)


def _judge_small(results, context):
    static, dynamic = _totals(results, "alltoall")
    gaps = {x: dynamic[x] - static[x] for x in static if x < _SMALL_SLOTS}
    noisy = too_noisy(results, "alltoall")
    shown = None
    if gaps and not noisy and abs(mean(gaps)) >= tolerance(results, "alltoall"):
        shown = mean(gaps) > 0
    return verdict(f"There the dynamic one's overhead is the larger one below {_SMALL_SLOTS} slots (figures 7.1, 7.2, left).", shown,
                   because("dynamic less static, at slots per peer: " + (numbers(gaps, " points") or "not measured"), noisy,
                           "" if shown else context.crowded()))


def _judge_ping_pong(results, context):
    static, dynamic = _totals(results, "multi-ping-pong")
    statement = "In multi-ping-pong the dynamic one's overhead is lower (figures 7.1, 7.2, right)."
    if not static:
        return verdict(statement, None, "not measured.")
    gain, noise = mean(static) - mean(dynamic), tolerance(results, "multi-ping-pong")
    shown = None if abs(gain) < noise else gain > 0
    return verdict(statement, shown, because("mean overhead: " + _parts(results, "multi-ping-pong", "static"),
                                             _parts(results, "multi-ping-pong", "dynamic"),
                                             "" if shown else context.crowded()))


def _judge_packets(results):
    key = "credit_packets_per_1000_messages"
    static, dynamic = common(*(results.curve("multi-ping-pong", policy, key) for policy in ("static", "dynamic")))
    shown = mean(dynamic) < mean(static) if static else None
    return verdict("There the static one returns credits more often, because the dynamic one gives nearly all of the mailbox "
                   "to the one active sender (section 7.1).", shown,
                   because(f"credit packets for 1000 messages: static {mean(static):.0f}, dynamic {mean(dynamic):.0f}"
                           if static else "not measured"))


EXPERIMENT = Experiment(
    "7.1", "The parts of the overhead", "thesis, section 7.1, figures 7.1 and 7.2",
    "Overhead is waiting for credits plus handling them. Here the second part is measured by itself: with a mailbox that never "
    "gets full, and credit slots that make credits return as often. (The thesis counts the traffic of credit packets "
    "with the waiting.)",
    _plan, _judge)
