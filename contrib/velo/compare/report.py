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


def ratios_text(lines, chosen, reference):
    """Each benchmark's time by that of the reference: a table for each size."""
    parts = []
    for size in dict.fromkeys(line.case.size_bytes for line in lines):
        of_size = {(line.case, line.setup): line for line in lines if line.case.size_bytes == size}
        cases = list(dict.fromkeys(case for case, _ in of_size))
        rows = [(case, *series) for case in cases for series in chosen.series]
        cells = [[case.benchmark, *series] + [_ratio(of_size.get((case, Setup(series[0], count, series[1])))) for count in chosen.slots]
                 for case, *series in rows]
        headings = ["benchmark", "policy", "by ref."] + _slots_headings(chosen)
        parts.append(f"Time by that of {against(reference, size)}\n"
                     + grid_text(headings, cells, ["<"] * 3 + [">"] * len(chosen.slots), [case for case, *_ in rows]))
    return "\n\n".join(parts)


def _ratio(line):
    return NOT_AVAILABLE if line is None or line.time_ratio is None else f"{line.time_ratio:.2f}"


def averages_text(averages, chosen, reference):
    """Overhead over all benchmarks by policy, way by reference and slots: three tables for each size."""
    parts = []
    for size in dict.fromkeys(a.size_bytes for a in averages):
        of_size = {a.setup: a for a in averages if a.size_bytes == size}
        overhead = f"overhead (%) against {against(reference, size)}"
        for title, cell in (
            (f"Average {overhead}", lambda a: _percent(a.overhead_percent)),
            (f"Typical {overhead} (geometric mean of the time ratios)", lambda a: _percent(a.typical_percent)),
            (f"Worst benchmark, {overhead}", lambda a: f"{_percent(a.worst_percent)} {a.worst}"),
        ):
            rows = [[policy, mode] + [_average_cell(of_size, Setup(policy, count, mode), cell) for count in chosen.slots]
                    for policy, mode in chosen.series]
            headings = ["policy", "by ref."] + _slots_headings(chosen)
            parts.append(title + "\n" + grid_text(headings, rows, ["<", "<"] + [">"] * len(chosen.slots)))
    return "\n\n".join(parts)


def against(reference, size_bytes):
    """What an overhead is against, in words."""
    what = "Barrier" if size_bytes is None else f"{size_bytes} bytes"
    return f"{reference.policy} with {reference.slots} slots per peer, {what}"


def _slots_headings(chosen):
    return [f"{count} slots" for count in chosen.slots]


def _average_cell(by_setup, setup, cell):
    average = by_setup.get(setup)
    if average is None or average.overhead_percent is None:
        return NOT_AVAILABLE
    complete = max(a.benchmarks for a in by_setup.values())
    return cell(average) + ("" if average.benchmarks == complete else f" (of {average.benchmarks})")


def _percent(value):
    return NOT_AVAILABLE if value is None else f"{value:+.1f}"


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
    return _setup_record(average.setup) | record


def _setup_record(setup):
    return {"policy": setup.policy, "slots_per_peer": setup.slots, "by_reference": setup.by_reference}


def _run_record(result):
    run = result.run
    return {
        "benchmark": run.case.benchmark,
        "bytes": run.case.size_bytes,
        **_setup_record(run.setup),
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
