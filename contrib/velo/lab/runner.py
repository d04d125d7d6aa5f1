"""Executes runs: mpirun, the policy, a program of the laboratory or the benchmark, its times and counters."""

import os
from dataclasses import dataclass

from .. import imb_output, measuring, rounds
from ..counters import ReportError, counters_of, find_report
from ..process import mca_words
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


class Runner(rounds.Runner):
    def __init__(self, tools, timeout_seconds, extra_mca=()):
        super().__init__(timeout_seconds)
        self._tools = tools
        self._extra_mca = tuple(extra_mca)

    def execute(self, run):
        workload, point = run.case, run.setup
        return self._carry_out(self._mpirun(workload, point) + self._program(workload), Outcome(workload, point, run.round), _read)

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


def _read(finished, outcome):
    workload = outcome.workload
    reader = _read_bench if workload.program == BENCH else _READERS[workload.words[0]]
    return reader(finished.stdout, outcome) or _read_counters(finished.stdout + finished.stderr, outcome)


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
    row, failure = imb_output.read_row(stdout, outcome.workload.benchmark, outcome.workload.size_bytes)
    if failure is None:
        outcome.time_usec = row.time_usec
    return failure


_READERS = {POINTS: _read_points, PHASES: _read_phases}


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
    if outcome.messages and "messages_delayed" in total:
        # Of all messages that are sent many are the barriers' when few ranks communicate.
        outcome.counters["delayed_of_pattern_percent"] = 100.0 * total["messages_delayed"] / outcome.messages
    return None
