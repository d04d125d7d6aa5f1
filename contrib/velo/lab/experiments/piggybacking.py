"""Thesis, section 5.4: what piggybacking saves."""

from .. import building
from ..experiment import Experiment, Panel
from ..judging import because, common, mean, numbers, tolerance, verdict

_BYTES = 2044
_WITH, _WITHOUT = "piggybacking", "explicit credit packets"


def _plan(context):
    context.plugin.require("piggyback")
    slots = building.chosen_slots(context, (8, 16, 24, 32, 40, 48, 57, 64), (16, 32, 57))
    points = [building.reference(context, building.thesis_format(context, piggyback=False))]
    for series, on in ((_WITHOUT, False), (_WITH, True)):
        fixed = building.thesis_format(context, piggyback=on)
        points += [building.point(context, "static", count, fixed, series) for count in slots]
    workload = building.alltoall(context, size_bytes=_BYTES)
    return building.plan({workload: points}, [
        Panel("overhead", "alltoall", "overhead_percent", "overhead %", overhead_scale=True),
        Panel("credit packets", "alltoall", "credit_packets_per_1000_messages", "per 1000 messages"),
    ])


def _judge(results, context):
    return [_judge_packets(results), _judge_overhead(results, context)]


def _pair(results, key):
    return common(results.curve("alltoall", _WITHOUT, key), results.curve("alltoall", _WITH, key))


def _judge_packets(results):
    without, with_it = _pair(results, "credit_packets_per_1000_messages")
    saved = {x: 100.0 * (1 - with_it[x] / without[x]) for x in without if without[x]}
    return verdict("Piggybacking needs clearly fewer credit packets at every mailbox size (figure 5.8, right).",
                   min(saved.values()) > 0 if saved else None,
                   because(f"fewer by, at slots per peer: {numbers(saved)}" if saved else "not measured"))


def _judge_overhead(results, context):
    without, with_it = _pair(results, "overhead_percent")
    if not without:
        return verdict("It lowers the overhead (figure 5.8, left).", None, "not measured.")
    gain, noise = mean(without) - mean(with_it), tolerance(results, "alltoall")
    shown = None if abs(gain) < noise else gain > 0
    return verdict("It lowers the overhead (figure 5.8, left).", shown,
                   because(f"mean overhead {mean(without):.1f} % without and {mean(with_it):.1f} % with it; the reference "
                           f"varies by {noise:.1f} %", "" if shown else context.crowded()))


EXPERIMENT = Experiment(
    "5.4", "Credits that travel with data", "thesis, section 5.4, figure 5.8",
    "In alltoall with 2044 bytes, whose last packet has room for credits, piggybacking lowers the overhead and the number "
    "of explicit credit packets.",
    _plan, _judge)
