"""The tables as text, CSV and JSON."""

import csv
import json
import statistics
from collections import Counter, defaultdict

from .. import machine
from ..grid import grid_text

from . import distance as distances
from .patterns import size_text
from .summary import noise, parts

_LONG_FAILURE_LINES = 6


def classes_text(rows, velo):
    """The table of goals for Velo or one of its variants."""
    if not rows:
        return ""
    headings = ["distance", "pattern", "sizes", "goal", "worst", "median", "best", "", "worst at"]
    told = {(row.distance, row.case) for row in rows if row.ratios or not row.few}
    short = dict.fromkeys((row.distance, row.case) for row in rows if (row.distance, row.case) not in told)
    rows = [row for row in rows if (row.distance, row.case) in told]
    cells = [[row.distance or "-", row.case.title(), row.label, f"{row.goal:.2f}", _ratio(row.worst), _number(row.median), _ratio(row.best),
              row.verdict(), _where(row.worst)] for row in rows]
    title = f"Time of {velo} / time of the best of the others, over the sizes of a class (below 1: {velo} is faster)"
    aligns = ["<", "<", "<", ">", ">", ">", ">", "<", "<"]
    text = title + "\n" + grid_text(headings, cells, aligns, [(row.distance, row.case) for row in rows])
    return text + "".join(f"\n{distance}, {case.title()}: too few blocks"
                          for distance, case in short)


def _ratio(entry):
    return "-" if entry is None else f"{entry[0]:.2f}"


def _number(value):
    return "-" if value is None else f"{value:.2f}"


def _where(entry):
    return "" if entry is None else f"{size_text(entry[1])}, against {entry[2]}"


def sizes_text(lines, contestants):
    """All sizes at each distance: times in microseconds, blocks, and the ratios."""
    velos = [c.name for c in contestants if c.is_velo]
    names = [c.name for c in contestants]
    with_share = [name for name in names if any(name in line.share_percent for line in lines)]
    changes = dict.fromkeys(other for line in lines for other in line.changes)
    headings = ["distance", "pattern", "bytes"] + [f"{name} us" for name in names] + ["blocks", "best other"]
    headings += [f"{velo} / best" for velo in velos] + [f"now / {other}" for other in changes]
    headings += [f"{name} in MPI" for name in with_share]
    cells = []
    lines = [line for line in lines if line.usec or line.failed]
    for line in lines:
        row = [line.distance or "-", line.case.title(), "-" if line.case.pattern.program else str(line.size)]
        row += [time_text(line, name) for name in names]
        row += [_blocks(line), line.best_other() or "-"] + [_number(line.ratio(velo)) for velo in velos]
        row += [_number(line.changes.get(other)) for other in changes]
        cells.append(row + [f"{line.share_percent[name]:.0f} %" if name in line.share_percent else "-" for name in with_share])
    aligns = ["<", "<", ">"] + [">"] * (len(names) + 1) + ["<"] + [">"] * (len(velos) + len(changes) + len(with_share))
    units = "; ".join(f"{case.title()}: {case.pattern.unit}" for case in dict.fromkeys(line.case for line in lines))
    return f"Times ({units})\n" + grid_text(headings, cells, aligns, [(line.distance, line.case) for line in lines])


def _blocks(line):
    """The fewest of a contestant."""
    return f"{min(line.blocks.values(), default=0)}" + (" few" if line.few else "")


def distances_text(results, lines, min_blocks):
    """What distances there were, and how many blocks each has."""
    times = defaultdict(list)
    for result in results:
        for size, ends in result.lines.items():
            times[result.distance(size)] += [(usec, result.contestant.name) for usec, _ in ends]
    if not times:
        return ""
    texts = []
    for distance in sorted(times, key=distances.order):
        usec = sorted(usec for usec, _ in times[distance])
        blocks = Counter(name for _, name in times[distance])
        texts.append(f"  {distance}: " + ", ".join(f"{name} {count // 2}" for name, count in blocks.items())
                     + f" blocks; a cache line took {usec[0]:.3f} to {usec[-1]:.3f} us, median {statistics.median(usec):.3f}"
                     + (", left out" if distance == distances.CHANGED else ""))
    few = sum(1 for line in lines if line.few)
    remark = f"; {few} of {len(lines)} sizes at a distance have fewer than {min_blocks} of somebody, and no ratio" if few else ""
    return f"Distances of the two processors (a block: a size in one run){remark}\n" + "\n".join(texts)


def changes_text(lines, other):
    """Velo's time / that of another build or variant of the same layer, for each case."""
    rows = []
    for (distance, case), own in parts(lines).items():
        found = [(line.changes[other], line.size) for line in own if other in line.changes]
        if found:
            middle = statistics.median(ratio for ratio, _ in found)
            rows.append([distance or "-", case.title(), *(f"{ratio:.2f}, {size_text(size)}" for ratio, size in (min(found), max(found))),
                         f"{middle:.2f}"])
    title = f"Time of Velo / time of {other}, median of pairs of blocks of one round (below 1: faster than {other})"
    return title + "\n" + (grid_text(["distance", "pattern", "best", "worst", "median of sizes"], rows, "<<<<>") if rows
                           else "too few pairs of blocks at each distance")


def time_text(line, name):
    """Microseconds; of a program seconds."""
    if name in line.failed:
        return "FAILED"
    if name not in line.usec:
        return "-"
    return f"{line.usec[name] / 1e6:.4g} s" if line.case.pattern.program else f"{line.usec[name]:.4g}"


def noise_text(lines, rounds):
    if rounds < 2:
        return "Noise: unknown, there was one round."
    spreads = noise(lines)
    listed = ", ".join(f"{name} {value:.0f} %" for name, value in spreads.items())
    text = f"Noise, how far the blocks of a point at one distance lie apart (median over all points): {listed}"
    return "\n".join(filter(None, [text, machine.noise_text(max(spreads.values(), default=0))]))


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
        writer.writerow(["distance", "pattern", "ranks", "bytes"] + [f"{name}_usec" for name in names]
                        + [f"{name}_blocks" for name in names]
                        + [f"{name}_spread_percent" for name in names] + ["best_other"]
                        + [f"{velo}_{what}" for velo in velos for what in ("ratio", "goal", "change")] + ["failed"])
        for line in lines:
            writer.writerow([line.distance, line.case.pattern.name, line.case.ranks, line.size]
                            + [line.usec.get(name) for name in names]
                            + [line.blocks.get(name) for name in names]
                            + [line.spread_percent.get(name) for name in names] + [line.best_other()]
                            + [cell for velo in velos for cell in (line.ratio(velo), (line.goal(velo) or [None])[0],
                                                                   line.changes.get(velo))]
                            + [" ".join(sorted(line.failed))])


def write_json(path, head, lines, classes, results):
    document = head | {
        "version": 2,
        "points": [_point_record(line) for line in lines],
        "classes": [_class_record(row) for row in classes],
        "runs": [_run_record(result) for result in results],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _point_record(line):
    return {"distance": line.distance, "pattern": line.case.pattern.name, "ranks": line.case.ranks, "bytes": line.size,
            "usec": line.usec, "blocks": line.blocks, "spread_percent": line.spread_percent,
            "share_percent": line.share_percent, "failed": sorted(line.failed), "best_other": line.best_other(),
            "ratios": {velo: line.ratio(velo) for velo in line.layers},
            "goals": {velo: line.goal(velo) for velo in line.layers}, "changes": line.changes}


def _class_record(row):
    return {"velo": row.velo, "distance": row.distance, "pattern": row.case.pattern.name, "ranks": row.case.ranks, "sizes": row.label,
            "goal": row.goal, "worst": row.worst and row.worst[0], "median": row.median,
            "best": row.best and row.best[0], "met": row.met, "verdict": row.verdict()}


def _run_record(result):
    times = {size: vars(time) for size, time in result.times.items()}
    return {"contestant": result.contestant.name, "pattern": result.case.pattern.name, "ranks": result.case.ranks,
            "program": result.case.pattern.program, "round": result.round, "command": result.command,
            "seconds": round(result.seconds, 3), "times": times, "share_percent": result.share_percent, "lines": result.lines,
            "failure": result.failure, "failed_at": result.failed_at, "output_tail": result.output_tail}
