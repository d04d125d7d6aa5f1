"""The modes of velo-mpi-bench for other programs under a real mpirun, as velo-measure transports compiles it, and velo-measure transports and velo-measure papers
themselves on the plugin under test."""

import csv
import json
import os
import pathlib
import subprocess
import sys

import pytest

from velo import measuring
from velo.compare import thesis
from velo.counters import find_report
from velo.process import environment, run_limited
from velo.trace import phases
from velo.versus.patterns import NAMES

BUILD = os.environ.get("VELO_BUILD_DIR")
CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib"
MPICC = os.environ.get("MPICC", "mpicc.openmpi")
MPIRUN = os.environ.get("MPIRUN", "mpirun.openmpi")
BTL = os.environ.get("VELO_TEST_BTL", "velo" if os.environ.get("VELO_COMPONENT_DIR") else "vader").split(",")[0]
TIME_LIMIT_S = 120
SIZES = (8, 1000, 4096, 65536, 1 << 20)
needs_plugin = pytest.mark.skipif(BTL != "velo", reason="needs the plugin: VELO_COMPONENT_DIR is not set")
# Of the papers, with what they are measured with by velo-measure papers.
PATTERNS = {
    "Pairwise": ["--active", 3],
    "Incast": ["--window", 3],
    "Blocking": ["--window", 7],
    "Uniband": ["--window", 7, "--bytes", 40000],
    "Scatterv": ["--hold", 2],
}


@pytest.fixture(scope="session")
def measure(tmp_path_factory):
    """Runs the measuring program on some ranks; it is compiled without a warning."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "FLAGS", (*measuring.FLAGS, "-Wall", "-Wextra", "-Werror"))
        target = measuring.Compiler(tmp_path_factory.mktemp("measure")).program(MPICC)

    def run(ranks, *arguments, program=target, **variables):
        """On no ranks: without mpirun, and nothing else is started for it."""
        mpirun = [MPIRUN, "--oversubscribe", "-n", str(ranks), "--mca", "mpi_yield_when_idle", "1", "--mca", "pml", "ob1",
                  "--mca", "btl", f"{BTL},self"] if ranks > 0 else []
        command = [*mpirun, str(program), *map(str, arguments)]
        finished = run_limited(command, environment() | {"OMPI_MCA_ess_singleton_isolated": "1"} | variables, TIME_LIMIT_S)
        assert not finished.timed_out, command
        return finished

    return run


def points(measure, ranks, benchmark, sizes, milliseconds, *further, **variables):
    return measure(ranks, "points", benchmark, "--bytes", ",".join(map(str, sizes)), "--seconds", milliseconds / 1000, "--window", 64,
                   "--one-buffer", 1, *further, **variables)


def usual(names, *chosen):
    """Those for which one of each kind stands."""
    return pytest.mark.parametrize("pattern", [pytest.param(name, marks=() if name in chosen else pytest.mark.slow) for name in names])


@pytest.mark.parametrize("ranks", [4, pytest.param(2, marks=pytest.mark.slow)])
@usual(NAMES, "pingpong", "uniband", "alltoall", "touched")
def test_every_size_has_a_time_and_right_data(measure, ranks, pattern):
    done = points(measure, ranks, pattern, SIZES, 1, "--line", 0.001)
    assert done.status == 0, done.stderr
    output = measuring.parse(done.stdout)
    assert bool(output.lines) == (ranks == 2)
    assert output.complete and "Open MPI" in output.library
    assert sorted(output.points) == list(SIZES)
    for point in output.points.values():
        assert point.defects == 0
        assert 0 < point.min_usec <= point.usec <= point.max_usec
        assert point.iterations >= 1 and 1 <= point.repetitions <= 5


def test_so_many_calls_in_so_many_groups_are_exactly_so_many(measure):
    output = measuring.parse(measure(4, "points", "Alltoall", "--calls", 7, "--active", 2, "--groups", 2).stdout)
    assert output.complete
    (point,) = output.points.values()
    # Two messages of each group in each call, of which the first and the last are checked and not timed.
    assert (point.iterations, point.repetitions, point.messages) == (7, 1, 2 * 2 * (7 + 2))


@needs_plugin
def test_under_the_thesis_2048_bytes_take_37_packets_and_one_more_a_rendezvous(measure):
    protocol = {f"OMPI_MCA_{name}": value for name, value in thesis.parameters()} | {"OMPI_MCA_btl_velo_report": "json"}

    def packets(size):
        done = measure(2, "points", "PingPong", "--bytes", size, "--calls", 20, **protocol)
        (point,) = measuring.parse(done.stdout).points.values()
        return find_report(done.stdout + done.stderr)["total"]["data_packets"], point.messages

    # One each, and what comes with them whatever their size.
    least, messages = packets(0)
    assert messages > 40 and packets(2048) == (least + 36 * messages, messages)
    assert packets(2049)[0] < least + 9 * messages


@usual(NAMES, "pingpong")
def test_one_wrong_byte_is_found(measure, pattern):
    done = points(measure, 2, pattern, [2048], 1, VELO_MPI_BENCH_CORRUPT="0:100")
    assert done.status != 0
    assert "data check failed: rank" in done.stderr and "size 2048" in done.stderr
    assert measuring.parse(done.stdout).points[2048].defects > 0


@usual(PATTERNS, "Pairwise", "Incast", "Blocking", "Scatterv")
def test_a_pattern_of_the_papers_delivers_the_right_data_and_counts_its_messages(measure, pattern):
    done = measure(4, "points", pattern, "--seconds", "0.02", "--repetitions", 40, *PATTERNS[pattern])
    assert done.status == 0, done.tail()
    output = measuring.parse(done.stdout)
    (point,) = output.points.values()
    assert output.complete and point.defects == 0 and point.mbytes_per_second > 0
    of_a_call = {"Pairwise": 3 * 2, "Incast": 3 * 3, "Blocking": 2 * 7, "Uniband": 2 * 7, "Scatterv": 3}[pattern]
    calls, rest = divmod(point.messages, of_a_call)
    # Two are checked, and some find out how long one takes.
    assert rest == 0 and point.iterations * point.repetitions <= 40 < 40 + 2 <= calls + 40


def test_a_wrong_byte_of_a_pattern_of_the_papers_is_a_failure(measure):
    done = measure(4, "points", "Incast", "--seconds", "0.02", *PATTERNS["Incast"], VELO_MPI_BENCH_CORRUPT="1:100")
    wrong = measuring.parse(done.stdout).points
    assert done.status != 0 and wrong and all(point.defects > 0 for point in wrong.values())


def test_a_cache_line_is_timed_beside_each_size(measure):
    output = measuring.parse(points(measure, 2, "PingPong", [8, 4096], 1, "--line", 0.001).stdout)
    assert sorted(output.lines) == [8, 4096] and all(number > 0 for ends in output.lines.values() for end in ends for number in end)
    assert output.lines[8][1] == output.lines[4096][0], "after one size is before the next"


def test_memory_is_split_and_grows_with_use(measure):
    output = measuring.parse(measure(4, "memory").stdout)
    assert output.complete
    for when in ("started", "connected", "used"):
        parts = sum(output.memory[when, kind][0] for kind in ("Pss_Anon", "Pss_File", "Pss_Shmem"))
        assert output.memory[when, "Pss"][0] == pytest.approx(parts, abs=4)
        assert output.memory[when, "Pss_Anon"][0] > 100
    assert output.memory["used", "Pss_Shmem"][0] >= output.memory["started", "Pss_Shmem"][0]


def test_a_flood_ends_with_all_messages_in_their_order(measure):
    done = measure(2, "flood", 3000, 1024, 0.5)
    assert done.status == 0, done.tail()
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[0] for row in rows} == {"flood", "receive"} and all(int(row[2]) > 0 for row in rows)


def test_phases_take_their_ranks_and_mark_the_time(measure):
    done = measure(4, "phases", 5, 2048, "1,2,3,1")
    assert done.status == 0, done.tail()
    output = phases.parse(done.stdout)
    assert output.complete
    assert [(p.ranks, p.executions, p.defects) for p in output.phases] == [(4, 5, 0), (2, 5, 0), (2, 5, 0), (4, 5, 0)]
    assert [done for done, _ in output.marks] == list(range(21))
    times = [at_ns for _, at_ns in output.marks]
    assert times == sorted(times) and all(p.begin_ns < p.end_ns and p.slowest_us > 0 for p in output.phases)


@pytest.mark.skipif(not BUILD, reason="VELO_BUILD_DIR is not set; run by make check-mpi")
def test_defects_of_phases_are_counted(measure):
    done = measure(4, "phases", 2, VELO_MPI_BENCH_CORRUPT="1:0")
    assert done.status != 0 and all(p.defects > 0 for p in phases.parse(done.stdout).phases)


@pytest.mark.parametrize("arguments, complaint", [
    (["points", "pingpog"], "pingpog: no such benchmark"),
    (["points", "PingPong", "--bytes", "8x"], "-bytes 8x: expected a number from 0"),
    (["points", "PingPong"], "an even number of ranks is needed"),
    (["points", "Pairwise", "--active", "5"], "--active: there are only 1 ranks"),
    (["flood", "1", "8", "1"], "flood MESSAGES BYTES SECONDS, with two ranks"),
    (["phases", "1", "8", "1,,2"], "Usage: velo-mpi-bench phases"),
])
def test_a_wrong_command_line_is_explained(measure, arguments, complaint):
    done = measure(0, *arguments)
    assert done.status == 2
    assert complaint in done.stderr


@needs_plugin
def test_velo_versus_runs_on_the_plugin(velo_versus, tmp_path):
    command = [sys.executable, *map(str, velo_versus), "--mpirun", MPIRUN, "--mpicc", MPICC, "--only", "vader", "--rounds", "1",
               "--patterns", "alltoall", "--sizes", "8,4096", "--point-ms", "1", "--no-plot", "--output",
               str(tmp_path), "--variant", "static=--mca btl_velo_flow_control static", "--min-blocks", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "transports.json").read_text())
    assert [entry["name"] for entry in document["contestants"]] == ["velo", "static", "vader"]
    assert {(point["pattern"], point["bytes"]) for point in document["points"]} == {("alltoall", 8), ("alltoall", 4096)}
    for point in document["points"]:
        assert set(point["blocks"]) == {"velo", "static", "vader"} and not point["failed"]
        if set(point["usec"]) == set(point["blocks"]):  # in one round they may have run at different distances
            assert point["ratios"]["velo"] == pytest.approx(point["usec"]["velo"] / point["usec"]["vader"])


@pytest.mark.slow
@needs_plugin
def test_velo_versus_times_whole_programs_and_their_calls_of_mpi(velo_versus, mpi_bench, tmp_path):
    command = [sys.executable, *map(str, velo_versus), "--mpirun", MPIRUN, "--mpicc", MPICC, "--only", "vader", "--rounds", "1", "--min-blocks", "1",
               "--point-ms", "1", "--no-plot", "--output", str(tmp_path), "--program", f"bench={mpi_bench} points Alltoall --bytes 8,4096 --seconds 0.01"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = json.loads((tmp_path / "transports.json").read_text())["runs"]
    assert [(run["contestant"], run["failure"]) for run in runs] == [("velo", None), ("vader", None)]
    for run in runs:
        assert 0 < run["share_percent"] < 100 and run["times"]["0"]["usec"] > 0
        assert all(number > 0 for end in run["lines"]["0"] for number in end), "the distance before and after"


@needs_plugin
@pytest.mark.skipif(not BUILD, reason="VELO_BUILD_DIR is not set; run by make check-mpi")
def test_in_velo_lab_a_small_mailbox_delays_sends_and_a_large_one_does_not(tmp_path):
    program = str(pathlib.Path(BUILD) / "contrib/benchmark/velo-mpi-bench")
    command = [sys.executable, str(CONTRIB / "measure/velo-measure"), "papers", "run", "5.4", "--quick", "--ranks", "4", "--slots", "8,400", "--time",
               "0.05", "--mpirun", MPIRUN, "--measure", program, "--bench", program, "--output", str(tmp_path)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "5.4" / "data.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    delayed = [[float(row["delayed_percent"]) for row in rows if row["x"] == slots] for slots in ("8", "400")]
    assert [len(each) for each in delayed] == [2, 2] and min(delayed[0]) > 50 and max(delayed[1]) < 1, rows
    assert [float(row["credit_packets"]) for row in rows if not row["x"]] == [0]


@pytest.mark.slow
@needs_plugin
def test_a_flood_stays_in_the_pool_of_the_mtl_and_is_drawn(tmp_path):
    words = [sys.executable, str(CONTRIB / "measure/velo-measure"), "flood", "--messages", "5000", "--seconds", "0.3", "--mpirun", MPIRUN, "--mpicc", MPICC]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "flood.csv", newline="", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    assert {row["phase"] for row in rows} == {"flood", "receive"} and (tmp_path / "flood.svg").stat().st_size > 1000
