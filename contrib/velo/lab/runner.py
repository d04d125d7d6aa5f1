"""Executes runs: mpirun, the policy, a program of the laboratory or the benchmark, its times and counters."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .. import imb_output, measuring
from ..counters import ReportError, counters_of, find_report
from ..process import attempt, mca_words, shell_line
from ..trace import phases
from .measurement import Outcome

# The measuring program, whose first word is its mode, and a benchmark like the IMB's.
MEASURE, BENCH = "measure", "bench"
POINTS, PHASES = "points", "phases"


@dataclass(frozen=True)
class Tools:
    mpirun: str
    measure: str
    bench: str


class Runner:
    def __init__(self, tools, timeout_seconds, extra_mca=()):
        self._tools = tools
        self._timeout_seconds = timeout_seconds
        self._extra_mca = tuple(extra_mca)
        self._directory = tempfile.TemporaryDirectory(prefix="velo-lab-")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._directory.cleanup()

    def execute(self, run):
        workload, point = run.case, run.setup
        command = self._mpirun(workload, point) + self._program(workload)
        outcome = Outcome(workload, point, run.round, shell_line(command))
        finished, failure = attempt(command, self._timeout_seconds)
        outcome.seconds = finished.seconds
        outcome.failure = failure or _READERS[BENCH if workload.program == BENCH else workload.words[0]](finished.stdout, outcome)
        outcome.failure = outcome.failure or _read_counters(finished.stdout + finished.stderr, outcome)
        if outcome.failure:
            outcome.output_tail = finished.tail()
        return outcome

    def _mpirun(self, workload, point):
        pinned = workload.pinned and workload.ranks <= len(os.sched_getaffinity(0))
        words = [self._tools.mpirun, "--oversubscribe", "--bind-to", "core" if pinned else "none", "-np", str(workload.ranks)]
        # More ranks than cores: those that wait give way.
        parameters = [("mpi_yield_when_idle", "0" if pinned else "1"), ("pml", "ob1"), ("btl", "velo"),
                      ("btl_velo_flow_control", point.policy), ("btl_velo_report", "json")]
        return words + mca_words((*parameters, *point.mca, *self._extra_mca))

    def _program(self, workload):
        program = [getattr(self._tools, workload.program), *workload.words]
        return program + (self._lengths(workload.size_bytes) if workload.program == BENCH else [])

    def _lengths(self, size_bytes):
        if size_bytes is None:
            return []
        path = Path(self._directory.name) / f"lengths-{size_bytes}"
        path.write_text(f"{size_bytes}\n", encoding="ascii")
        return ["-msglen", str(path)]


def _read_points(stdout, outcome):
    output = measuring.parse(stdout)
    if output.defects:
        return f"data check: {output.defects} defects"
    if not output.complete or not output.points:
        return "the output ends early"
    (point,) = output.points.values()
    outcome.mbytes_per_second, outcome.messages, outcome.time_usec = point.mbytes_per_second, point.messages, point.usec
    outcome.spread_percent = 100.0 * (point.max_usec - point.min_usec) / point.usec
    return None


def _read_phases(stdout, outcome):
    output = phases.parse(stdout)
    if defects := sum(phase.defects for phase in output.phases):
        return f"data check: {defects} defects"
    if not output.complete or not output.phases:
        return "the output ends early"
    outcome.phases = [(phase.ranks, phase.slowest_us, phase.executions) for phase in output.phases]
    outcome.marks = output.marks
    outcome.time_usec = sum(usec * count for _, usec, count in outcome.phases)
    return None


def _read_bench(stdout, outcome):
    workload = outcome.workload
    output = imb_output.parse(stdout)
    section = output.section(workload.benchmark)
    row = section.row(workload.size_bytes) if section else None
    if row is None or row.time_usec is None:
        return f"no time for {workload.benchmark} in the output"
    if row.defects:
        return f"data check: {row.defects} defects"
    if not output.finished:
        return "the output ends early"
    outcome.time_usec = row.time_usec
    return None


_READERS = {POINTS: _read_points, BENCH: _read_bench, PHASES: _read_phases}


def _read_counters(text, outcome):
    try:
        report = find_report(text)
    except ReportError as error:
        return str(error)
    if report is None:
        return "no VELO-REPORT line: does Open MPI use the plugin?"
    # Counters that are newer than velo-compare's list are kept as they are.
    total = {name: value for name, value in report["total"].items() if isinstance(value, (int, float))}
    outcome.counters = total | counters_of(report)
    water = [rank["mailbox_high_water"] for rank in report["per_rank"] if "mailbox_high_water" in rank]
    outcome.counters["mailbox_high_water"] = max(water, default=None)
    if outcome.messages and "messages_delayed" in total:
        # Of all messages that are sent many are the barriers' when few ranks communicate.
        outcome.counters["delayed_of_pattern_percent"] = 100.0 * total["messages_delayed"] / outcome.messages
    return None
