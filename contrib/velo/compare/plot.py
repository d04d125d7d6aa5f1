"""The plot: overhead against slots per peer, on the average and at worst, why that is so, and a panel for each benchmark, with
one scale for the overheads of all."""

import math

from ..plotting import dress, open_panels, power_ticks, save_panels, style_of, use_overhead_scale
from .story import MEANING
from .summary import overhead_percent

_NOISE_COLOUR = "#d9d9d9"
_MOST_COLUMNS = 3  # of the legend


def write_plot(path, lines, averages, chosen, title):
    """Draws the lines and averages of one message size."""
    cases = list(dict.fromkeys(line.case for line in lines))
    figure, panels = open_panels(5 + len(cases), title, first_is_large=True)
    noise = [line for line in lines if line.is_reference and line.rounds > 1]
    _draw_average(panels[0], averages, chosen, bool(noise))
    _draw_all(panels[1], "worst benchmark", "overhead %", averages, chosen, "worst_percent")
    _draw_all(panels[2], "messages that waited for credits", "% of messages", averages, chosen, "delayed_percent")
    _draw_all(panels[3], "messages by reference", "% of messages", averages, chosen, "by_reference_percent")
    _draw_all(panels[4], "credit packets", "per 1000 messages", averages, chosen, "credit_packets_per_1000_messages")
    for panel in panels[:5]:
        panel.set_facecolor("#f3f3f3")
    for panel, case in zip(panels[5:], cases):
        of_case = [line for line in lines if line.case == case]
        _draw_all(panel, case.benchmark, "overhead %", of_case, chosen, "overhead_percent")
        for line in noise:
            if line.case == case:
                panel.axhspan(*(overhead_percent(time, line.time_usec) for time in (line.time_min_usec, line.time_max_usec)),
                              color=_NOISE_COLOUR, linewidth=0)
    use_overhead_scale(panels[0])
    use_overhead_scale(panels[1], *panels[5:])
    save_panels(figure, [path])


def _draw_average(panel, averages, chosen, shows_noise):
    few = min(chosen.slots)
    _draw_all(panel, "average of the benchmarks", "overhead %: how much longer than without flow control", averages, chosen,
              "overhead_percent", lambda series, values: _legend(series, values[chosen.slots.index(few)]))
    text = [f"{mode}: {MEANING[mode]}" for mode in chosen.by_reference]
    if shows_noise:
        text.append("grey: how far the times without flow control lie apart, the noise of this machine")
    text.append(f"Overhead with {few} slots per peer:")
    # Below the panel: no line is hidden.
    panel.legend(title="\n".join(text), fontsize=9, title_fontsize=8, alignment="left", loc="upper left", bbox_to_anchor=(0, -0.1),
                 ncols=min(len(chosen.policies), _MOST_COLUMNS), frameon=False, borderaxespad=0)


def _legend(series, value):
    return " ".join(series) + ("" if math.isnan(value) else f": {value:+.0f} %")


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
    panel.plot(chosen.slots, values, label=label_of(series, values), markersize=4, linewidth=1.3,
               **style_of(policy, chosen.policies.index(policy), mode))
    return not all(map(math.isnan, values))
