"""The plot: overhead against slots per peer, a panel for each benchmark, their average, and the credit packets."""

import math

from matplotlib import ticker

from .panels import open_panels, save_panels

# Colours that people with colour blindness can tell apart (Okabe and Ito), and marks for black and white.
_STYLES = {
    "none": {"color": "#7f7f7f", "marker": "s", "linestyle": ":"},
    "static": {"color": "#D55E00", "marker": "o", "linestyle": "-"},
    "dynamic": {"color": "#0072B2", "marker": "^", "linestyle": "-"},
}
_OTHER_STYLES = (
    {"color": "#009E73", "marker": "D", "linestyle": "-"},
    {"color": "#CC79A7", "marker": "v", "linestyle": "-"},
    {"color": "#E69F00", "marker": "P", "linestyle": "-"},
    {"color": "#56B4E9", "marker": "X", "linestyle": "-"},
    {"color": "#000000", "marker": "*", "linestyle": "-"},
)
# Overheads reach from a few to thousands of percent: a linear scale up to this, a logarithmic one beyond.
_LINEAR_PERCENT = 10


def style_of(policy, number=0):
    """How a policy is drawn; `number` tells those apart that have no style of their own."""
    return _STYLES.get(policy) or _OTHER_STYLES[number % len(_OTHER_STYLES)]


def use_overhead_scale(panel):
    """Linear for small overheads, logarithmic beyond, and a line at zero."""
    panel.set_yscale("symlog", linthresh=_LINEAR_PERCENT)
    panel.axhline(0, color="black", linewidth=0.6)
    panel.yaxis.set_major_locator(ticker.SymmetricalLogLocator(base=10, linthresh=_LINEAR_PERCENT))
    panel.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))


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
    panel.set_title(title, fontsize=10)
    panel.set_xscale("log", base=2)
    panel.set_xticks(slots, [str(count) for count in slots])
    panel.minorticks_off()
    panel.set_xlabel("slots per peer", fontsize=8)
    panel.set_ylabel(ylabel, fontsize=8)
    panel.tick_params(labelsize=8)
    panel.grid(True, linewidth=0.4, alpha=0.6)
