"""Beyond the papers: the benchmarks of section 7.4 with all data in packets, and by reference where credits are short."""

import statistics

from ...compare.plan import DEFAULT_BY_REFERENCE, QUICK_SUITE, SUITE
from .. import building
from ..experiment import Experiment, Panel
from ..judging import because, too_noisy, verdict

_SLOTS = 8
_AVERAGE_PERCENT, _EACH_PERCENT = 3.0, 10.0


def _series(policy, mode):
    return f"{policy}, {mode}"


def _plan(context):
    context.plugin.require("by_reference")
    chosen, skipped = building.chosen_policies(context, ("static", "dynamic", "lazy"))
    slots = building.chosen_slots(context, (_SLOTS, 16, 64), (_SLOTS,))
    points = [building.reference(context, building.in_packets(context))] + [
        building.point(context, policy, count, (("by_reference", mode),), _series(policy, mode))
        for policy in chosen for count in slots for mode in DEFAULT_BY_REFERENCE]
    workloads = [building.bench(context, name) for name in context.choose(SUITE, QUICK_SUITE)]
    panels = [Panel(w.name, w.name, "overhead_percent", "overhead %", overhead_scale=True) for w in workloads]
    return building.plan({workload: points for workload in workloads}, panels, skipped)


def _overheads(results, series):
    """By benchmark, with the slots that the demand is for."""
    return {line.workload: line.overhead_percent for line in results.lines if line.series == series and line.x == _SLOTS}


def _judge(results, context):
    policies = dict.fromkeys(line.policy for line in results.lines if not line.is_reference)
    return [_judge_policy(results, context, policy) for policy in policies]


def _judge_policy(results, context, policy):
    statement = (f"With {_SLOTS} slots per peer and messages by reference {policy} takes at most {_AVERAGE_PERCENT:g} % longer than none on the "
                 f"average of the benchmarks, and at most {_EACH_PERCENT:g} % in each.")
    noisy = too_noisy(results, *dict.fromkeys(line.workload for line in results.lines))
    found = {mode: _overheads(results, _series(policy, mode)) for mode in DEFAULT_BY_REFERENCE}
    of_velo = found["auto"]
    shown = None
    if of_velo and None not in of_velo.values() and not noisy:
        shown = statistics.fmean(of_velo.values()) <= _AVERAGE_PERCENT and max(of_velo.values()) <= _EACH_PERCENT
    return verdict(statement, shown, because(*(f"{mode}: {_text(of_mode)}" for mode, of_mode in found.items()), noisy,
                                             "" if shown else context.crowded()))


def _text(overheads):
    known = {name: value for name, value in overheads.items() if value is not None}
    if not known:
        return f"not measured with {_SLOTS} slots"
    worst = max(known, key=known.get)
    return f"{statistics.fmean(known.values()):.1f} % on the average of {len(known)} benchmarks, at worst {known[worst]:.1f} % ({worst})"


EXPERIMENT = Experiment(
    "by-reference", "Messages by reference where credits are short", "demand on Velo",
    "A sender that is short of credits leaves its message in its own memory and sends one packet that says where: a few slots for each peer "
    "are then as good as many, under every policy. With `never` beside it, the protocol of the thesis, the same mailbox costs what it costs there.",
    _plan, _judge)
