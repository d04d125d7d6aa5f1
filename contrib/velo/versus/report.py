"""The tables as text, CSV and JSON."""

import csv
import json

from ..grid import grid_text

from .patterns import size_text
from .summary import noise

_LONG_FAILURE_LINES = 6
# The rounds of an idle machine lie a few percent apart.
_BUSY_PERCENT = 25


def classes_text(rows, velo):
    """The table of goals for Velo or one of its variants."""
    headings = ["pattern", "sizes", "goal", "worst", "median", "best", "", "worst at"]
    cells = [[row.case.title(), row.label, f"{row.goal:.2f}", _ratio(row.worst), _number(row.median), _ratio(row.best),
              row.verdict(), _where(row.worst)] for row in rows]
    title = f"Time of {velo} / time of the best of the others, over the sizes of a class (below 1: {velo} is faster)"
    aligns = ["<", "<", ">", ">", ">", ">", "<", "<"]
    return title + "\n" + grid_text(headings, cells, aligns, [row.case for row in rows])


def _ratio(entry):
    return "-" if entry is None else f"{entry[0]:.2f}"


def _number(value):
    return "-" if value is None else f"{value:.2f}"


def _where(entry):
    return "" if entry is None else f"{size_text(entry[1])}, against {entry[2]}"


def sizes_text(lines, contestants):
    """All sizes: times in microseconds, and the ratios."""
    velos = [c.name for c in contestants if c.is_velo]
    names = [c.name for c in contestants]
    headings = ["pattern", "bytes"] + [f"{name} us" for name in names] + ["best other"]
    headings += [f"{velo} / best" for velo in velos] + ["goal"]
    cells = []
    for line in lines:
        row = [line.case.title(), str(line.size)] + [_usec(line, name) for name in names]
        row += [line.best_other or "-"] + [_number(line.ratios.get(velo)) for velo in velos]
        cells.append(row + [_number(line.goal)])
    aligns = ["<", ">"] + [">"] * len(names) + ["<"] + [">"] * (len(velos) + 1)
    units = "; ".join(f"{case.title()}: {case.pattern.unit}" for case in dict.fromkeys(line.case for line in lines))
    return f"Times ({units})\n" + grid_text(headings, cells, aligns, [line.case for line in lines])


def _usec(line, name):
    if name in line.failed:
        return "FAILED"
    return f"{line.usec[name]:.4g}" if name in line.usec else "-"


def noise_text(lines, rounds):
    if rounds < 2:
        return "Noise: unknown, there was one round."
    spreads = noise(lines)
    listed = ", ".join(f"{name} {value:.0f} %" for name, value in spreads.items())
    text = f"Noise, how far the {rounds} rounds of a point lie apart (median over all points): {listed}"
    if max(spreads.values(), default=0) <= _BUSY_PERCENT:
        return text
    return text + "\nThat is too much for ratios to mean anything: repeat the series on an idle machine."


def missing_text(missing):
    return "\n".join(f"missing: {entry.name}: {entry.reason}" for entry in missing)


def failure_text(result):
    at = "" if result.failed_at is None else f" at {size_text(result.failed_at)}"
    lines = result.output_tail.splitlines()[-_LONG_FAILURE_LINES:]
    tail = "".join(f"\n  | {line}" for line in lines)
    return f"FAILED: {result.contestant.name}, {result.case.title()}{at}: {result.failure}\n  {result.command}{tail}"


def write_csv(path, lines, contestants):
    names = [c.name for c in contestants]
    velos = [c.name for c in contestants if c.is_velo]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["pattern", "ranks", "bytes"] + [f"{name}_usec" for name in names]
                        + [f"{name}_spread_percent" for name in names] + ["best_other"]
                        + [f"{velo}_ratio" for velo in velos] + ["goal", "failed"])
        for line in lines:
            writer.writerow([line.case.pattern.name, line.case.ranks, line.size]
                            + [line.usec.get(name) for name in names]
                            + [line.spread_percent.get(name) for name in names] + [line.best_other]
                            + [line.ratios.get(velo) for velo in velos] + [line.goal, " ".join(sorted(line.failed))])


def write_json(path, head, lines, classes, results):
    document = head | {
        "version": 1,
        "points": [_point_record(line) for line in lines],
        "classes": [_class_record(row) for row in classes],
        "runs": [_run_record(result) for result in results],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _point_record(line):
    return {"pattern": line.case.pattern.name, "ranks": line.case.ranks, "bytes": line.size, "usec": line.usec,
            "spread_percent": line.spread_percent, "failed": sorted(line.failed), "best_other": line.best_other,
            "ratios": line.ratios, "goal": line.goal}


def _class_record(row):
    return {"velo": row.velo, "pattern": row.case.pattern.name, "ranks": row.case.ranks, "sizes": row.label,
            "goal": row.goal, "worst": row.worst and row.worst[0], "median": row.median,
            "best": row.best and row.best[0], "met": row.met, "verdict": row.verdict()}


def _run_record(result):
    times = {size: vars(time) for size, time in result.times.items()}
    return {"contestant": result.contestant.name, "pattern": result.case.pattern.name, "ranks": result.case.ranks,
            "round": result.round, "command": result.command, "seconds": round(result.seconds, 3), "times": times, "line_usec": result.line_usec,
            "failure": result.failure, "failed_at": result.failed_at, "output_tail": result.output_tail}
