"""The plot of an experiment: its panels, and beneath them the paper's statements with what was seen."""

import textwrap

from ..plotting import COLOURS, MARKERS, dress, open_panels, power_ticks, save_panels, style_of, use_overhead_scale

_CHARACTERS_FOR_A_PANEL = 50
_LINE_INCHES = 0.14


def write_plot(paths, experiment, plan, results, verdicts, context, scale):
    extra = experiment.draw(context) if experiment.draw else []
    count = len(plan.panels) + len(extra)
    figure, axes = open_panels(count, f"{experiment.name}  {experiment.title}")
    for axis, panel in zip(axes, plan.panels):
        _draw(axis, panel, results)
        _dress(axis, panel.title)
    for axis, (title, draw) in zip(axes[len(plan.panels):], extra):
        draw(axis, results)
        _dress(axis, title)
    width = min(count, 4) * _CHARACTERS_FOR_A_PANEL
    text = _beneath(experiment, verdicts, scale, width)
    figure.set_figheight(figure.get_figheight() + _LINE_INCHES * len(text.splitlines()))
    figure.supxlabel(text, x=0.01, ha="left", fontsize=8)
    save_panels(figure, paths)


def _beneath(experiment, verdicts, scale, width):
    paragraphs = [f"Paper ({experiment.source}): {experiment.statement}", f"Here: {scale}."]
    paragraphs += [verdict.text() for verdict in verdicts]
    return "\n".join(textwrap.fill(text, width) for text in paragraphs)


def belongs(line, panel):
    """A panel of one workload, or of all whose names begin with its own."""
    if panel.workload is not None and line.workload != panel.workload and not line.workload.startswith(panel.workload + " "):
        return False
    return panel.series is None or line.series in panel.series


def _draw(axis, panel, results):
    shown = [line for line in results.lines if line.x is not None and belongs(line, panel)]
    for number, series in enumerate(dict.fromkeys(line.series for line in shown)):
        known = [(line.x, line.value(panel.key)) for line in shown if line.series == series]
        known = sorted((x, y) for x, y in known if y is not None)
        policy = next(line.policy for line in shown if line.series == series)
        axis.plot([x for x, _ in known], [y for _, y in known], label=series, markersize=3.5, linewidth=1.2,
                  **_style(series, policy, number))
    for x in panel.landmarks:
        axis.axvline(x, color="#7f7f7f", linewidth=0.7, linestyle="--")
    if panel.overhead_scale:
        use_overhead_scale(axis)
    if panel.x_log:
        xs = sorted({line.x for line in shown})
        power_ticks(axis, xs if len(xs) < 8 else xs[::2])
    axis.set_xlabel(panel.x_label, fontsize=8)
    axis.set_ylabel(panel.y_label, fontsize=8)


def _style(series, policy, number):
    """Policies look as in velo-measure policies; what is no plain policy takes the next colour."""
    if series == policy:
        return style_of(policy, number)
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "linestyle": "--"}


def _dress(axis, title):
    dress(axis, title, font=7)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=6, framealpha=0.7)
