"""Schedules that programs run: goal.h from C and C++, velo-goal run, and the program of docs/goal.md. Their messages go over neither
BTL nor MTL (beside the MTL: test_mtl.py).

VELO_BUILD_DIR names a build with libvelo-goal and velo-goal (make check-mpi sets it)."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from flows import every_flow, flows, velo_only
from test_hygiene import assert_empty

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = pathlib.Path(__file__).resolve().parent / "programs" / "goal"
EXAMPLES = ROOT / "contrib" / "goal" / "examples"
BUILD = os.environ.get("VELO_BUILD_DIR")
needs_build = pytest.mark.skipif(not BUILD, reason="VELO_BUILD_DIR is not set; run by make check-mpi")
pytestmark = [velo_only, needs_build]
MPICC = os.environ.get("MPICC", "mpicc.openmpi")
WARNINGS = ["-O2", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"]
LIBRARY = [f"-I{ROOT}/libvelo-goal", f"-L{BUILD}/libvelo-goal", "-lvelo-goal", f"-Wl,-rpath,{BUILD}/libvelo-goal"]


def wrapper(suffix):
    """The compiler wrapper for a source: that for C++ lies beside that for C."""
    if suffix == ".c":
        return [MPICC, "-std=c11", "-D_GNU_SOURCE", *WARNINGS]
    # Open MPI 4.1 has an interface for C++ of its own, with warnings.
    return [MPICC.replace("mpicc", "mpicxx"), "-std=c++17", "-DOMPI_SKIP_MPICXX", *WARNINGS]


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Compiles a source with the library; returns the program."""
    target = tmp_path_factory.mktemp("goal")
    built = {}

    def compiled(source):
        if source not in built:
            program = target / source.stem
            done = subprocess.run([*wrapper(source.suffix), str(source), "-o", str(program), *LIBRARY], capture_output=True,
                                  text=True, check=False)
            assert done.returncode == 0 and not done.stderr, f"{source}:\n{done.stderr}"
            built[source] = str(program)
        return built[source]

    return compiled


@pytest.fixture
def goal(mpi, build):
    """Runs a program of programs/goal to its end, a success; what it has printed."""
    def run(name, *arguments, **keywords):
        return mpi.run(build(SOURCES / name), *arguments, **keywords).facts()

    return run


@pytest.fixture
def velo_goal(mpi):
    """mpirun of velo-goal run. `how` it is run: as the launcher does."""
    def run(*arguments, how=mpi.run_any, **keywords):
        return how(f"{BUILD}/contrib/goal/velo-goal", "run", *arguments, **keywords)

    return run


@every_flow(8)
def test_the_scatter_of_the_papers_figures(goal, flow):
    assert goal("scatter.c", np=5, params=flow.params) == {"runs": 5}


@flows(8)
def test_processes_on_other_nodes_are_reached(goal, cluster, flow):
    assert goal("runs.c", "ahead", 300, np=5, params=flow.params, prefix=cluster.prefix(slots=3), time_limit=120) == {"runs": 300}


@pytest.fixture
def runs(mpi, build):
    """What each kind of runs has printed, in one job."""
    def run(flow):
        return mpi.once(build(SOURCES / "runs.c"), "ahead", 300, "vectors", 60, "extensions", 1, "mismatch", 1, np=3, params=flow.params).facts().items()

    return run


@every_flow(8)
def test_a_schedule_is_started_again_while_runs_of_it_are_under_way(runs, flow):
    assert runs(flow) >= {"runs": 300}.items()


@every_flow(8)
def test_vectors_are_cut_differently_at_both_ends(runs, flow):
    assert runs(flow) >= {"vectors": 60, "transposed": 24}.items()


@every_flow(8)
def test_extensions(runs, flow):
    assert runs(flow) >= {"calls": 10}.items()


@every_flow(8)
def test_a_message_of_another_length_than_its_receive_fails_the_run_by_name(runs, flow):
    assert runs(flow) >= {"failed": 1}.items()


@flows(8, policies=("dynamic",))
def test_every_local_operation_on_each_kind_of_type_as_the_language_has_it(goal, flow):
    # 10 operations on integers, 7 on floats.
    assert goal("local.cc", np=2, params=flow.params) == {"tried": 27}


@flows(8, policies=("dynamic",))
def test_each_misuse_names_the_call_and_the_argument(goal, flow):
    assert goal("misuse.c", "return", np=2, params=flow.params) == {"refused": 81}


@flows(8, policies=("dynamic",))
def test_after_mpi_finalize_each_call_says_so(goal, flow):
    assert goal("misuse.c", "unfinished", np=2, params=flow.params) == {"refused": 9}


@flows(8, policies=("dynamic",))
def test_a_misuse_ends_the_job_unless_the_program_takes_errors(mpi, build, flow):
    result = mpi.run_any(build(SOURCES / "misuse.c"), "abort", np=2, params=flow.params)
    result.assert_aborted(1)
    assert "velo-goal: GOAL_Send: buf: is NULL" in result.stderr


@pytest.mark.parametrize("threads, rounds", [pytest.param(6, 1, marks=pytest.mark.slow), (3, 20)])
@every_flow(8)
def test_threads_have_groups_of_their_own(goal, threads, rounds, flow):
    assert goal("threads.c", threads, 50, rounds, np=3, params=flow.params) == {"steps": 50 * threads * rounds}


def without_velo(component_path):
    """Open MPI's own directory alone, and nothing of Velo's from there."""
    own = {"OMPI_MCA_mca_base_component_path": component_path.rpartition(":")[2]} if component_path else {}
    return {"transport": "vader", "options": ["--mca", "coll", "^velo"], "env": own, "np": 2}


def test_a_job_without_velo_is_told_so(mpi, build, component_path):
    result = mpi.run(build(SOURCES / "misuse.c"), "unused", **without_velo(component_path))
    assert "GOAL_Init: this process does not use Velo: is it installed, and was the program started with mpirun --mca pml ob1 " \
           "--mca btl velo?\nrefused=1\n" in result.stdout


def test_another_version_of_the_plugin_is_told_with_its_path(mpi, build, component_path, tmp_path):
    foreign = tmp_path / "mca_btl_velo.so"
    (tmp_path / "foreign.c").write_text("int mca_btl_velo_component;\n")
    subprocess.run([MPICC, "-shared", "-fPIC", "-o", str(foreign), str(tmp_path / "foreign.c")], check=True)
    result = mpi.run(build(SOURCES / "misuse.c"), "foreign", foreign, **without_velo(component_path))
    assert f"GOAL_Init: {foreign} is Velo of another version than libvelo-goal: it has no velo_goal_table_v1\n" in result.stdout


def test_the_program_of_the_documentation(mpi, build, tmp_path):
    page = (ROOT / "docs" / "goal.md").read_text()
    (text,) = re.findall(r"^```c\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    source = tmp_path / "total.c"
    source.write_text(text)
    result = mpi.run(build(source), np=3)
    assert result.stdout.splitlines() == [f"round {i}: the total is {sum(10 * i + rank for rank in range(3))}" for i in range(3)]


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


@pytest.fixture
def run_example(mpi, velo_goal, traces):
    """What an example prints that is run five times, and where its trace is."""
    def run(example, ranks, flow):
        file = traces / f"{example} {flow}.json"
        result = velo_goal(EXAMPLES / f"{example}.goal", "--repeat", 5, "--json", "--trace", file, how=mpi.once, np=ranks, params=flow.params)
        return json.loads(result.stdout), file

    return run


@pytest.mark.parametrize("example, ranks", [("ring", 4), ("masters_and_workers", 4)])
@flows(8)
def test_examples_run_and_each_rank_has_its_row(run_example, example, ranks, flow):
    run, _ = run_example(example, ranks, flow)
    text = (EXAMPLES / f"{example}.goal").read_text()
    parts = re.findall(r"^rank (\d+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    assert run["repetitions"] == 5 and len(run["ranks"]) == len(parts) == ranks
    for row, (_, part) in zip(run["ranks"], parts):
        assert row["operations"] == len(re.findall(r"^\w+: ", part, re.MULTILINE))
        assert row["sent_bytes"] == sum(map(int, re.findall(r"send (\d+)b", part)))
        calculated = sum(map(int, re.findall(r"calc (\d+)", part))) / 1e9
        assert row["calculated_s"] == pytest.approx(calculated) and calculated <= row["median_s"] <= row["most_s"]


@flows(8, policies=("dynamic",))
def test_a_run_is_written_for_perfetto(run_example, velo_goal, tmp_path, flow):
    _, file = run_example("ring", 4, flow)
    events = json.loads(file.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    text = (EXAMPLES / "ring.goal").read_text()
    assert len(slices) == len(re.findall(r"^\w+: ", text, re.MULTILINE)) and {event["pid"] for event in slices} == {0, 1, 2, 3}
    # A thread does one thing at a time, and each message goes from its send's rank to another one.
    by_thread = {}
    for event in sorted(slices, key=lambda event: event["ts"]):
        begin, end = event["ts"], event["ts"] + event["dur"]
        assert begin >= by_thread.get((event["pid"], event["tid"]), 0) - 0.002, event
        by_thread[event["pid"], event["tid"]] = end
    ends = {phase: {event["id"]: event["pid"] for event in events if event["ph"] == phase} for phase in "sf"}
    assert ends["s"].keys() == ends["f"].keys() and len(ends["s"]) == text.count("send ")
    assert all(ends["f"][arrow] == (rank + 1) % 4 for arrow, rank in ends["s"].items())
    result = velo_goal(EXAMPLES / "ring.goal", "--trace", tmp_path / "no" / "run.json", np=4)
    assert result.returncode == 1 and result.stderr.count(f"velo-goal: cannot write {tmp_path}/no/run.json\n") == 1, str(result)


@flows(8, policies=("dynamic",))
def test_calculations_are_scaled(velo_goal, flow):
    result = velo_goal(EXAMPLES / "ring.goal", "--calc", 0.5, np=4, params=flow.params)
    assert len(re.findall(r"^ +\d+ +8 +3072 +20\.0 ", result.stdout, re.MULTILINE)) == 4, str(result)


@flows(8, policies=("dynamic",))
def test_collectives_by_name_run(velo_goal, flow):
    result = velo_goal("gather:linear_sync", "--bytes", 1000, "--json", np=5, params=flow.params)
    assert result.returncode == 0 and len(json.loads(result.stdout)["ranks"]) == 5, str(result)


@pytest.fixture
def tune(mpi):
    """mpirun of velo-goal tune, as short as can be."""
    def run(*arguments, **keywords):
        return mpi.run_any(f"{BUILD}/contrib/goal/velo-goal", "tune", "--rounds", 1, "--block", 0, *arguments, **keywords)

    return run


def test_tuning_writes_rules_that_choose_what_it_measured(tune, velo_goal, tmp_path):
    rules = tmp_path / "rules"
    result = tune("--operations", "bcast,barrier", "--bytes", "1000,8", "--ranks", "2,3", "--every", 1e-6, "-o", rules, np=4)
    assert result.returncode == 0 and result.stdout == "", str(result)
    told = re.findall(r"^velo-goal: after \d+ s, (\d) of 6 cases: (\d) ranks, (\w+), (\d+) bytes$", result.stderr, re.MULTILINE)
    assert told == [("1", "2", "bcast", "8"), ("2", "2", "bcast", "1000"), ("3", "2", "barrier", "0"),
                    ("4", "3", "bcast", "8"), ("5", "3", "bcast", "1000"), ("6", "3", "barrier", "0")], str(result)
    text = rules.read_text()
    names = r"linear \d+\.\d+, binomial \d+\.\d+, chain \d+\.\d+, scatter_allgather \d+\.\d+"
    assert len(re.findall(rf"^# bcast (?:8|1000): {names}$", text, re.MULTILINE)) == 4, text
    found = re.findall(r"^(\w+ \d-\d \d+) (\w+)$", text, re.MULTILINE)
    assert {"bcast 2-2 0", "barrier 2-2 0", "bcast 3-3 0", "barrier 3-3 0"} <= dict(found).keys(), text
    # What it has chosen is what runs.
    result = velo_goal("barrier:auto", "--choices", rules, "--json", np=3)
    named = velo_goal(f"barrier:{dict(found)['barrier 3-3 0']}", "--json", np=3)
    operations = [[row["operations"] for row in json.loads(run.stdout)["ranks"]] for run in (result, named)]
    assert operations[0] == operations[1]


def test_tuning_keeps_velos_own_choice_if_little_is_won(tune, tmp_path):
    """Nothing is ten million times as fast."""
    rules = tmp_path / "rules"
    assert tune("--operations", "alltoall", "--bytes", 8, "--margin", 1e9, "-o", rules, np=2).returncode == 0
    assert re.findall("^alltoall.*$", rules.read_text(), re.MULTILINE) == ["alltoall 2-2 0 linear"]


def test_tuning_that_is_interrupted_keeps_what_it_has(start, tmp_path):
    rules = tmp_path / "rules"
    run = start(f"{BUILD}/contrib/goal/velo-goal", "tune", "--operations", "alltoall", "--bytes", "8,1048576", "--rounds", 16384, "--block", 0,
                "--np", "2", "-o", rules, np=2, time_limit=240)
    run.until(lambda: rules.exists() and "# alltoall 8: " in rules.read_text(), "rules of the first size")
    os.kill(run.pid, signal.SIGTERM)
    run.wait()
    assert re.findall(r"^alltoall 2-2 0 \w+$", rules.read_text(), re.MULTILINE), rules.read_text()
    assert "# alltoall 1048576: " not in rules.read_text()


POINT = re.compile(r"^bench 1 (\d) Velo\npoint (\w+) (\d+) (\S+) (\S+) (\S+) 1 (\d+) 0 0 0\nend\n$")


@pytest.mark.parametrize("what, np, more", [("pingpong", 2, ("--rounds", 3)), ("local", 1, ("--type", "float")),
                                            pytest.param("loop", 1, ("--type", "uint8"), marks=pytest.mark.slow)])
@flows(8, policies=("dynamic",))
def test_what_one_schedule_costs_is_measured_and_checked(mpi, what, np, more, flow):
    program = f"{BUILD}/contrib/goal/velo-goal"
    result = mpi.run_any(program, "measure", what, "--bytes", 5000, "--seconds", 0, *more, np=np, params=flow.params)
    point = POINT.match(result.stdout)
    assert result.returncode == 0 and point, str(result)
    assert point.groups()[:3] == (str(np), what, "5000") and int(point[7]) >= 5, str(result)
    assert 0 < float(point[5]) <= float(point[4]) <= float(point[6]), str(result)


def test_a_schedule_that_waits_for_ever_is_refused_with_its_circle_once(velo_goal):
    result = velo_goal(EXAMPLES / "deadlock.goal", np=3)
    assert result.returncode == 1
    assert result.stderr.count("velo-goal: refused, as it cannot come to its end:\n  rank 0: r (recv 8b from 2) waits for rank 2: r (recv 8b from 1) "
                               "waits for rank 1: r (recv 8b from 0) waits for rank 0\n") == 1, str(result)


@flows(8, policies=("dynamic",))
def test_a_long_run_tells_how_far_it_is_and_a_rank_that_is_killed_ends_the_job_and_leaves_nothing(start, tmp_path, flow, private_shm):
    """Rank 1 computes, and the others wait for it."""
    file = tmp_path / "killed.goal"
    waits = "".join(f"rank {rank} {{\nr: recv 8b from 1\n}}\n" for rank in (0, 2))
    file.write_text(f"num_ranks 3\n{waits}rank 1 {{\nc: calc 60000000000\ns: send 8b to 0\nt: send 8b to 2\n"
                    "s requires c\nt requires c\n}\n")
    shm = private_shm()
    program = f"{BUILD}/contrib/goal/velo-goal"
    run = start(program, "run", file, "--every", 0.1, np=3, params=flow.params, prefix=shm.enter)
    line = r"^velo-goal: after \d+ s, repetition 1 of 1: 0 of 3 ranks have finished; of rank 0's 1 operations 1 have started$"
    run.until(lambda: re.search(line, run.stderr, re.MULTILINE), "a line about the run")
    os.kill(run.ranks(program)[1], signal.SIGKILL)
    assert run.wait().returncode != 0
    assert_empty(shm)
