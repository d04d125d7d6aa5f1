"""The plot: overhead against slots per peer, a panel for each benchmark, their average, and the credit packets."""

import math

from ..plotting import dress, open_panels, power_ticks, save_panels, style_of, use_overhead_scale

def write_plot(path, lines, averages, policies, slots, title):
    """Draws the lines and averages of one message size."""
    benchmarks = list(dict.fromkeys(line.case.benchmark for line in lines))
    figure, panels = open_panels(len(benchmarks) + 3, title)
    for panel, benchmark in zip(panels, benchmarks):
        of_benchmark = [line for line in lines if line.case.benchmark == benchmark]
        _overhead_panel(panel, benchmark, of_benchmark, policies, slots)
    average_panel, typical_panel, credit_panel = panels[len(benchmarks) :]
    _overhead_panel(average_panel, "average", averages, policies, slots)
    _overhead_panel(typical_panel, "typical (geometric mean)", averages, policies, slots, "typical_percent")
    _credit_panel(credit_panel, averages, policies, slots)
    for summary_panel in (average_panel, typical_panel, credit_panel):
        summary_panel.set_facecolor("#f3f3f3")
    average_panel.legend(fontsize=8, framealpha=0.7)
    save_panels(figure, [path])


def _overhead_panel(panel, title, records, policies, slots, key="overhead_percent"):
    for policy in policies:
        _draw(panel, policy, slots, _series(records, policy, slots, key))
    use_overhead_scale(panel)
    _dress(panel, title, "overhead %", slots)


def _credit_panel(panel, averages, policies, slots):
    known = False
    for policy in policies:
        series = _series(averages, policy, slots, "credit_packets_per_1000_messages")
        known = known or any(not math.isnan(value) for value in series)
        _draw(panel, policy, slots, series)
    if not known:
        panel.text(0.5, 0.5, "n/a", transform=panel.transAxes, ha="center", va="center")
    _dress(panel, "credit packets, average", "per 1000 messages", slots)


def _series(records, policy, slots, key):
    values = {r.setup.slots: getattr(r, key) for r in records if r.setup.policy == policy}
    return [math.nan if values.get(count) is None else values[count] for count in slots]


def _draw(panel, policy, slots, values):
    panel.plot(slots, values, label=policy, markersize=4, linewidth=1.3, **style_of(policy))


def _dress(panel, title, ylabel, slots):
    power_ticks(panel, slots)
    dress(panel, title, "slots per peer", ylabel)
