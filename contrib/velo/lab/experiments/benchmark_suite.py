"""Thesis, section 7.4: the Intel MPI benchmarks with 8 to 64 slots for each peer."""

import statistics

from ...compare.plan import QUICK_SUITE, SUITE
from .. import building
from ..experiment import FITTED, Experiment, Panel
from ..judging import because, numbers, settles_at, too_noisy, verdict
from ..measurement import MEASURE, Workload
from ..runner import POINTS

# Named in section 7.4.1 as abnormal and left out of the average (figure 7.12).
ABNORMAL = ("Scatterv", "Reduce_scatter", "Gatherv")
# Section 7.5: the overhead that the thesis calls acceptable, and the slots for each peer that it takes.
_ACCEPTABLE_PERCENT = 3.0
_STATIC_SLOTS, _DYNAMIC_SLOTS = 64, 16


def _plan(context):
    chosen, skipped = building.chosen_policies(context, ("static", "dynamic"))
    slots = building.chosen_slots(context, (8, 16, 32, 64), (8, 64))
    fixed = building.in_packets(context)
    points = [building.reference(context, fixed)] + [
        building.point(context, policy, count, fixed) for policy in chosen for count in slots]
    workloads = [building.bench(context, name) for name in context.choose(SUITE, QUICK_SUITE)]
    panels = [Panel(w.name, w.name, "overhead_percent", "overhead %", overhead_scale=True) for w in workloads]
    return building.plan({workload: points for workload in workloads}, panels, skipped)


def averages(results):
    """Mean overhead by policy and slots over the benchmarks that all setups have, without the abnormal ones."""
    measured = [line for line in results.lines if not line.is_reference and line.workload not in ABNORMAL]
    broken = {line.workload for line in measured if line.overhead_percent is None}
    found = {}
    for line in measured:
        if line.workload not in broken:
            found.setdefault(line.series, {}).setdefault(line.x, []).append(line.overhead_percent)
    return {series: {x: statistics.fmean(values) for x, values in sorted(of_x.items())} for series, of_x in found.items()}


def _judge(results, context):
    means = averages(results)
    noisy = too_noisy(results, *dict.fromkeys(line.workload for line in results.lines if line.workload not in ABNORMAL))
    if not {"static", "dynamic"} <= means.keys():
        return [verdict("The dynamic one needs a quarter of the slots.", None, "static and dynamic were not both run.")]
    static, dynamic = means["static"], means["dynamic"]
    return [_judge_needs(static, dynamic, noisy, context), _judge_quarter(static, dynamic, noisy, context),
            _judge_smallest(static, dynamic, noisy, context)]


def _averages_text(static, dynamic):
    return f"average static {numbers(static)}", f"dynamic {numbers(dynamic)}"


def _judge_needs(static, dynamic, noisy, context):
    needs = {"static": settles_at(static, _ACCEPTABLE_PERCENT), "dynamic": settles_at(dynamic, _ACCEPTABLE_PERCENT)}
    text = ", ".join(f"{policy} " + (f"from {slots:g} slots on" if slots else "with none of the sizes") for policy, slots in needs.items())
    shown = None
    if not noisy and all({of / 2, of} <= curve.keys() for of, curve in ((_STATIC_SLOTS, static), (_DYNAMIC_SLOTS, dynamic))):
        shown = needs == {"static": _STATIC_SLOTS, "dynamic": _DYNAMIC_SLOTS}
    return verdict(f"For an average overhead of {_ACCEPTABLE_PERCENT:g} % the static one needs {_STATIC_SLOTS} slots and the dynamic one "
                   f"{_DYNAMIC_SLOTS} (figure 7.12).", shown,
                   because(f"{_ACCEPTABLE_PERCENT:g} % at most: {text}", *_averages_text(static, dynamic), noisy,
                           "" if shown else context.crowded()))


def _judge_quarter(static, dynamic, noisy, context):
    pairs = [(x, 4 * x) for x in dynamic if 4 * x in static]
    shown = all(dynamic[low] <= static[high] for low, high in pairs) if pairs and not noisy else None
    return verdict("With a quarter of the slots the dynamic one costs no more than the static one with all of them (figure 7.12).", shown,
                   because(*_averages_text(static, dynamic), noisy, "" if shown else context.crowded()))


def _judge_smallest(static, dynamic, noisy, context):
    small = 8
    if noisy or not small in static.keys() & dynamic.keys():
        shown, text = None, noisy or f"not measured with {small} slots"
    else:
        shown = dynamic[small] < 2 and static[small] > 15
        text = f"dynamic {dynamic[small]:.1f} %, static {static[small]:.1f} %"
    return verdict(f"With {small} slots per peer the dynamic one's average overhead is below 2 % and the static one's above 15 % "
                   "(Spanish paper).", shown, because(text, "" if shown else context.crowded()))


def _draw_average(panel, results):
    from ...plotting import style_of, use_overhead_scale
    for number, (series, curve) in enumerate(averages(results).items()):
        panel.plot(list(curve), list(curve.values()), label=series, markersize=4, linewidth=1.3, **style_of(series, number))
    use_overhead_scale(panel)
    panel.set_xlabel("slots per peer", fontsize=8)
    panel.set_ylabel("overhead %", fontsize=8)


def _draw(_context):
    return [("average without the abnormal ones", _draw_average)]


EXPERIMENT = Experiment(
    "7.4", "The Intel MPI benchmarks", "thesis, section 7.4, figures 7.5 to 7.8 and 7.12; Spanish paper",
    "On the average of the benchmarks with 2 KB messages the dynamic flow control needs a quarter of the slots of the static "
    "one for an overhead of 3 %: 16 instead of 64 for each peer.",
    _plan, _judge, _draw)

_HOLD_NAME = "Scatterv"
# What counts as close to the reference.
_CLOSE_PERCENT = 25.0


def _plan_roots(context):
    chosen, skipped = building.chosen_policies(context, ("static", "dynamic"))
    slots = (context.slots or (16,))[0]
    fixed = building.in_packets(context)
    points_of = {}
    for hold in context.choose((1, 2, 5, 10, 20, 50), (1, 10, 50)):
        words = (POINTS, "Scatterv", "--hold", str(hold), "--seconds", f"{context.seconds:g}", "--repetitions", "3000")
        workload = Workload(f"root held for {hold}", MEASURE, words, context.ranks)
        points_of[workload] = [building.reference(context, fixed)] + [
            building.point(context, policy, slots, fixed, x=hold) for policy in chosen]
    label = "repetitions with the same root"
    return building.plan(points_of, [
        Panel(f"{_HOLD_NAME}, {slots} slots per peer", None, "overhead_percent", "overhead %", label, overhead_scale=True),
        Panel(f"{_HOLD_NAME}, {slots} slots per peer: time", None, "time_usec", "us", label)], skipped)


def _over_holds(results, policy):
    found = {line.x: line.overhead_percent for line in results.lines if line.series == policy}
    return {x: value for x, value in sorted(found.items()) if value is not None}


def _judge_roots(results, context):
    dynamic, static = _over_holds(results, "dynamic"), _over_holds(results, "static")
    noisy = too_noisy(results, *dict.fromkeys(line.workload for line in results.lines))
    text = (f"dynamic by repetitions {numbers(dynamic) or 'not measured'}", f"static {numbers(static) or 'not measured'}", noisy)
    closer = close = None
    if len(dynamic) > 1 and not noisy:
        closer = dynamic[max(dynamic)] < dynamic[min(dynamic)]
        close = dynamic[max(dynamic)] < _CLOSE_PERCENT
    return [verdict("The longer the root of Scatterv stays the same, the closer the dynamic one comes to the reference, "
                    "because it has time to adapt (figure 7.10).", closer, because(*text, "" if closer else context.crowded())),
            verdict(f"With the most repetitions it is close to the reference, within {_CLOSE_PERCENT:g} % (figure 7.10).", close,
                    because(*text, "" if close else context.crowded()), FITTED)]


ROOTS = Experiment(
    "7.4.1", "Scatterv whose root changes more slowly", "thesis, section 7.4.1, figure 7.10",
    "A pattern that changes at every call is hard for any flow control; when the root of Scatterv stays for some repetitions, "
    "the dynamic one adapts and comes close to the reference.",
    _plan_roots, _judge_roots)
