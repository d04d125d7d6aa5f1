"""velo-mpi-bench under a real mpirun. Tests that ask for the same job share it."""

import functools
import os

import pytest

from velo import imb_output, measuring
from velo.process import environment, run_limited

MPIRUN = os.environ.get("MPIRUN", "mpirun.openmpi")
BTL = os.environ.get("VELO_TEST_BTL", "velo" if os.environ.get("VELO_COMPONENT_DIR") else "vader").split(",")[0]
TIME_LIMIT_S = 120
# Of a process that no mpirun has started: nothing else is started for it.
ALONE = {"OMPI_MCA_ess_singleton_isolated": "1"}
BENCHMARKS = (
    "PingPong PingPing Sendrecv Exchange Uniband Biband Allreduce Reduce Reduce_scatter Allgather Allgatherv Gather "
    "Gatherv Scatter Scatterv Alltoall Alltoallv Bcast Barrier"
).split()
WITH_DATA = [name for name in BENCHMARKS if name != "Barrier"]


@pytest.fixture(scope="session")
def bench(mpi_bench):
    """Runs velo-mpi-bench on some ranks; without mpirun on none."""

    @functools.cache
    def run(ranks, *arguments, **variables):
        mpirun = [MPIRUN, "--oversubscribe", "-np", str(ranks), "--mca", "mpi_yield_when_idle", "1", "--mca", "pml", "ob1",
                  "--mca", "btl", BTL if BTL == "velo" else f"{BTL},self"] if ranks > 0 else []
        command = [*mpirun, str(mpi_bench), *arguments]
        finished = run_limited(command, environment() | ALONE | variables, TIME_LIMIT_S)
        assert not finished.timed_out, command
        return finished

    return run


@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)])
def test_all_benchmarks_pass_their_data_check(bench, ranks):
    """Reductions take whole floats."""
    done = bench(ranks, *BENCHMARKS, "-data_check", "1", "-iter", "4", "-npmin", str(ranks), "-window_size", "8",
                 "-msglog", "0:17")
    assert done.status == 0, done.stderr
    output = imb_output.parse(done.stdout)
    assert output.finished
    assert [section.benchmark for section in output.sections] == BENCHMARKS
    for section in output.sections:
        assert section.rows and not section.notices
        assert all(row.defects == 0 and row.repetitions == 4 for row in section.rows)
    for name, smallest in (("Bcast", 1), ("Reduce", 4)):
        assert [row.size_bytes for row in output.section(name).rows][:2] == [0, smallest]


@pytest.mark.parametrize("benchmark", WITH_DATA)
def test_one_wrong_byte_fails_the_check(bench, benchmark):
    done = bench(2, *WITH_DATA, "-data_check", "1", "-iter", "4", "-msglog", "11:11", "-zero_size", "off",
                 "-window_size", "4", VELO_MPI_BENCH_CORRUPT="0:100")
    assert done.status == 1
    assert "data check failed: rank " in done.stderr
    assert f"benchmark {benchmark}, size 2048, offset 100" in done.stderr
    row = imb_output.parse(done.stdout).section(benchmark).row(2048)
    assert row.defects > 0


def test_warm_up_is_checked_without_being_asked(bench):
    done = bench(2, "Alltoall", "-iter", "4", "-msglog", "11:11", VELO_MPI_BENCH_CORRUPT="1:5")
    assert done.status == 1
    assert "benchmark Alltoall, size 2048, offset 5, iteration 0" in done.stderr


def test_moving_root_passes_the_check(bench):
    done = bench(3, "Bcast", "Gather", "Scatterv", "Reduce", "-root_shift", "on", "-data_check", "1", "-iter", "7",
                 "-npmin", "3", "-msglog", "6:7", "-sync", "off")
    assert done.status == 0, done.stderr


def test_numbers_of_processes_double_up_to_all(bench):
    sections = imb_output.parse(bench(3, "Allreduce", "PingPong", "-iter", "2", "-msglog", "3:3").stdout).sections
    assert [(s.benchmark, s.processes) for s in sections] == [("Allreduce", 2), ("Allreduce", 3), ("PingPong", 2)]


@pytest.mark.parametrize("mode, rows", [("0", 1), ("1", 2)])
def test_multi_runs_pairs_at_once(bench, mode, rows):
    done = bench(4, "PingPong", "-multi", mode, "-iter", "2", "-msglog", "5:5", "-zero_size", "off")
    section = imb_output.parse(done.stdout).section("Multi-PingPong")
    assert (section.processes, section.groups, len(section.rows)) == (2, 2, rows)


def test_lengths_come_from_a_file_and_long_ones_are_repeated_less(bench, tmp_path):
    lengths = tmp_path / "lengths"
    lengths.write_text("# two sizes\n65536\n\n7\n")
    section = imb_output.parse(bench(3, "Bcast", "-npmin", "3", "-msglen", str(lengths), "-iter", "50,1").stdout).section("Bcast")
    assert [(row.size_bytes, row.repetitions) for row in section.rows] == [(65536, 16), (7, 50)]


@pytest.mark.parametrize(
    "arguments, repetitions",
    [
        (["-iter", "50,1", "-iter_policy", "off"], 50),
        (["-iter", "50,1", "-iter_policy", "multiple_np"], 15),
        (["-iter", "50", "-time", "0.000001"], 1),
    ],
)
def test_repetitions_follow_the_policy(bench, arguments, repetitions):
    done = bench(3, "Bcast", "-npmin", "3", "-msglog", "16:16", "-zero_size", "off", *arguments)
    assert imb_output.parse(done.stdout).section("Bcast").row(65536).repetitions == repetitions


def test_memory_limit_is_a_notice(bench):
    done = bench(2, "Alltoall", "-msglog", "22:22", "-mem", "0.001", "-zero_size", "off")
    section = imb_output.parse(done.stdout).section("Alltoall")
    assert done.status == 0
    assert section.rows == [] and "out-of-mem." in section.notices[0]


def test_single_transfer_needs_two_processes(bench):
    done = bench(0, "PingPong")
    assert done.status == 0
    assert "Benchmark PingPong invalid for 1 processes" in done.stdout


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["Alltoal"], "Alltoal: no such benchmark"),
        (["-msglog", "9:5"], "-msglog 5: expected a number from 9 to 30"),
        (["-msglen", "/nonexistent"], "-msglen /nonexistent: cannot read"),
    ],
)
def test_wrong_command_line_is_explained(bench, arguments, complaint):
    done = bench(0, *arguments)
    assert done.status == 2
    assert complaint in done.stderr


def test_help_names_every_option(bench):
    text = bench(0, "-h").stdout
    for option in "npmin multi msglog msglen iter iter_policy time mem window_size root_shift sync data_check".split():
        assert f"-{option} " in text or f"-{option}[" in text


@pytest.mark.parametrize("benchmark, size, more", [("Barrier", 0, ("--block", "8")), ("Gather", 70000, ("--matrix", "32", "--tests", "1"))])
def test_a_call_beside_a_computation_is_measured_and_checked(bench, benchmark, size, more):
    done = bench(3, "overlap", benchmark, "--bytes", str(size), "--seconds", "0.001", *more)
    assert done.status == 0, done.stderr
    output = measuring.parse(done.stdout)
    assert output.complete and output.overlap.defects == 0
    assert min(output.overlap.pure_usec, output.overlap.compute_usec, output.overlap.overlapped_usec) > 0
    assert f"\noverlap {benchmark} {size} {32 if '--matrix' in more else 0} " in done.stdout


def test_wrong_data_beside_a_computation_is_a_defect(bench):
    done = bench(2, "overlap", "Alltoall", "--bytes", "2048", "--seconds", "0.001", VELO_MPI_BENCH_CORRUPT="1:5")
    assert done.status == 1 and measuring.parse(done.stdout).overlap.defects > 0
    done = bench(2, "calls", "Alltoall", "--bytes", "2048", "--seconds", "0.001", VELO_MPI_BENCH_CORRUPT="1:5")
    assert done.status == 1 and measuring.parse(done.stdout).defects > 0


def test_calls_one_by_one_are_those_of_all_ranks(bench):
    done = bench(3, "calls", "Gather", "--bytes", "512", "--seconds", "0.001")
    assert done.status == 0, done.stderr
    point = measuring.parse(done.stdout).points[512]
    assert point.repetitions >= 10 and 0 < point.min_usec <= point.usec <= point.max_usec and point.defects == 0


@pytest.mark.parametrize("benchmark, sizes", [("Barrier", "0"), *(pytest.param(
    name, "8,4096", marks=() if name == "Alltoall" else pytest.mark.slow) for name in ("Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Alltoall"))])
def test_requests_are_measured_and_their_data_checked_with_buffers_that_are_touched(bench, benchmark, sizes):
    words = ("points", benchmark, "--bytes", sizes, "--seconds", "0.001", "--request", "1", "--touch", "1", "--hold", "1")
    done = bench(3, *words)
    assert done.status == 0, done.stderr
    output = measuring.parse(done.stdout)
    assert output.complete and ",".join(map(str, output.points)) == sizes and output.defects == 0
    if benchmark in ("Allreduce", "Allgather", "Alltoall"):
        assert measuring.parse(bench(3, *words, VELO_MPI_BENCH_CORRUPT="1:5").stdout).defects > 0


@pytest.mark.parametrize("words, told", [
    (("overlap", "Scatterv"), "Scatterv has no call that does not block here"), (("calls", "PingPong"), "calls is for collectives"),
    (("overlap", "Barrier", "--matrix", "30"), "--matrix has to be a multiple of --block")])
def test_what_cannot_be_overlapped_is_told(bench, words, told):
    done = bench(0, *words)
    assert done.status == 2 and f"velo-mpi-bench: {told}\n" in done.stderr
