"""Thesis, section 7.3: credits follow a communication pattern that changes."""

import csv
import itertools
import shutil
import statistics
from pathlib import Path

from ...policies import mca
from .. import building, trace
from ..experiment import FITTED, Experiment
from ..judging import because, verdict
from ..measurement import MEASURE, Point, Workload
from ..runner import PHASES

_SLOTS = 30
_PARTS = (1, 4, 2, 1, 2, 4, 1)
_TRACED = "dynamic, traced"
# What counts as almost no overhead.
_LITTLE_PERCENT = 10.0
# Credits of two groups count as even if one has at most so many times those of the other.
_EVEN = 1.5
CREDITS = "credits.csv"
_GROUP_STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"))


def phases(ranks):
    """All, a quarter, a half, all, a half, a quarter, all."""
    return [max(2, ranks // part) for part in _PARTS]


def groups(ranks):
    """The ranks that are always active, those that are in a half, and the rest; rank 0 is where the credits are."""
    quarter, half = max(2, ranks // 4), max(2, ranks // 2)
    bounds = {"always active": (1, quarter), "in halves": (quarter, half), "in all": (half, ranks)}
    return {f"ranks {low} to {high - 1} ({name})": range(low, high) for name, (low, high) in bounds.items() if high > low}


def _plan(context):
    chosen, skipped = building.chosen_policies(context, ("static", "dynamic"))
    slots = (context.slots or (_SLOTS,))[0]
    fixed = building.thesis_format(context, piggyback=False)
    repetitions = context.choose(100, 20)
    words = (str(repetitions), str(building.MESSAGE_BYTES), ",".join(map(str, _PARTS)))
    workload = Workload("phases", MEASURE, (PHASES, *words), context.ranks)
    points = [building.reference(context, fixed)] + [building.point(context, policy, slots, fixed) for policy in chosen]
    if context.plugin.offers("trace"):
        points.append(_traced(context, slots, fixed))
    else:
        skipped.append("credits over time (figure 7.4): this plugin has no parameter btl_velo_trace")
    return building.plan({workload: points}, [], skipped)


def _traced(context, slots, fixed):
    directory = trace_directory(context)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return Point(_TRACED, "dynamic", slots, mca((("slots_per_peer", slots), *fixed, ("trace", directory))))


def trace_directory(context):
    return (Path(context.directory) / "trace").absolute()


def credits_over_time(results, context):
    """(alltoalls done, credits of rank 0 towards each group), from the last traced run; None without a trace."""
    traced = _traced_run(results)
    if traced is None:
        return None
    try:
        events = trace.credits(trace.file_of_rank(trace_directory(context), 0))
    except (trace.TraceError, OSError):
        return None
    return trace.at_marks(events, traced.marks, groups(context.ranks))


def _traced_run(results):
    """The last one; its trace is the newest."""
    traced = [o for o in results.outcomes if o.point.series == _TRACED and o.failure is None]
    return traced[-1] if traced else None


def _phase_ends(outcome):
    return list(itertools.accumulate(repetitions for _, _, repetitions in outcome.phases))


def _finish(results, context):
    """Writes the credits as CSV, and keeps of the traces that of rank 0 alone: they are large."""
    points = credits_over_time(results, context)
    if points is None:
        return
    kept = trace.file_of_rank(trace_directory(context), 0)
    for path in trace_directory(context).iterdir():
        if path != kept:
            path.unlink()
    with open(Path(context.directory) / CREDITS, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["alltoalls", "group", "median_credits", "least", "most"])
        writer.writerows([done, name, *of[name]] for done, of in points for name in of if of[name])


def _judge(results, context):
    return [_judge_credits(results, context), _judge_last(results, context), _judge_time(results, context)]


def _judge_credits(results, context):
    statement = ("The credits of rank 0 follow the pattern: ranks that communicate gain what the others lose, in both directions "
                 "(figure 7.4).")
    points = credits_over_time(results, context)
    if points is None:
        return verdict(statement, None, because("there is no trace", _steals_text(results)))
    means = _by_phase(points, results)
    if any(value is None for values in means.values() for value in values):
        return verdict(statement, None, because("the trace has no credits at the end of some phases", _steals_text(results)))
    active, _, rest = (means[name] for name in _three(means))
    everyone = [i for i, count in enumerate(phases(context.ranks)) if count == context.ranks]
    part = [i for i in range(len(active)) if i not in everyone]
    grows = all(active[i] > rest[i] for i in part)
    returns = rest[-1] > min(rest[i] for i in part)
    text = "; ".join(f"{name}: " + ", ".join(f"{value:.0f}" for value in values) for name, values in means.items())
    return verdict(statement, grows and returns,
                   because(f"median credits at the end of each of the {len(active)} phases, {text}", _steals_text(results)))


def _judge_last(results, context):
    """The last phase is the first one again."""
    statement = ("In the last phase, among all ranks again, those that were idle in between have their credits back: as many as those that "
                 "never were (figure 7.4).")
    points = credits_over_time(results, context)
    means = _by_phase(points, results) if points else {}
    if not means or any(values[-1] is None for values in means.values()):
        return verdict(statement, None, "the trace has no credits at the end of the last phase.")
    active, _, rest = (means[name][-1] for name in _three(means))
    return verdict(statement, max(active, rest) <= _EVEN * min(active, rest),
                   because(f"median credits at its end: always active {active:.0f}, in all phases of all ranks alone {rest:.0f}; up to "
                           f"{_EVEN:g} times as many count as even"), FITTED)


def _three(means):
    names = list(means)
    return names[0], names[len(names) // 2], names[-1]


def _by_phase(points, results):
    """Median credits of each group at the last mark of each phase."""
    ends = _phase_ends(_traced_run(results))
    names = points[0][1].keys()
    at = {name: [(done, of[name][0]) for done, of in points if of[name]] for name in names}
    return {name: [next((value for done, value in reversed(known) if done <= end), None) for end in ends]
            for name, known in at.items()}


def _steals_text(results):
    steals = [line.counters.get("stolen_slots") for line in results.lines if line.policy == "dynamic"]
    steals = [count for count in steals if count is not None]
    return f"dynamic moved {statistics.median(steals):.0f} slots between senders" if steals else ""


def _judge_time(results, context):
    overheads = {series: _overheads(results, series) for series in _series(results)}
    text = "; ".join(f"{series}: " + ", ".join(f"{value:.0f}" for value in values) for series, values in overheads.items())
    shown = None
    noise = _noise(results, context)
    if dynamic := overheads.get("dynamic"):
        of_part = statistics.fmean(v for v, count in zip(dynamic, phases(context.ranks)) if count <= context.ranks // 2)
        of_all = statistics.fmean(v for v, count in zip(dynamic, phases(context.ranks)) if count == context.ranks)
        if abs(of_all - of_part) >= noise:
            shown = of_part < min(of_all, _LITTLE_PERCENT)
    return verdict(f"{_SLOTS} slots per peer are enough for alltoall among a half of the ranks almost without overhead, and not "
                   "among all of them (sections 6.8, 7.3).", shown,
                   because(f"overhead in % by phase: {text or 'not measured'}",
                           f"phases of the same kind differ by {noise:.0f} % in the reference", "" if shown else context.crowded()), FITTED)


def _noise(results, context):
    """How far phases with the same ranks lie apart in the reference, in percent: the worst of them."""
    reference = results.reference("phases")
    times = {}
    for count, usec in zip(phases(context.ranks), _times(results, reference.series) if reference else []):
        times.setdefault(count, []).append(usec)
    return max((100.0 * (max(of) - min(of)) / min(of) for of in times.values()), default=0.0)


def _series(results):
    return [line.series for line in results.lines if not line.is_reference]


def _times(results, series):
    """Median time of each phase."""
    runs = [o.phases for o in results.outcomes if o.point.series == series and o.failure is None]
    return [statistics.median(usec for _, usec, _ in of_phase) for of_phase in zip(*runs)]


def _overheads(results, series):
    reference = results.reference("phases")
    bases = _times(results, reference.series) if reference else []
    return [100.0 * (usec - base) / base for usec, base in zip(_times(results, series), bases)]


def _draw(context):
    return [("overhead by phase", lambda panel, results: _draw_phases(panel, results, context)),
            ("credits of rank 0", lambda panel, results: _draw_credits(panel, results, context))]


def _draw_phases(panel, results, context):
    from ...plotting import style_of, use_overhead_scale
    names = [f"{i + 1}: {count}" for i, count in enumerate(phases(context.ranks))]
    for number, series in enumerate(_series(results)):
        values = _overheads(results, series)
        panel.plot(names[: len(values)], values, markersize=3, linewidth=1, label=series, **style_of(series, number))
    use_overhead_scale(panel)
    panel.tick_params(axis="x", rotation=45)
    panel.set_xlabel("phase: active ranks", fontsize=8)
    panel.set_ylabel("overhead %", fontsize=8)


def _draw_credits(panel, results, context):
    points = credits_over_time(results, context)
    if points is None:
        panel.text(0.5, 0.5, "no trace", transform=panel.transAxes, ha="center", va="center")
        return
    for name, (colour, marker) in zip(points[0][1], _GROUP_STYLES):
        known = [(done, *of[name]) for done, of in points if of[name]]
        x, middle = [k[0] for k in known], [k[1] for k in known]
        bars = [[k[1] - k[2] for k in known], [k[3] - k[1] for k in known]]
        panel.errorbar(x, middle, yerr=bars, color=colour, marker=marker, markersize=2.5, linewidth=1, elinewidth=0.5,
                       label=name)
    for end in _phase_ends(_traced_run(results)):
        panel.axvline(end, color="#7f7f7f", linewidth=0.7, linestyle="--")
    panel.set_xlabel("alltoalls done; lines: the pattern changes", fontsize=8)
    panel.set_ylabel("credits: median, least, most", fontsize=8)


EXPERIMENT = Experiment(
    "7.3", "Credits after the pattern has changed", "thesis, section 7.3, figure 7.4",
    "Alltoalls over all ranks, a quarter, a half, all, a half, a quarter, all, with 30 slots per peer: the credits of rank 0 move to "
    "the ranks that take part, and back.",
    _plan, _judge, _draw, _finish)
