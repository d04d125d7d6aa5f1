"""Thesis, sections 5.5 and 6.8: alltoall among a part of the ranks while the others wait in a barrier."""

from .. import building
from ..experiment import FITTED, Experiment, Panel
from ..judging import because, common, mean, numbers, settles_at, tolerance, too_noisy, verdict

# What the thesis calls not acceptable.
_LIMIT_PERCENT = 5.0
# Below that a static mailbox has an overhead that is not acceptable, whoever is active.
_STATIC_SLOTS = 55
# A size below it is next to it from here on: only such a one tells it from a smaller limit.
_NEXT_TO_IT = 50
_DELAYED = "delayed_of_pattern_percent"
_COUNTED_RANKS = 16
# What delays many, and a few: all of the messages but for chance, and as good as none.
_NEARLY_ALL_PERCENT, _A_FEW_PERCENT = 90.0, 10.0
# A sender that is delayed more often than that stalls in every second message.
_HALF_PERCENT = 50.0


def _active(context):
    """All, a half, a quarter, an eighth of the ranks."""
    return [count for count in (context.ranks // part for part in (1, 2, 4, 8)) if count >= 2]


def _name(context, active):
    return f"{context.ranks // active}x{active}"


def _counted_name(active, groups=1):
    return f"counted, {groups} x {active} of {_COUNTED_RANKS}"


def _counted_slots(active):
    """What all ranks need, and the part of it that this part of the ranks is to need: half of it for a half."""
    return sorted({64, 32, 64 * active // _COUNTED_RANKS})


def _counted_points(context, chosen, fixed):
    """Delayed messages do not depend on the scheduler. A part of the ranks alone, and as many groups as there is room for."""
    points_of = {}
    for active in (_COUNTED_RANKS, _COUNTED_RANKS // 2, _COUNTED_RANKS // 4):
        for groups in dict.fromkeys((1, _COUNTED_RANKS // active)):
            workload = building.counted(context, _counted_name(active, groups), _COUNTED_RANKS, active, groups)
            points_of[workload] = [building.point(context, policy, count, fixed, ranks=_COUNTED_RANKS)
                                   for policy in chosen for count in _counted_slots(active)]
    return points_of


def _delayed_with(results, policy, active, groups, slots):
    return results.curve(_counted_name(active, groups), policy, _DELAYED).get(slots)


def _judge_counted(results, policy, statement, holds, groups_of):
    """`holds` of the delayed messages in %, of all ranks with half of the slots and of the parts with their part of them."""
    parts = (_COUNTED_RANKS // 2, _COUNTED_RANKS // 4)
    of_all = _delayed_with(results, policy, _COUNTED_RANKS, 1, 32)
    of_parts = [_delayed_with(results, policy, active, groups_of(active), 64 * active // _COUNTED_RANKS) for active in parts]
    if None in (of_all, *of_parts):
        return verdict(statement, None, "not measured.")
    text = [f"{groups_of(active)} x {active} with {64 * active // _COUNTED_RANKS} slots: {share:.1f} %"
            for active, share in zip(parts, of_parts)]
    return verdict(statement, holds(of_all, of_parts),
                   because(f"delayed of {_COUNTED_RANKS} ranks with 32 slots: {of_all:.1f} %", *text))


def _plan_for(default_policy):
    def plan(context):
        chosen, skipped = building.chosen_policies(context, (default_policy,))
        slots = building.chosen_slots(context, (8, 12, 16, 24, 32, 40, 48, 54, 57, 64), (8, 16, 32, 54, 57))
        fixed = building.thesis_format(context, piggyback=False)
        points = [building.reference(context, fixed)] + [
            building.point(context, policy, count, fixed) for policy in chosen for count in slots]
        workloads = [building.alltoall(context, active, _name(context, active)) for active in _active(context)]
        panels = [Panel(f"{w.name}: alltoall among {w.words[4]} of {w.ranks}", w.name, "overhead_percent", "overhead %",
                        overhead_scale=True) for w in workloads]
        panels += [Panel(f"{w.name}: delayed sends", w.name, _DELAYED, "% of the alltoall's messages") for w in workloads]
        counted = _counted_points(context, chosen, fixed)
        panels += [Panel(f"{w.name}: delayed sends", w.name, _DELAYED, "% of the alltoall's messages") for w in counted]
        return building.plan({workload: points for workload in workloads} | counted, panels, skipped)
    return plan


def _limits(results, context, policy):
    """Slots from which on the overhead is acceptable, by active ranks; noise counts as acceptable."""
    found = {}
    for active in _active(context):
        name = _name(context, active)
        curve = results.curve(name, policy)
        if curve:
            found[active] = (settles_at(curve, max(_LIMIT_PERCENT, tolerance(results, name))), curve)
    return found


def _too_noisy(results, context):
    return too_noisy(results, *(_name(context, active) for active in _active(context)))


def _limits_text(limits):
    return "acceptable from, by active ranks: " + ", ".join(
        f"{active}: " + (f"{slots:g} slots" if slots else f"more than {max(curve):g} slots")
        for active, (slots, curve) in limits.items())


def _judge_static(results, context):
    limits = _limits(results, context, "static")
    statement = (f"With a static partition the overhead is not acceptable ({_LIMIT_PERCENT:g} % or more) below about "
                 f"{_STATIC_SLOTS} slots per peer, whether all, a half, a quarter or an eighth of the ranks communicate "
                 "(figure 5.9).")
    if not limits:
        return [verdict(statement, None, "static was not run.")]
    noisy = _too_noisy(results, context)
    shown = None if noisy or limits.keys() != set(_active(context)) else _is_unacceptable_below(limits)
    return [verdict(statement, shown, because(_limits_text(limits), noisy, "" if shown else context.crowded())),
            _judge_static_delays(results, context),
            _judge_counted(results, "static", "Nor do they where a half of the ranks has half of the slots, a quarter a quarter: as many "
                           "messages are delayed as among all ranks (figure 5.9).",
                           lambda of_all, of_parts: min(of_all, *of_parts) >= _NEARLY_ALL_PERCENT, lambda active: 1)]


def _is_unacceptable_below(limits):
    """None: no size next to the paper's was measured, or with none the overhead is acceptable, which tells of no limit."""
    settled = [slots for slots, _ in limits.values()]
    if any(slots is not None and slots < _STATIC_SLOTS for slots in settled):
        return False
    near = all(any(_NEXT_TO_IT <= x < _STATIC_SLOTS for x in curve) for _, curve in limits.values())
    return True if near and None not in settled else None


def _delayed(results, context, policy):
    """Delayed sends with mailboxes that cannot hold a message for each peer, by active ranks."""
    curves = {active: results.curve(_name(context, active), policy, _DELAYED) for active in _active(context)}
    small = {active: {x: v for x, v in curve.items() if x < building.MESSAGE_PACKETS} for active, curve in curves.items()}
    return {active: curve for active, curve in small.items() if curve}


def _delayed_text(curves):
    return "delayed, in % of the alltoall's messages, by active ranks and slots: " + "; ".join(
        f"{active} ranks: {numbers(curve, '')}" for active, curve in curves.items())


def _judge_static_delays(results, context):
    curves = _delayed(results, context, "static")
    shown = all(min(curve.values()) > _HALF_PERCENT for curve in curves.values()) if curves else None
    return verdict("The slots of idle senders help nobody: where a quota cannot hold a message, sends are delayed whoever is active.",
                   shown, because(_delayed_text(curves)), FITTED)


def _judge_dynamic_delays(results, context):
    curves = _delayed(results, context, "dynamic")
    shown = None
    if len(curves) > 1 and context.ranks in curves:
        means = [mean(curve) for curve in common(*(curves[active] for active in sorted(curves)))]
        shown = means == sorted(means) and means[0] < means[-1] if None not in means else None
    return verdict("With the same mailbox, fewer sends are delayed the fewer ranks communicate: they have the slots of the others.",
                   shown, because(_delayed_text(curves)))


def _is_proportional(limits, ranks):
    """Each part of the ranks needs that part of the slots, as exactly as the measured sizes tell. None: what all need was not
    reached."""
    slots_of_all, _ = limits[ranks]
    if slots_of_all is None:
        return None
    for active, (slots, curve) in limits.items():
        share = slots_of_all * active / ranks
        enough = next((x for x in sorted(curve) if x > share), max(curve))
        if active != ranks and (slots is None or slots > max(enough, min(curve))):
            return False
    return True


def _judge_dynamic(results, context):
    limits = _limits(results, context, "dynamic")
    statement = ("The dynamic flow control needs half the slots when a half of the ranks communicate, a quarter when a "
                 "quarter does, an eighth when an eighth does (figure 6.5).")
    if not limits:
        return [verdict(statement, None, "dynamic was not run.")]
    noisy = _too_noisy(results, context)
    shown = None
    if len(limits) > 1 and context.ranks in limits and not noisy:
        shown = _is_proportional(limits, context.ranks)
    return [verdict(statement, shown, because(_limits_text(limits), noisy, "" if shown else context.crowded())),
            _judge_dynamic_delays(results, context),
            _judge_counted(results, "dynamic", "With half of the slots that all ranks need a half of them has few delayed messages, with a "
                           "quarter of them a quarter (figure 6.5).", _few_of_parts, lambda active: 1),
            _judge_counted(results, "dynamic", "So do two halves and four quarters that communicate at the same time, each among itself "
                           "(Spanish paper).", _few_of_parts, lambda active: _COUNTED_RANKS // active)]


def _few_of_parts(of_all, of_parts):
    return max(of_parts) <= _A_FEW_PERCENT and of_all >= _NEARLY_ALL_PERCENT


STATIC = Experiment(
    "5.5", "A static mailbox and localised communication", "thesis, section 5.5, figure 5.9",
    "A static partition wastes the slots of those that do not communicate: the overhead is unacceptable below 55 slots "
    "per peer for all four patterns alike.",
    _plan_for("static"), _judge_static)
DYNAMIC = Experiment(
    "6.8", "A dynamic mailbox and localised communication", "thesis, section 6.8, figure 6.5",
    "The dynamic flow control gives the slots of those that do not communicate to those that do: the fewer communicate, the "
    "smaller the mailbox that is enough.",
    _plan_for("dynamic"), _judge_dynamic)
