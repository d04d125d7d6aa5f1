"""Figures of equal panels, for files alone, and how policies and lines look in them."""

import itertools
import math
import textwrap

import matplotlib
import numpy

matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402  (the backend is chosen first)

# Colours that people with colour blindness can tell apart (Okabe and Ito), and marks for black and white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "o^svDPX*"
_STYLES = {
    "none": {"color": "#7f7f7f", "marker": "s", "linestyle": ":"},
    "static": {"color": "#D55E00", "marker": "o", "linestyle": "-"},
    "dynamic": {"color": "#0072B2", "marker": "^", "linestyle": "-"},
}
_OTHER_STYLES = [{"color": colour, "marker": marker, "linestyle": "-"} for colour, marker in zip(COLOURS[2:], "DvPX*")]
# What goes in packets alone is hollow, whatever the policy.
_MODE_STYLES = {"never": {"linestyle": "--", "markerfacecolor": "white"}, "always": {"linestyle": ":"}}
# Overheads of less than this, in percent, are shown as next to nothing.
_LEAST_PERCENT = 25
_MOST_TICKS = 10

_COLUMNS = 4
_PANEL_INCHES = (3.1, 2.4)
_PNG_DPI = 120


def open_panels(count, title, first_is_large=False):
    """A figure and its `count` panels; a large one takes the place of four."""
    places = count + 3 * first_is_large
    columns = min(_COLUMNS, places)
    rows = math.ceil(places / columns)
    figure = pyplot.figure(layout="constrained", figsize=(columns * _PANEL_INCHES[0], rows * _PANEL_INCHES[1] + 0.7))
    grid = figure.add_gridspec(rows, columns)
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    if first_is_large:
        cells = [(slice(2), slice(2))] + [(row, column) for row, column in cells if row > 1 or column > 1]
    set_title(figure, title)
    return figure, [figure.add_subplot(grid[cell]) for cell in cells[:count]]


def set_title(figure, text, size=12):
    """In as many lines as it takes not to be cut off."""
    characters = int(figure.get_figwidth() * 72 / (0.6 * size))
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, characters)]
    figure.suptitle("\n".join(lines), fontsize=size)


def save_panels(figure, paths):
    """Writes the figure to each of the files, in the format that its name tells."""
    for path in paths:
        figure.savefig(path, dpi=_PNG_DPI)
        figure.set_layout_engine("none")  # where all is has been found
    pyplot.close(figure)


def with_colours(lines, colours=COLOURS):
    """Each line with a colour; these begin again where there are more lines."""
    return zip(lines, itertools.cycle(colours))


def style_of(policy, number=0, mode=None):
    """How a policy is drawn; `number` tells those apart that have no style of their own, `mode` is its value of by_reference."""
    return (_STYLES.get(policy) or _OTHER_STYLES[number % len(_OTHER_STYLES)]) | _MODE_STYLES.get(mode, {})


def use_overhead_scale(*panels):
    """Of what has been drawn, the same for all of them: overheads by the logarithm of the times that they stand for, as twice as
    long and half as long are equally far from zero, and a line there."""
    drawn = [limit for panel in panels for limit in panel.dataLim.intervaly if math.isfinite(limit)]
    low, high = (_height(limit) for limit in (min(drawn + [-_LEAST_PERCENT]), max(drawn + [_LEAST_PERCENT])))
    margin = 0.06 * (high - low)
    ticks = _overhead_ticks(low, high)
    for panel in panels:
        panel.set_yscale("function", functions=(_height, lambda heights: 100 * numpy.expm1(heights)))
        panel.set_ylim(100 * numpy.expm1(low - margin), 100 * numpy.expm1(high + margin))
        panel.yaxis.set_major_locator(ticker.FixedLocator(ticks))
        panel.yaxis.set_major_formatter(ticker.FuncFormatter(lambda percent, _: f"{percent:+g}" if percent else "0"))
        panel.axhline(0, color="black", linewidth=0.6)


def _height(percent):
    return numpy.log1p(numpy.maximum(percent, -99.9) / 100)


def _overhead_ticks(low, high):
    """Zero, and round numbers to both sides of it that are not too close to each other."""
    ticks = [0]
    for side in ([step * 10**power for power in range(6) for step in (1, 2, 5)], (-10, -20, -50, -75, -90, -95, -98, -99)):
        last = 0
        for percent in side:
            height = _height(percent)
            if low <= height <= high and abs(height - last) >= (high - low) / _MOST_TICKS:
                ticks.append(percent)
                last = height
    return ticks


def dress(panel, title, x_label=None, y_label=None, font=8):
    if title:
        panel.set_title(title, fontsize=font + 2)
    if x_label:
        panel.set_xlabel(x_label, fontsize=8)
    if y_label:
        panel.set_ylabel(y_label, fontsize=8)
    panel.tick_params(labelsize=font)
    panel.grid(True, linewidth=0.4, alpha=0.6)


def power_ticks(panel, xs):
    panel.set_xscale("log", base=2)
    panel.set_xticks(xs, [f"{x:g}" for x in xs])
    panel.minorticks_off()
