"""Thesis, section 5.3: how many credit slots, and how large a mailbox, the static flow control needs."""

from .. import building
from ..experiment import FITTED, OPEN, Experiment, Panel, Verdict
from ..judging import because, common, mean, settles_at, steepest, tolerance, verdict

# Table 5.2: slots for each peer, data and credit region together, from which on the overhead is stable.
STABLE_SLOTS = {1: 74, 2: 57, 3: 52, 4: 50, 5: 49}
_PACKETS = building.MESSAGE_PACKETS
_COUNTED, _COUNTED_RANKS = "counted alltoall", 8
_DELAYED = "delayed_of_pattern_percent"
# Delayed sends below this are the start of a run, when mailboxes are empty and everyone sends at once.
_NO_DELAYS_PERCENT = 1.0


def _credit_slots(context):
    return context.choose((1, 2, 3, 4, 5), (1, 2, 5))


def _plan(context):
    _, skipped = building.chosen_policies(context, ("static",))
    slots = building.chosen_slots(context, (8, 16, 24, 32, 38, 40, 42, 49, 52, 57, 64), (16, 32, 44, 57))
    fixed = building.thesis_format(context, piggyback=False)
    points = [building.reference(context, fixed)] + [
        building.point(context, "static", count, fixed, _series(n), n) for n in _credit_slots(context) for count in slots]
    marks = (38, 57)
    panels = []
    workloads = (building.ping_pong(context), building.alltoall(context))
    for workload in workloads:
        panels += [Panel(f"{workload.name}: overhead", workload.name, "overhead_percent", "overhead %",
                         overhead_scale=True, x_log=False, landmarks=marks),
                   Panel(f"{workload.name}: delayed sends", workload.name, "delayed_percent", "% of messages",
                         x_log=False, landmarks=marks)]
    points_of = {workload: points for workload in workloads}
    points_of[building.counted(context, _COUNTED, _COUNTED_RANKS)] = [
        building.point(context, "static", count, fixed, _series(n), n, ranks=_COUNTED_RANKS)
        for n in _credit_slots(context) for count in (*_around_a_message(n), STABLE_SLOTS[n] - 1, STABLE_SLOTS[n])]
    panels.append(Panel(f"{_COUNTED}: delayed sends", _COUNTED, _DELAYED, "% of messages", x_log=False, landmarks=marks))
    return building.plan(points_of, panels, skipped)


def _around_a_message(credit_slots):
    """The largest mailbox whose data region does not hold a message, and the smallest that does."""
    return _PACKETS + credit_slots - 1, _PACKETS + credit_slots


def _series(credit_slots):
    return f"{credit_slots} credit slot" + ("" if credit_slots == 1 else "s")


def _judge(results, context):
    return [_judge_message(results, context), _judge_stable(results, context), _judge_fall(results, context), _judge_same(results),
            _judge_delays(results), _judge_one_slot(results),
            Verdict("The break-even of delayed sends does not depend on the distance (1 to 14 hops).", OPEN,
                    "all ranks are on one node, there is no distance to vary.")]


def _judge_fall(results, context):
    statement = ("Alltoall's overhead falls sharply from 38, 39, 40, 41, 42 slots per peer on with 1 to 5 credit slots: the "
                 "data region then holds the 37 packets of a message (figure 5.5).")
    noise = tolerance(results, "alltoall")
    where, holds = [], []
    for n in _credit_slots(context):
        overhead, delayed = (results.curve("alltoall", _series(n), key) for key in ("overhead_percent", "delayed_percent"))
        if len(overhead) < 2:
            continue
        low, high = steepest(overhead)
        holds.append(None if overhead[low] - overhead[high] < noise else _is_around_a_message(n, low, high))
        where.append(f"{n}: from {overhead[low]:.0f} to {overhead[high]:.0f} % between {low:g} and {high:g} slots (delayed sends "
                     "between {:g} and {:g})".format(*steepest(delayed)))
    shown = None if None in holds or not holds else all(holds)
    return verdict(statement, shown, because("steepest fall, by credit slots: " + (", ".join(where) or "not measured"),
                                             "no more than the noise" if None in holds else "",
                                             "" if shown else context.crowded()))


def _is_around_a_message(credit_slots, low, high):
    """Whether it lies between the size that holds a message and the one that is stable (table 5.2)."""
    return low < STABLE_SLOTS[credit_slots] and high >= _PACKETS + credit_slots


def _counted(results, context, sizes_of):
    """Delayed messages in % of all, by credit slots, with two sizes of the mailbox: one slot too few, and enough."""
    curves = {n: results.curve(_COUNTED, _series(n), _DELAYED) for n in _credit_slots(context)}
    return {n: tuple(curve[x] for x in sizes_of(n)) for n, curve in curves.items() if set(sizes_of(n)) <= curve.keys()}


def _counted_text(found, sizes_of):
    return "; ".join(f"{n}: {few:.2f} % with {sizes_of(n)[0]} slots, {enough:.2f} % with {sizes_of(n)[1]}"
                     for n, (few, enough) in found.items())


def _judge_message(results, context):
    found = _counted(results, context, _around_a_message)
    shown = all(few >= 100.0 - building.FEW_PERCENT > enough for few, enough in found.values()) if found else None
    return verdict("Every message is delayed while the data region does not hold its 37 packets, and not every one from 38, 39, 40, 41, "
                   "42 slots per peer on with 1 to 5 credit slots (figure 5.5).", shown,
                   because("delayed, by credit slots: " + (_counted_text(found, _around_a_message) or "not measured")))


def _judge_stable(results, context):
    sizes_of = lambda n: (STABLE_SLOTS[n] - 1, STABLE_SLOTS[n])
    found = _counted(results, context, sizes_of)
    shown = all(few > building.FEW_PERCENT >= enough for few, enough in found.values()) if found else None
    return verdict("No message is delayed from 74, 57, 52, 50, 49 slots on with 1 to 5 credit slots, and some are with one slot fewer "
                   "(table 5.2, equation 5.5).", shown,
                   because(f"delayed, by credit slots, up to {building.FEW_PERCENT:g} % counts as none: "
                           + (_counted_text(found, sizes_of) or "not measured")))


def _judge_same(results):
    series = list(dict.fromkeys(line.series for line in results.lines if not line.is_reference))
    pairs = [[_break_even(results.curve(w, s, "delayed_percent")) for w in ("multi-ping-pong", "alltoall")] for s in series]
    known = [(s, *pair) for s, pair in zip(series, pairs) if None not in pair]
    shown = all(a == b for _, a, b in known) if known else None
    text = ", ".join(f"{s}: {a:g} and {b:g}" for s, a, b in known)
    return verdict("Ping-pong and alltoall run without delayed sends from the same sizes on (figures 5.4, 5.6).", shown,
                   because(f"below {_NO_DELAYS_PERCENT:g} % from, in slots: {text}" if known
                           else "no size was measured from which on both are free of delays"), FITTED)


def _break_even(curve):
    """Where delays end; None if they never do, or if there were none with the smallest mailbox that was measured."""
    settled = settles_at(curve, _NO_DELAYS_PERCENT)
    return None if settled is None or settled == min(curve) else settled


def _judge_delays(results):
    means = _means(results, "alltoall", "delayed_percent")
    values = list(means.values())
    shown = all(b < a for a, b in zip(values, values[1:])) if len(values) > 1 else None
    return verdict("More credit slots, fewer delayed sends (figure 5.6).", shown,
                   because("mean over the sizes: " + ", ".join(f"{s} {v:.1f} %" for s, v in means.items())))


def _judge_one_slot(results):
    means = _means(results, "multi-ping-pong", "overhead_percent")
    others = [value for series, value in means.items() if series != _series(1)]
    shown = None
    if others and _series(1) in means and abs(min(others) - means[_series(1)]) >= tolerance(results, "multi-ping-pong"):
        shown = means[_series(1)] < min(others)
    return verdict("In ping-pong one credit slot costs least: fewer stalls cost more traffic than they save (figure 5.3).",
                   shown, because("mean overhead over the sizes: " + ", ".join(f"{s} {v:.1f} %" for s, v in means.items()),
                                  "no more apart than the noise" if others and shown is None else ""))


def _means(results, workload, key):
    series = list(dict.fromkeys(line.series for line in results.lines if not line.is_reference))
    curves = {s: results.curve(workload, s, key) for s in series}
    curves = {s: curve for s, curve in curves.items() if curve}
    return dict(zip(curves, map(mean, common(*curves.values())))) if curves else {}


EXPERIMENT = Experiment(
    "5.3", "Credit slots and mailbox size of the static flow control",
    "thesis, section 5.3, figures 5.3 to 5.6, table 5.2",
    "Overhead falls sharply where the data region reaches the 37 packets of a 2 KB message and is stable at 57, 52, 50 and "
    "49 slots for 2 to 5 credit slots, alike in multi-ping-pong and alltoall.",
    _plan, _judge)
