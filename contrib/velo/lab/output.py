"""The files of an experiment, in a directory of its own: data.csv, result.json, plot.png, plot.svg."""

import csv
import json
import time

DATA, RESULT, PNG, SVG, PHASES = "data.csv", "result.json", "plot.png", "plot.svg", "phases.csv"
VERSION = 2
_FIELDS = ("workload", "series", "policy", "x", "is_reference", "ranks", "rounds", "time_usec", "time_min_usec",
           "time_max_usec", "spread_percent", "overhead_percent", "mbytes_per_second")


def write_data(directory, lines):
    counters = list(dict.fromkeys(name for line in lines for name in line.counters))
    with open(directory / DATA, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*_FIELDS, *counters])
        for line in lines:
            values = [getattr(line, name) for name in _FIELDS] + [line.counters.get(name) for name in counters]
            writer.writerow(["" if value is None else value for value in values])


def write_phases(directory, outcomes):
    if not any(outcome.phases for outcome in outcomes):
        return
    with open(directory / PHASES, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["series", "round", "phase", "active_ranks", "usec", "repetitions"])
        for outcome in outcomes:
            for number, phase in enumerate(outcome.phases):
                writer.writerow([outcome.point.series, outcome.round, number, *phase])


def write_result(directory, experiment, plan, verdicts, outcomes, settings):
    document = {
        "version": VERSION,
        "name": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "statement": experiment.statement,
        "when": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "settings": settings,
        "verdicts": [vars(verdict) for verdict in verdicts],
        "skipped": plan.skipped,
        "runs": [_run(outcome) for outcome in outcomes],
    }
    (directory / RESULT).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def write_skipped(directory, experiment, reason, settings):
    """An experiment that the plugin cannot do is a result too."""
    document = {"version": VERSION, "name": experiment.name, "title": experiment.title, "source": experiment.source,
                "statement": experiment.statement, "when": time.strftime("%Y-%m-%d %H:%M:%S %z"), "settings": settings,
                "verdicts": [], "skipped": [reason], "runs": []}
    (directory / RESULT).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _run(outcome):
    return {
        "workload": outcome.workload.name,
        "series": outcome.point.series,
        "x": outcome.point.x,
        "round": outcome.round,
        "seconds": round(outcome.seconds, 3),
        "time_usec": outcome.time_usec,
        "failure": outcome.failure,
        "command": outcome.command,
        "output_tail": outcome.output_tail,
    }
