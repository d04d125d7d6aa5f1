"""velo-lab-patterns under a real mpirun, and one experiment on the plugin under test."""

import csv
import os
import pathlib
import subprocess
import sys

import pytest

from velo_compare.command import environment
from velo_compare.process import run_limited
from velo_lab import pattern_output
from velo_trace import phases

BUILD = os.environ.get("VELO_BUILD_DIR")
MPIRUN = os.environ.get("MPIRUN", "mpirun.openmpi")
HAS_PLUGIN = bool(os.environ.get("VELO_COMPONENT_DIR"))
BTL = os.environ.get("VELO_TEST_BTL", "velo" if HAS_PLUGIN else "vader").split(",")[0]
TIME_LIMIT_S = 120
pytestmark = pytest.mark.skipif(not BUILD, reason="VELO_BUILD_DIR is not set; run by make check-mpi")
PATTERNS = {
    "alltoall": ["--active", "3"],
    "incast": ["--window", "3"],
    "blocking": ["--window", "7"],
    "nonblocking": ["--window", "7", "--bytes", "40000"],
    "scatterv": ["--hold", "2"],
}


def run_patterns(*words, program="velo-lab-patterns", **variables):
    program = pathlib.Path(BUILD) / "contrib" / "lab" / program
    command = [MPIRUN, "--oversubscribe", "-np", "4", "--mca", "mpi_yield_when_idle", "1", "--mca", "pml", "ob1", "--mca", "btl",
               f"{BTL},self", str(program), *words]
    finished = run_limited(command, environment() | variables, TIME_LIMIT_S)
    assert not finished.timed_out, command
    return finished


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern_delivers_the_right_data(pattern):
    done = run_patterns(pattern, "--seconds", "0.02", *PATTERNS[pattern])
    assert done.status == 0, done.tail()
    output = pattern_output.parse(done.stdout)
    assert output.complete and output.defects == 0
    assert 0 < output.min_usec <= output.time_usec <= output.max_usec
    assert (output.bytes_counted > 0) == (pattern in ("blocking", "nonblocking"))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_wrong_byte_is_a_failure(pattern):
    done = run_patterns(pattern, "--seconds", "0.02", *PATTERNS[pattern], VELO_LAB_CORRUPT="1")
    assert done.status != 0
    assert pattern_output.parse(done.stdout).defects > 0


def test_phases_take_their_ranks_and_mark_the_time():
    done = run_patterns("5", "2048", "1,2,3,1", program="velo-phases")
    assert done.status == 0, done.tail()
    output = phases.parse(done.stdout)
    assert output.complete
    assert [(p.ranks, p.executions, p.wrong_bytes) for p in output.phases] == [(4, 5, 0), (2, 5, 0), (2, 5, 0), (4, 5, 0)]
    assert [done for done, _ in output.marks] == list(range(21))
    times = [at_ns for _, at_ns in output.marks]
    assert times == sorted(times) and all(p.begin_ns < p.end_ns and p.slowest_us > 0 for p in output.phases)


def test_wrong_bytes_of_phases_are_counted():
    done = run_patterns("2", program="velo-phases", VELO_LAB_CORRUPT="1")
    assert done.status != 0 and all(p.wrong_bytes > 0 for p in phases.parse(done.stdout).phases)


@pytest.mark.parametrize("words, complaint", [
    (["alltoal"], "pattern 'alltoal' is not one of alltoall blocking"),
    (["alltoall", "--active", "5"], "--active: there are only 4 ranks"),
    (["incast", "--window", "x"], "--window x: expected a number from 1 to 65536"),
    (["alltoall", "--bytes"], "option --bytes has no value"),
])
def test_wrong_command_line_is_explained(words, complaint):
    done = run_patterns(*words)
    assert done.status == 2
    assert complaint in done.stderr


@pytest.mark.skipif(not HAS_PLUGIN, reason="VELO_COMPONENT_DIR is not set; run by make check-mpi")
def test_a_small_mailbox_delays_sends_and_a_large_one_does_not(velo_lab, tmp_path):
    programs = [str(pathlib.Path(BUILD) / "contrib" / name) for name in ("lab/velo-lab-patterns", "benchmark/velo-mpi-bench")]
    command = [sys.executable, str(velo_lab), "run", "5.5", "--quick", "--ranks", "4", "--slots", "8,400", "--time", "0.05",
               "--mpirun", MPIRUN, "--patterns", programs[0], "--bench", programs[1], "--output", str(tmp_path)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "5.5" / "data.csv", newline="", encoding="utf-8") as file:
        rows = {(row["workload"], row["x"]): row for row in csv.DictReader(file)}
    assert float(rows["1x4", "8"]["delayed_percent"]) > 50
    assert float(rows["1x4", "400"]["delayed_percent"]) < 1
    assert int(rows["1x4", ""]["credit_packets"].partition(".")[0]) == 0
