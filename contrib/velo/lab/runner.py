"""Executes runs: mpirun, the policy, a program of the laboratory or the benchmark, its times and counters."""

import json
import os
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from .. import imb_output, measuring, rounds
from ..counters import ReportError, counters_of, find_report
from ..process import mca_words
from ..trace import phases
from .measurement import BENCH, PROGRAM, SIMULATED, Outcome

POINTS, PHASES, CALLS, OVERLAP = "points", "phases", "calls", "overlap"
RUN, ONE_SCHEDULE = "run", "measure"


@dataclass(frozen=True)
class Tools:
    mpirun: str
    measure: str
    bench: str
    goal: str = ""
    sim: str = ""


class Runner(rounds.Runner):
    def __init__(self, tools, timeout_seconds, extra_mca=()):
        super().__init__(timeout_seconds)
        self._tools = tools
        self._extra_mca = tuple(extra_mca)
        self._compiler = measuring.Compiler(self._directory.name)

    def execute(self, run):
        workload, point = run.case, run.setup
        outcome = Outcome(workload, point, run.round)
        if point.launch:
            return self._carry_out(self._launch(workload, point.launch), outcome, _read_launched)
        if workload.program == SIMULATED:
            return self._carry_out([self._tools.sim, *workload.words, "--output", self._directory.name], outcome, self._read_simulated,
                                   workload.patience)
        return self._carry_out(self._mpirun(workload, point) + self._program(workload), outcome, _read, workload.patience)

    def _read_simulated(self, _finished, outcome):
        """What an experiment has measured with one seed, as counters."""
        found = next(Path(self._directory.name).glob("*-metrics.json"), None)
        if found is None:
            return "velo-sim wrote no metrics"
        outcome.counters = {name: values[0] for name, values in json.loads(found.read_text(encoding="utf-8")).items()}
        outcome.time_usec = 1e6 * outcome.seconds
        return None

    def _mpirun(self, workload, point):
        pinned = workload.pinned and workload.ranks <= len(os.sched_getaffinity(0))
        words = [self._tools.mpirun, "--oversubscribe", "--bind-to", "core" if pinned else "none", "-np", str(workload.ranks)]
        # More ranks than cores: those that wait give way.
        layer = (("pml", "cm"), ("btl", "self")) if ("mtl", "velo") in point.mca else (("pml", "ob1"), ("btl", "velo"))
        parameters = [("mpi_yield_when_idle", "0" if pinned else "1"), *layer, ("btl_velo_flow_control", point.policy), ("btl_velo_report", "json")]
        return words + mca_words((*parameters, *point.mca, *self._extra_mca))

    def _launch(self, workload, launch):
        contestant = launch.contestant
        if contestant.mpi == "openmpi":
            words = [*mca_words((*launch.mca, *self._extra_mca)), getattr(self._tools, launch.program)]
        else:
            words = [self._compiler.program(contestant.mpicc)]
        return contestant.command(workload.ranks, [*words, *launch.words])

    def _program(self, workload):
        program = [] if workload.program == PROGRAM else [getattr(self._tools, workload.program)]
        program += workload.words
        return program + (self._lengths(workload.size_bytes) if workload.program == BENCH else [])


def _read(finished, outcome):
    workload = outcome.workload
    reader = {BENCH: _read_bench, PROGRAM: _read_nas}.get(workload.program) or _READERS[workload.words[0]]
    return reader(finished.stdout, outcome) or _read_counters(finished.stdout + finished.stderr, outcome)


def _read_launched(finished, outcome):
    failure = _LAUNCHED[outcome.point.launch.words[0]](finished.stdout, outcome)
    outcome.counters |= _told_between_nodes(finished.stdout + finished.stderr)
    return failure


def _told_between_nodes(text):
    """What processes say at the end with btl_velo_verbose 5; of multicast, the one that sent most."""
    told = [dict(zip(words[::2], map(int, words[1::2]))) for words in map(str.split, re.findall(r"multicast: (multicasts_sent [^\n]*)", text))]
    counters = max(told, key=lambda counters: counters["multicasts_sent"], default={})
    if sent := re.findall(r"to other nodes (\d+) messages, to (\d+) processes", text):
        counters |= {"network_messages": sum(int(messages) for messages, _ in sent), "network_peers": sum(int(peers) for _, peers in sent)}
    return counters


def _read_overlap(stdout, outcome):
    output = measuring.parse(stdout)
    if output.overlap is None or not output.complete:
        return "the output ends early"
    found = output.overlap
    if found.defects:
        return f"data check: {found.defects} defects"
    outcome.time_usec = found.overlapped_usec
    outcome.counters = {
        "pure_usec": found.pure_usec, "compute_usec": found.compute_usec, "wait_usec": found.wait_usec,
        # As of IMB-NBC.
        "overlap_percent": max(0.0, min(100.0, 100.0 * (found.pure_usec + found.compute_usec - found.overlapped_usec)
                                        / max(found.pure_usec, found.compute_usec))),
        "slowdown_percent": 100.0 * found.lost_usec / found.compute_usec}
    return None


def _read_run(stdout, outcome):
    """Of velo-goal run: the mean of all ranks, as ESPGOAL's paper plots it."""
    try:
        outcome.time_usec = 1e6 * statistics.fmean(rank["median_s"] for rank in json.loads(stdout)["ranks"])
    except (ValueError, KeyError) as error:
        return f"the output of velo-goal is not understood: {error!r}"
    return None


def _read_points(stdout, outcome):
    output = measuring.parse(stdout)
    if output.defects:
        return f"data check: {output.defects} defects"
    if not output.complete or not output.points:
        return "the output ends early"
    (point,) = output.points.values()
    outcome.mbytes_per_second, outcome.messages, outcome.time_usec = point.mbytes_per_second, point.messages, point.usec
    outcome.spread_percent = 100.0 * (point.max_usec - point.min_usec) / point.usec
    outcome.counted = next(iter(output.counted.values()), None)
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


def _read_nas(stdout, outcome):
    if not (seconds := re.search(r"^ *Time in seconds += +(\S+)", stdout, re.MULTILINE)):
        return "no time in the output"
    outcome.time_usec = 1e6 * float(seconds[1])
    return None if re.search(r"^ *Verification += +SUCCESSFUL", stdout, re.MULTILINE) else "its own check of the results failed"


_READERS = {POINTS: _read_points, PHASES: _read_phases}
_LAUNCHED = {POINTS: _read_points, CALLS: _read_points, OVERLAP: _read_overlap, RUN: _read_run, ONE_SCHEDULE: _read_points}


def _read_counters(text, outcome):
    try:
        report = find_report(text)
    except ReportError as error:
        return str(error)
    if report is None:
        return "no VELO-REPORT line: does Open MPI use the plugin?"
    # Counters that are newer than the list of velo-measure policies are kept as they are.
    total = {name: value for name, value in report["total"].items() if isinstance(value, (int, float))}
    outcome.counters = total | counters_of(report)
    if outcome.counted:
        messages, delayed = outcome.counted
        outcome.counters["delayed_of_pattern_percent"] = 100.0 * delayed / messages
    elif outcome.messages and "messages_delayed" in total:
        # Of all messages that are sent many are the barriers' when few ranks communicate.
        outcome.counters["delayed_of_pattern_percent"] = 100.0 * total["messages_delayed"] / outcome.messages
    return None
