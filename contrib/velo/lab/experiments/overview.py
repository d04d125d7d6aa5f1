"""What the papers are about, in one picture that any machine can make: counts, which no scheduler changes, times with a core for each
rank, and the thesis's machine in the simulator."""

import statistics

from ...compare.plan import DEFAULT_BY_REFERENCE, QUICK_SUITE
from .. import building
from ..experiment import FITTED, Experiment
from ..judging import because, numbers, too_noisy, tolerance, verdict
from ..measurement import SIMULATED, Point, Workload

_POLICIES = ("static", "dynamic")
_COUNTED_RANKS, _SIMULATED_RANKS = 8, 256
_SLOTS = (8, 16, 32, 64)
_COUNTED, _TIMED, _SIMULATED = "counted", "timed", "simulated"
_DELAYED, _CREDIT_PACKETS, _OVERHEAD = "delayed_percent", "credit_packets_per_1000_messages", "overhead_percent"
_ACCEPTABLE_PERCENT = 3.0
_WORDS = {"never": "in packets, as in the papers", "auto": "by reference where credits are short"}


def _series(policy, mode):
    return f"{policy}, {mode}"


def _all_series(results):
    """(policy, mode) of what was measured."""
    names = {line.series for line in results.lines}
    return [(policy, mode) for mode in DEFAULT_BY_REFERENCE for policy in _POLICIES if _series(policy, mode) in names]


def _timed_ranks(context):
    return max(2, context.cores)


def _benchmarks(context):
    return context.choose(QUICK_SUITE, ("Exchange", "Alltoall"))


def _points(context, chosen, ranks):
    return [building.point(context, policy, slots, (("by_reference", mode),), _series(policy, mode), ranks=ranks)
            for policy in chosen for slots in building.chosen_slots(context, _SLOTS, _SLOTS) for mode in DEFAULT_BY_REFERENCE]


def _plan(context):
    context.plugin.require("by_reference")
    chosen, skipped = building.chosen_policies(context, _POLICIES)
    points_of = {}
    for name in _benchmarks(context):
        counted = building.bench(context, name, f"{_COUNTED} {name}", ranks=_COUNTED_RANKS, calls=context.choose(300, 100))
        points_of[counted] = _points(context, chosen, _COUNTED_RANKS)
    for name in _benchmarks(context):
        ranks = _timed_ranks(context)
        timed = building.bench(context, name, f"{_TIMED} {name}", ranks=ranks, pinned=True)
        points_of[timed] = [building.reference(context, building.in_packets(context))] + _points(context, chosen, ranks)
    words = ("experiment", "fig7.5", "-n", str(_SIMULATED_RANKS), "--seeds", "1", "--no-plot", "--jobs", str(context.cores))
    points_of[Workload(_SIMULATED, SIMULATED, words, _SIMULATED_RANKS, once=True, patience=5)] = [Point(_SIMULATED, "", None)]
    return building.plan(points_of, [], skipped)


def _mean(results, part, series, key):
    """By slots, over the benchmarks that all of this part's points have."""
    lines = [line for line in results.lines if line.workload.startswith(part + " ") and not line.is_reference]
    broken = {line.workload for line in lines if line.value(key) is None}
    found = {}
    for line in lines:
        if line.series == series and line.workload not in broken:
            found.setdefault(line.x, []).append(line.value(key))
    return {x: statistics.fmean(values) for x, values in sorted(found.items())}


def _simulated(results, policy, mode):
    counters = next((line.counters for line in results.lines if line.workload == _SIMULATED), {})
    names = {slots: f"average_{policy}_{slots}" + ("" if mode == "never" else "_by_reference") for slots in _SLOTS}
    return {slots: counters[name] for slots, name in names.items() if name in counters}


def _text(curves, unit=" %", digits=0):
    return "; ".join(f"{name} {numbers(curve, unit, digits)}" for name, curve in curves.items() if curve) or "not measured"


def _judge(results, context):
    return [_judge_delays(results), _judge_by_reference(results), _judge_times(results, context), _judge_simulated(results)]


def _judge_delays(results):
    static, dynamic = curves = [_mean(results, _COUNTED, _series(policy, "never"), _DELAYED) for policy in _POLICIES]
    told = [x for x in static if x in dynamic and static[x] > building.FEW_PERCENT]
    shown = (all(dynamic[x] <= static[x] + building.FEW_PERCENT for x in told) and any(dynamic[x] < static[x] - building.FEW_PERCENT for x in told)) if told else None
    return verdict("In packets fewer messages wait for credits under the dynamic one than under the static one in the same mailbox.", shown,
                   because("delayed: " + _text(dict(zip(_POLICIES, curves)), " %", 1)))


def _judge_by_reference(results):
    curves = {mode: {policy: _mean(results, _COUNTED, _series(policy, mode), _DELAYED) for policy in _POLICIES} for mode in DEFAULT_BY_REFERENCE}
    slots = min((x for of_mode in curves.values() for curve in of_mode.values() for x in curve), default=None)
    pairs = [(curves["auto"][policy].get(slots), curves["never"][policy].get(slots)) for policy in _POLICIES]
    shown = all(auto < never / 2 for auto, never in pairs) if all(None not in pair for pair in pairs) else None
    return verdict("By reference less than half as many messages wait in the smallest mailbox, whatever the policy.", shown,
                   because(*(f"delayed, {mode}: {_text(of_mode, ' %', 1)}" for mode, of_mode in curves.items())), FITTED)


def _noise(results, context):
    return max(tolerance(results, f"{_TIMED} {name}") for name in _benchmarks(context))


def _judge_times(results, context):
    timed = [f"{_TIMED} {name}" for name in _benchmarks(context)]
    rounds = min((line.rounds for line in results.lines if line.is_reference), default=0)
    noisy = too_noisy(results, *timed) or ("one round does not tell how much times vary" if rounds < 2 else "")
    noise = _noise(results, context)
    curves = {mode: {policy: _mean(results, _TIMED, _series(policy, mode), _OVERHEAD) for policy in _POLICIES} for mode in DEFAULT_BY_REFERENCE}
    auto = [value for curve in curves["auto"].values() for value in curve.values()]
    shown = all(value <= max(noise, _ACCEPTABLE_PERCENT) for value in auto) if auto and not noisy else None
    return verdict(f"With a core for each rank messages by reference cost at most {_ACCEPTABLE_PERCENT:g} % with each of the mailboxes, or no more "
                   "than the noise.", shown,
                   because(*(f"{mode}: {_text(of_mode)}" for mode, of_mode in curves.items()), f"noise {noise:.0f} %", noisy,
                           context.crowded(_timed_ranks(context)),
                           "two ranks have one peer each, and nothing to share out" if _timed_ranks(context) == 2 else ""), FITTED)


def _judge_simulated(results):
    curves = {policy: _simulated(results, policy, "never") for policy in _POLICIES}
    shown = None
    if all(curve.keys() >= {16, 32, 64} for curve in curves.values()):
        static, dynamic = curves.values()
        shown = dynamic[16] <= _ACCEPTABLE_PERCENT and static[64] <= _ACCEPTABLE_PERCENT < static[32]
    return verdict(f"On {_SIMULATED_RANKS} processes of the thesis's machine, simulated, an average overhead of {_ACCEPTABLE_PERCENT:g} % takes 64 "
                   "slots per peer under the static one and 16 under the dynamic one (figure 7.12).", shown, because("in packets: " + _text(curves)))


def _draw(context):
    def curves(part, key):
        return lambda results: {(policy, mode): _mean(results, part, _series(policy, mode), key) for policy, mode in _all_series(results)}

    def simulated(results):
        return {(policy, mode): _simulated(results, policy, mode) for policy, mode in _all_series(results)}

    ranks = _timed_ranks(context)
    return [
        (f"counted, {_COUNTED_RANKS} ranks:\nmessages that waited for credits", _panel(curves(_COUNTED, _DELAYED), "% of messages")),
        (f"counted, {_COUNTED_RANKS} ranks:\ncredit packets", _panel(curves(_COUNTED, _CREDIT_PACKETS), "for 1000 messages", has_legend=True)),
        (f"measured, {ranks} ranks on {context.cores} cores (grey: noise):\ntime that flow control costs",
         _panel(curves(_TIMED, _OVERHEAD), "overhead %", True, lambda results: _noise(results, context))),
        (f"simulated, {_SIMULATED_RANKS} processes (figure 7.5):\ntime that flow control costs", _panel(simulated, "overhead %", True)),
    ]


def _panel(curves_of, y_label, is_overhead=False, noise_of=lambda results: 0, has_legend=False):
    # One legend says it for all.
    label_of = (lambda policy, mode: f"{policy}, {_WORDS[mode]}") if has_legend else (lambda policy, mode: None)

    def draw(panel, results):
        from ...plotting import power_ticks, style_of, use_overhead_scale
        panel.axhspan(-noise_of(results), noise_of(results), color="#d9d9d9", linewidth=0)
        for (policy, mode), curve in curves_of(results).items():
            # The first one is larger, and is seen where another lies on it.
            size = 1.8 if policy == _POLICIES[0] else 1.0
            panel.plot(list(curve), list(curve.values()), label=label_of(policy, mode), markersize=5 * size, linewidth=1.5 * size,
                       **style_of(policy, 0, mode))
        power_ticks(panel, _SLOTS)
        panel.set_xlabel("slots of the mailbox for each peer", fontsize=8)
        panel.set_ylabel(y_label, fontsize=8)
        if is_overhead:
            use_overhead_scale(panel)
        else:
            panel.set_ylim(bottom=0)
    return draw


EXPERIMENT = Experiment(
    "overview", "What a mailbox is worth: static and dynamic flow control", "thesis, figures 7.5 and 7.12; demand on Velo",
    "The dynamic flow control gives slots to those that communicate, so that a smaller mailbox is enough; with messages by reference a small one "
    "is enough under both. Counts of 8 ranks and the simulated machine show the first wherever they run; times need a core for each rank.",
    _plan, _judge, _draw, least_rounds=3)
