"""The measuring program of velo-versus under a real mpirun, and velo-versus itself on the plugin under test."""

import json
import os
import subprocess
import sys

import pytest

from velo_compare.command import environment
from velo_compare.process import run_limited
from velo_versus import program
from velo_versus.patterns import NAMES

MPICC = os.environ.get("MPICC", "mpicc.openmpi")
MPIRUN = os.environ.get("MPIRUN", "mpirun.openmpi")
BTL = os.environ.get("VELO_TEST_BTL", "velo" if os.environ.get("VELO_COMPONENT_DIR") else "vader").split(",")[0]
TIME_LIMIT_S = 120
SIZES = (8, 1000, 4096, 65536, 1 << 20)


@pytest.fixture(scope="session")
def measure(tmp_path_factory):
    """Runs the measuring program on some ranks; it is compiled without a warning."""
    target = tmp_path_factory.mktemp("measure") / "measure"
    flags = "-std=c11 -O3 -pedantic -Wall -Wextra -Werror".split()
    subprocess.run([MPICC, *flags, str(program.SOURCE), "-o", str(target)], check=True, timeout=TIME_LIMIT_S)

    def run(ranks, *arguments, **variables):
        command = [MPIRUN, "--oversubscribe", "-n", str(ranks), "--mca", "mpi_yield_when_idle", "1", "--mca", "pml", "ob1",
                   "--mca", "btl", f"{BTL},self", str(target), *map(str, arguments)]
        finished = run_limited(command, environment() | variables, TIME_LIMIT_S)
        assert not finished.timed_out, command
        return finished

    return run


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("pattern", NAMES)
def test_every_size_has_a_time_and_right_data(measure, ranks, pattern):
    done = measure(ranks, pattern, 1, 64, *SIZES)
    assert done.status == 0, done.stderr
    output = program.parse(done.stdout)
    assert output.complete and "Open MPI" in output.library
    assert sorted(output.times) == list(SIZES)
    for time in output.times.values():
        assert time.defects == 0
        assert 0 < time.min_usec <= time.usec
        assert time.iterations >= 1 and 1 <= time.repetitions <= 5


@pytest.mark.parametrize("pattern", NAMES)
def test_one_wrong_byte_is_found(measure, pattern):
    done = measure(2, pattern, 1, 4, 2048, VELO_VERSUS_CORRUPT="1:100")
    assert "wrong data at rank 1, size 2048, offset" in done.stderr
    assert program.parse(done.stdout).times[2048].defects == 1


def test_iterations_follow_the_time_of_a_point(measure):
    short, long = (program.parse(measure(2, "pingpong", ms, 64, 8).stdout).times[8].iterations for ms in (1, 200))
    assert long > 4 * short


def test_memory_is_split_and_grows_with_use(measure):
    output = program.parse(measure(4, "memory").stdout)
    assert output.complete
    for when in ("started", "connected", "used"):
        parts = sum(output.memory[when, kind][0] for kind in ("Pss_Anon", "Pss_File", "Pss_Shmem"))
        assert output.memory[when, "Pss"][0] == pytest.approx(parts, abs=4)
        assert output.memory[when, "Pss_Anon"][0] > 100
    assert output.memory["used", "Pss_Shmem"][0] >= output.memory["started", "Pss_Shmem"][0]


@pytest.mark.parametrize(
    "ranks, arguments, complaint",
    [
        (2, ["pingpog", 1, 64, 8], "no such pattern: pingpog"),
        (2, ["pingpong", 1, 64, "8x"], "wrong number: 8x"),
        (3, ["pingpong", 1, 64, 8], "an even number of ranks is needed"),
        (2, ["pingpong"], "usage: measure PATTERN"),
    ],
)
def test_wrong_arguments_are_explained(measure, ranks, arguments, complaint):
    done = measure(ranks, *arguments)
    assert done.status != 0
    assert complaint in done.stderr


@pytest.mark.skipif(BTL != "velo", reason="needs the plugin: VELO_COMPONENT_DIR is not set")
def test_velo_versus_runs_on_the_plugin(velo_versus, tmp_path):
    command = [sys.executable, str(velo_versus), "--mpirun", MPIRUN, "--mpicc", MPICC, "--only", "vader", "--rounds", "1",
               "--patterns", "pingpong,alltoall", "--sizes", "8,4096", "--point-ms", "1", "--no-plot", "--output",
               str(tmp_path), "--variant", "static=--mca btl_velo_flow_control static"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "velo-versus.json").read_text())
    assert [entry["name"] for entry in document["contestants"]] == ["velo", "static", "vader"]
    assert len(document["points"]) == 4
    for point in document["points"]:
        assert set(point["usec"]) == {"velo", "static", "vader"} and not point["failed"]
        assert point["ratios"]["velo"] == pytest.approx(point["usec"]["velo"] / point["usec"]["vader"])
