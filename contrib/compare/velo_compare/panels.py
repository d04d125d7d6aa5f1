"""A figure of equal panels, for files alone."""

import math

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend is chosen first)

_COLUMNS = 4
_PANEL_INCHES = (3.1, 2.4)
_PNG_DPI = 120


def open_panels(count, title):
    """A figure and its `count` panels."""
    columns = min(_COLUMNS, count)
    rows = math.ceil(count / columns)
    figure, grid = pyplot.subplots(
        rows,
        columns,
        squeeze=False,
        layout="constrained",
        figsize=(columns * _PANEL_INCHES[0], rows * _PANEL_INCHES[1] + 0.7),
    )
    panels = list(grid.flat)
    for unused in panels[count:]:
        unused.set_visible(False)
    figure.suptitle(title)
    return figure, panels[:count]


def save_panels(figure, paths):
    """Writes the figure to each of the files, in the format that its name tells."""
    for path in paths:
        figure.savefig(path, dpi=_PNG_DPI)
    pyplot.close(figure)
