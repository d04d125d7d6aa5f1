"""The plot: for each pattern the ratio over the size, against the best of the others and against each of them."""

from matplotlib import ticker

from ..plotting import dress, open_panels, save_panels, with_colours
from .patterns import size_text
from .summary import parts

# Okabe and Ito's colours: Velo and its variants thick, single opponents thin.
_VELO_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
_OTHER_COLOURS = ("#E69F00", "#56B4E9", "#F0E442", "#7f7f7f")
# Size 0 has a place on the logarithmic axis left of 1 byte.
_ZERO_AT = 0.5
# What lies beyond leaves the panel, so that the rest stays legible.
_RATIO_LIMITS = (0.25, 4.0)


def write_plot(paths, lines, contestants, title):
    every = parts(lines)
    known = {key: own for key, own in every.items() if any(line.ratio(velo) for line in own for velo in line.layers)} or every
    figure, panels = open_panels(len(known) + 1, title)
    for panel, ((distance, case), own) in zip(panels, known.items()):
        _draw(panel, own, contestants)
        _dress(panel, f"{case.title()}, {distance}" if distance else case.title())
    panels[-1].axis("off")
    panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize=9)
    save_panels(figure, paths)


def _draw(panel, lines, contestants):
    velos = [c.name for c in contestants if c.is_velo]
    others = [c.name for c in contestants if not c.is_velo]
    for other, colour in with_colours(others, _OTHER_COLOURS):
        both = [line for line in lines if line.ratio(velos[0], [other])]
        ratios = [line.ratio(velos[0], [other]) for line in both]
        panel.plot(_places(both), ratios, color=colour, linewidth=0.9, label=f"{velos[0]} / {other}")
    for velo, colour in with_colours(velos, _VELO_COLOURS):
        known = [line for line in lines if line.ratio(velo)]
        panel.plot(_places(known), [line.ratio(velo) for line in known], color=colour, linewidth=1.8, marker="o",
                   markersize=3, label=f"{velo} / best")
        failed = [line for line in lines if velo in line.failed]
        panel.plot(_places(failed), [1.0] * len(failed), "x", color=colour)
    for number, goal in enumerate(lines[0].case.goals()):
        ends = [max(goal.first, _ZERO_AT), max(goal.last, _ZERO_AT)]
        panel.plot(ends, [goal.ratio(lines[0].layers[velos[0]], lines[0].distance)] * 2, color="black", linestyle=":", linewidth=1.2,
                   label=f"goal of {velos[0]}" if number == 0 else None)


def _places(lines):
    return [max(line.size, _ZERO_AT) for line in lines]


def _dress(panel, title):
    panel.set_xscale("log", base=2)
    panel.set_yscale("log", base=2)
    low, high = panel.get_ylim()
    least, most = _RATIO_LIMITS
    panel.set_ylim(min(max(low, least), 1 / 1.1), max(min(high, most), 1.1))
    panel.xaxis.set_major_locator(ticker.LogLocator(base=16))
    panel.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: size_text(int(x))))
    panel.yaxis.set_major_locator(ticker.LogLocator(base=2, subs=(1.0, 1.5)))
    panel.yaxis.set_major_formatter(ticker.FormatStrFormatter("%.2g"))
    panel.minorticks_off()
    panel.axhline(1, color="black", linewidth=0.6)
    dress(panel, title, y_label="time ratio", font=7)
