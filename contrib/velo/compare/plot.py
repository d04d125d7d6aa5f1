"""The plot: overhead against slots per peer, on the average and at worst, why that is so, and a panel for each benchmark."""

import math

from ..plotting import dress, open_panels, power_ticks, save_panels, style_of, use_overhead_scale
from .story import MEANING

# What goes in packets alone is hollow, whatever the policy.
_MODE_STYLES = {"never": {"linestyle": "--", "markerfacecolor": "white"}, "always": {"linestyle": ":"}}


def write_plot(path, lines, averages, chosen, title):
    """Draws the lines and averages of one message size."""
    figure, panels = open_panels(5 + len({line.case for line in lines}), title, first_is_large=True)
    _draw_average(panels[0], averages, chosen)
    _draw_all(panels[1], "worst benchmark", "overhead %", averages, chosen, "worst_percent")
    use_overhead_scale(panels[1])
    _draw_all(panels[2], "messages that waited for credits", "% of messages", averages, chosen, "delayed_percent")
    _draw_all(panels[3], "messages by reference", "% of messages", averages, chosen, "by_reference_percent")
    _draw_all(panels[4], "credit packets", "per 1000 messages", averages, chosen, "credit_packets_per_1000_messages")
    for panel in panels[:5]:
        panel.set_facecolor("#f3f3f3")
    for panel, case in zip(panels[5:], dict.fromkeys(line.case for line in lines)):
        of_case = [line for line in lines if line.case == case]
        _draw_all(panel, case.benchmark, "overhead %", of_case, chosen, "overhead_percent")
        use_overhead_scale(panel)
    save_panels(figure, [path])


def _draw_average(panel, averages, chosen):
    few = min(chosen.slots)
    _draw_all(panel, "average of the benchmarks", "overhead %: how much longer than without flow control", averages, chosen,
              "overhead_percent", lambda series, values: _legend(series, values[chosen.slots.index(few)]))
    use_overhead_scale(panel)
    text = "\n".join(f"{mode}: {MEANING[mode]}" for mode in chosen.by_reference)
    panel.legend(title=f"policy, by reference, with {few} slots\n{text}", fontsize=8, title_fontsize=8, alignment="left", framealpha=0.8)


def _legend(series, value):
    return ", ".join(series) + ("" if math.isnan(value) else f": {value:+.0f} %")


def _draw_all(panel, title, y_label, records, chosen, key, label_of=lambda series, values: None):
    drawn = [_draw(panel, series, records, chosen, key, label_of) for series in chosen.series]
    if not any(drawn):
        panel.text(0.5, 0.5, "n/a", transform=panel.transAxes, ha="center", va="center")
    power_ticks(panel, chosen.slots)
    dress(panel, title, "slots per peer", y_label)


def _draw(panel, series, records, chosen, key, label_of):
    """Whether there was anything to draw."""
    policy, mode = series
    by_slots = {r.setup.slots: getattr(r, key) for r in records if (r.setup.policy, r.setup.by_reference) == series}
    values = [math.nan if by_slots.get(count) is None else by_slots[count] for count in chosen.slots]
    style = style_of(policy, chosen.policies.index(policy)) | _MODE_STYLES.get(mode, {})
    panel.plot(chosen.slots, values, label=label_of(series, values), markersize=4, linewidth=1.3, **style)
    return not all(map(math.isnan, values))
