"""Thesis, section 7.4.1: the three benchmarks that came out unlike the others, and a largest share of 62 slots."""

from ...policies import mca
from .. import building
from ..experiment import Experiment, Panel
from ..judging import because, common, mean, numbers, tolerance, too_noisy, verdict
from ..measurement import Point

_RANKS = 16
_SCATTERV, _GATHERV, _REDUCE_SCATTER = "Scatterv", "Gatherv", "Reduce_scatter"
# As many as a sender has of 64 slots under the static one.
_CAP, _CAPPED = 62, "dynamic, at most 62"
_SLOTS = (8, 16, 32, 64)
_DELAYED = "delayed_of_pattern_percent"
# Inefficient: more than every second message waits.
_HALF_PERCENT = 50.0


def _plan(context):
    chosen, skipped = building.chosen_policies(context, ("static", "dynamic"))
    slots = building.chosen_slots(context, _SLOTS, _SLOTS)
    fixed = building.thesis_format(context, piggyback=True)
    points_of = {}
    for name in (_SCATTERV, _GATHERV, _REDUCE_SCATTER):
        workload = building.counted(context, name, _RANKS, benchmark=name)
        points_of[workload] = [building.reference(context, fixed)] + [
            building.point(context, policy, count, fixed, ranks=_RANKS) for policy in chosen for count in slots]
        if name == _REDUCE_SCATTER and context.plugin.offers("intended_max"):
            points_of[workload] += [Point(_CAPPED, "dynamic", count, mca((("slots_per_peer", count), ("intended_max", _CAP), *fixed)))
                                    for count in slots]
    if not context.plugin.offers("intended_max"):
        skipped.append("figure 7.11: this plugin has no parameter btl_velo_intended_max")
    panels = [Panel(f"{w.name}: {title}", w.name, key, label, overhead_scale=key != _DELAYED) for w in points_of
              for key, title, label in ((_DELAYED, "delayed sends", "% of its messages"), ("overhead_percent", "time", "overhead %"))]
    return building.plan(points_of, panels, skipped)


def _delayed(results, workload, *series):
    return dict(zip(series, common(*(results.curve(workload, name, _DELAYED) for name in series))))


def _text(curves):
    texts = [f"{name} {numbers(curve, ' %', 1)}" for name, curve in curves.items() if curve]
    return "delayed: " + ("; ".join(texts) or "not measured")


def _judge(results, context):
    return [_judge_scatterv(results), _judge_gatherv(results, context), _judge_less(
        results, "static", "dynamic", "In Reduce_scatter the static one is ahead: fewer messages are delayed than under the dynamic one (figure 7.9)."),
        _judge_less(results, _CAPPED, "dynamic", f"With at most {_CAP} slots for a sender the dynamic one delays fewer messages in Reduce_scatter "
                    "(figure 7.11).")]


def _judge_scatterv(results):
    curves = _delayed(results, _SCATTERV, "static", "dynamic")
    few = [value for curve in curves.values() for x, value in curve.items() if x < max(_SLOTS)]
    return verdict(f"In Scatterv, whose root moves with each call, both are inefficient with fewer than {max(_SLOTS)} slots per peer: most "
                   "messages wait (figure 7.9).", min(few) > _HALF_PERCENT if few else None, because(_text(curves)))


def _judge_gatherv(results, context):
    overheads = results.curve(_GATHERV, "dynamic")
    noisy = too_noisy(results, _GATHERV)
    shown = all(value < -tolerance(results, _GATHERV) for value in overheads.values()) if overheads and not noisy else None
    return verdict("In Gatherv the dynamic one is faster than the reference (figure 7.9).", shown,
                   because(f"overhead {numbers(overheads)}" if overheads else "not measured", noisy, context.crowded(_RANKS)))


def _judge_less(results, less, more, statement):
    curves = _delayed(results, _REDUCE_SCATTER, less, more)
    shown = mean(curves[less]) < mean(curves[more]) - building.FEW_PERCENT if all(curves.values()) else None
    return verdict(statement, shown, because(_text(curves)))


EXPERIMENT = Experiment(
    "7.9", "Benchmarks that came out unlike the others", "thesis, section 7.4.1, figures 7.9 and 7.11",
    "Scatterv is slow with any small mailbox; Gatherv is faster with dynamic flow control than without any; Reduce_scatter is best with static "
    f"flow control, and better with at most {_CAP} slots for a sender. The thesis found no reason for the last two.",
    _plan, _judge)
