"""Draws the table of a velo-sim experiment: a panel for each y column, a line for each combination of labels: the median of
the seeds, and a shade from the least to the largest. What was not measured is left out."""

import csv
import statistics

from . import command
from .command import EXIT_OK, Trouble
from .plotting import dress, pyplot, set_title

# Columns that tell runs apart; the others are measurements.
_LABELS = ("class", "pattern", "hops", "processes", "active", "policy", "component", "credit_slots", "piggyback",
           "buffers", "code", "ranks", "curve")
_MOST_LINES = 26


def main(arguments):
    return command.run("velo-sim plot", _plot, _options(arguments))


def _plot(options):
    columns = options.y.split(",")
    rows = _rows(options.table, [options.x, *columns])
    labels = [name for name in _LABELS if name in rows[0] and name != options.x]
    figure, panels = pyplot.subplots(1, len(columns), squeeze=False, layout="constrained",
                                     figsize=(5.2 * len(columns) + 2.5, 4.6))
    for panel, column in zip(panels.flat, columns):
        _draw(panel, rows, labels, options.x, column)
    if labels and len(panels.flat[-1].lines) <= _MOST_LINES:
        panels.flat[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=7)
    set_title(figure, options.title, 10)
    figure.savefig(options.picture, dpi=120)
    return EXIT_OK


def _rows(table, columns):
    with open(table, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    if not rows:
        raise Trouble(f"{table} has no rows")
    for column in columns:
        if column not in reader.fieldnames:
            raise Trouble(f"{table} has no column {column}; it has {', '.join(reader.fieldnames)}")
    return rows


def _options(arguments):
    parser = command.parser("velo-sim plot", __doc__)
    parser.add_argument("table", help="CSV file of an experiment")
    parser.add_argument("picture", help="PNG file to write")
    parser.add_argument("--x", required=True, help="column of the x axis")
    parser.add_argument("--y", required=True, help="columns of the y axes, with commas between them")
    parser.add_argument("--title", default="")
    return parser.parse_args(arguments)


def _draw(panel, rows, labels, x, y):
    for key, points in _curves(rows, labels, x, y).items():
        xs = sorted(points)
        line, = panel.plot(xs, [statistics.median(points[at]) for at in xs], marker=".", linewidth=1.1, label=key)
        panel.fill_between(xs, [min(points[at]) for at in xs], [max(points[at]) for at in xs], color=line.get_color(), alpha=0.2,
                           linewidth=0)
    dress(panel, "", x.replace("_", " "), y.replace("_", " "))
    if x in ("processes", "events", "packets"):
        panel.set_xscale("log", base=2)


def _curves(rows, labels, x, y):
    """The values of all seeds by x, by line."""
    lines = {}
    for row in rows:
        if row[y]:
            key = ", ".join(f"{name} {row[name]}" for name in labels)
            lines.setdefault(key, {}).setdefault(float(row[x]), []).append(float(row[y]))
    return lines

