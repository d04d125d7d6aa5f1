"""Credits over time, as in figure 7.4 of the thesis on dynamic credit flow control."""

import numpy

from ..plotting import pyplot, set_title, with_colours
from .reader import TraceError, sizing_of
from .series import quotas_of, series_of, steps_of

_BINS_OF_A_PHASE, _BINS = 25, 250
_PNG_DPI = 150
TITLES = {"credits": "credits left at rank {rank} for sending to", "held": "credits for rank {rank}'s mailbox at",
          "quota": "quota intended for rank {rank} by"}


def write_plot(paths, traces, trace, groups, phases=None, what="credits"):
    """Draws the picture for one of the traces into each of the files; returns the series."""
    steps = quotas_of(traces, trace) if what == "quota" else steps_of(trace, what)
    if not steps:
        raise TraceError(f"{trace.path}: flow control {trace.header['policy']} has no such numbers, or nobody was connected")
    borders, places, label = _axis(trace, phases)
    series = series_of(steps, groups, borders)
    figure, axes = pyplot.subplots(figsize=(9, 4.6), layout="constrained")
    for line, colour in with_colours(series):
        axes.fill_between(places, line.least, line.most, color=colour, alpha=0.18, linewidth=0)
        axes.plot(places, line.mean, color=colour, linewidth=1.4, marker="o", markersize=2,
                  label=f"{line.group} ({line.peers} peer{'s' if line.peers > 1 else ''})")
    axes.set(xlabel=label, ylabel="credits (64-byte packets)")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    if phases:
        _mark_phases(axes, phases)
    header = trace.header
    set_title(figure, f"{header['policy']}, {sizing_of(header)}; line: mean of the peers, band: least to most", 9)
    axes.legend(title=TITLES[what].format(rank=trace.rank), fontsize=8, title_fontsize=8, loc="upper center",
                bbox_to_anchor=(0.5, -0.13), ncols=min(len(series), 4))
    axes.grid(True, linewidth=0.4, alpha=0.6)
    for path in paths:
        figure.savefig(path, dpi=_PNG_DPI)
    pyplot.close(figure)
    return series


def _axis(trace, phases):
    """Begin and end of each bin, where it is drawn, and the label of the axis."""
    own = trace.records["time_ns"].astype(numpy.int64)
    if not phases:
        edges = numpy.linspace(own[0], own[-1], _BINS + 1)
        return _pairs(edges), (_middles(edges) - own[0]) / 1e9, "seconds"
    if phases[0].begin_ns > own[-1] or phases[-1].end_ns < own[0]:
        raise TraceError(f"{trace.path}: the phases are not from the run of this trace: their times do not overlap")
    # As many bins for each phase, however long it took.
    borders, places, done = [], [], 0
    for phase in phases:
        borders.append(_pairs(numpy.linspace(phase.begin_ns, phase.end_ns, _BINS_OF_A_PHASE + 1)))
        places.append(done + _middles(numpy.linspace(0, phase.executions, _BINS_OF_A_PHASE + 1)))
        done += phase.executions
    return numpy.concatenate(borders), numpy.concatenate(places), "executions of Alltoall (each phase at an even pace)"


def _pairs(edges):
    whole = edges.astype(numpy.int64)
    return numpy.stack([whole[:-1], whole[1:]], axis=1)


def _middles(edges):
    return (edges[:-1] + edges[1:]) / 2


def _mark_phases(axes, phases):
    done = 0
    axes.set_ylim(top=axes.get_ylim()[1] * 1.08)
    for phase in phases:
        if done:
            axes.axvline(done, color="black", linewidth=0.7, linestyle=":")
        axes.annotate(f"{phase.ranks} ranks", (done + phase.executions / 2, 1.0), xycoords=("data", "axes fraction"),
                      xytext=(0, -10), textcoords="offset points", ha="center", fontsize=8)
        done += phase.executions
