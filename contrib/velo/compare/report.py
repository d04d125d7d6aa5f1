"""The tables as text, CSV and JSON."""

import csv
import json

from .columns import COLUMNS, NOT_AVAILABLE
from ..grid import grid_text
from .plan import Setup


def table_text(lines):
    """The table of all lines, benchmarks apart."""
    shown = [column for column in COLUMNS if column.on_screen]
    rows = [[column.text(line) for column in shown] for line in lines]
    blocks = [line.case for line in lines]
    return grid_text([c.heading for c in shown], rows, [c.align for c in shown], blocks)


def averages_text(averages, policies, slots, reference):
    """Overhead over all benchmarks by policy and slots: two tables for each size."""
    parts = []
    for size in dict.fromkeys(a.size_bytes for a in averages):
        of_size = {a.setup: a for a in averages if a.size_bytes == size}
        what = "Barrier" if size is None else f"{size} bytes"
        against = f"overhead (%) against none with {reference.slots} slots per peer, {what}"
        for title, key in (
            (f"Average {against}", "overhead_percent"),
            (f"Typical {against} (geometric mean of the time ratios)", "typical_percent"),
        ):
            rows = [[policy] + _average_cells(of_size, policy, slots, key) for policy in policies]
            headings = ["policy"] + [f"{count} slots" for count in slots]
            parts.append(title + "\n" + grid_text(headings, rows, ["<"] + [">"] * len(slots)))
    return "\n\n".join(parts)


def _average_cells(by_setup, policy, slots, key):
    complete = max(a.benchmarks for a in by_setup.values())
    cells = []
    for count in slots:
        average = by_setup.get(Setup(policy, count))
        value = None if average is None else getattr(average, key)
        if value is None:
            cells.append(NOT_AVAILABLE)
        else:
            partial = "" if average.benchmarks == complete else f" (of {average.benchmarks})"
            cells.append(f"{value:+.1f}{partial}")
    return cells


def write_csv(path, lines):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([column.key for column in COLUMNS])
        for line in lines:
            writer.writerow(["" if (value := c.value(line)) is None else value for c in COLUMNS])


def write_json(path, settings, lines, averages, results):
    document = {
        "version": 1,
        "settings": settings,
        "lines": [{column.key: column.value(line) for column in COLUMNS} for line in lines],
        "averages": [_average_record(average) for average in averages],
        "runs": [_run_record(result) for result in results],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _average_record(average):
    record = {key: value for key, value in vars(average).items() if key != "setup"}
    return {"policy": average.setup.policy, "slots_per_peer": average.setup.slots} | record


def _run_record(result):
    run = result.run
    return {
        "benchmark": run.case.benchmark,
        "bytes": run.case.size_bytes,
        "policy": run.setup.policy,
        "slots_per_peer": run.setup.slots,
        "round": run.round,
        "command": result.command,
        "seconds": round(result.seconds, 3),
        "time_usec": result.time_usec,
        "repetitions": result.repetitions,
        "counters": result.counters,
        "failure": result.failure,
        "warnings": result.warnings,
        "output_tail": result.output_tail,
    }
