"""velo-measure transports from its command line to its files, on an mpirun that prints known times."""

import csv
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest

from processes import terminate_when_logged
from velo.versus.patterns import BY_NAME, Case
from velo.versus.report import sizes_text
from velo.versus.summary import Line

HERE = pathlib.Path(__file__).resolve().parent
COMPONENTS = ("btl:velo", "btl:vader", "pml:ucx")


def write_script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def installation(tmp_path):
    """An Open MPI of scripts; its mpicc writes an empty program. Returns a function that sets its components."""
    folder = tmp_path / "mpi"
    folder.mkdir()
    (folder / "mpirun").symlink_to(HERE / "fake_versus_mpirun.py")
    write_script(folder / "mpicc", 'while [ "$1" != -o ]; do shift; done; : > "$2"\n')

    def components(names):
        lines = "".join(f"mca:{name}:version:\"component:4.1.4\"\n" for name in names)
        write_script(folder / "ompi_info", f"cat <<'END'\n{lines}mca:mca:base:param:mca_base_component_path:value:\"usual\"\nEND\n")

    components(COMPONENTS)
    return folder, components


@pytest.fixture
def command(installation, velo_versus, tmp_path):
    return [sys.executable, *map(str, velo_versus), "--mpirun", str(installation[0] / "mpirun"), "--without", "mpich,mpich-rg,mtl",
            "--output", str(tmp_path / "out"), "--rounds", "2", "--min-blocks", "1", "--timeout", "30"]


@pytest.fixture
def environment(tmp_path):
    return os.environ | {"FAKE_LOG": str(tmp_path / "calls")}


@pytest.fixture
def versus(command, environment):
    """Runs velo-measure transports with further arguments and environment, on a ping-pong of few sizes unless told otherwise."""

    def run(*arguments, plot=False, **variables):
        few = [] if {"--patterns", "--memory", "--program"} & set(arguments) else ["--patterns", "pingpong"]
        sizes = [] if {"--sizes", "--memory"} & set(arguments) else ["--sizes", "0,8,64"]
        pathlib.Path(environment["FAKE_LOG"]).unlink(missing_ok=True)
        full = command + few + sizes + ([] if plot else ["--no-plot"]) + list(arguments)
        return subprocess.run(full, env=environment | variables, capture_output=True, text=True, timeout=120, check=False)

    return run


def points(tmp_path):
    with open(tmp_path / "out" / "transports.csv", newline="", encoding="utf-8") as file:
        return {(row["pattern"], int(row["bytes"])): row for row in csv.DictReader(file)}


def document(tmp_path):
    return json.loads((tmp_path / "out" / "transports.json").read_text())


def calls(tmp_path):
    """Those of the series: each contestant is tried once before it."""
    lines = (tmp_path / "calls").read_text().split()
    tried = len(dict.fromkeys(line.partition(":")[0] for line in lines))
    return lines[tried:]


def test_ratio_is_to_the_best_of_the_others_at_each_size(versus, tmp_path):
    done = versus(FAKE_TIMES=json.dumps({"ucx:pingpong:8": 16.0, "velo:pingpong:64": 30.0}))
    assert done.returncode == 0, done.stderr
    rows = points(tmp_path)
    assert [float(rows["pingpong", size]["velo_ratio"]) for size in (0, 8, 64)] == [0.5, 0.625, 1.5]
    assert [rows["pingpong", size]["best_other"] for size in (0, 8, 64)] == ["vader", "ucx", "vader"]
    assert float(rows["pingpong", 8]["vader_usec"]) == 20.0


def test_size_classes_have_worst_median_best_and_verdict(versus, tmp_path):
    done = versus("--sizes", "0,1,8,64,100", FAKE_TIMES=json.dumps(
        {"velo:pingpong:1": 13.0, "velo:pingpong:8": 12.0, "velo:pingpong:64": 30.0}))
    small, medium = document(tmp_path)["classes"]
    assert (small["sizes"], small["goal"], small["met"]) == ("0 B to 8 B", 1.0, True)
    assert (small["worst"], small["median"], small["best"]) == (0.65, 0.6, 0.5)
    assert (medium["goal"], medium["worst"], medium["met"]) == (1.1, 1.5, False)
    table = done.stdout[done.stdout.index("Time of velo / time of the best") :].splitlines()
    assert table[3].split() == "shared cache ping-pong 0 B to 8 B 1.00 0.65 0.60 0.50 met 1 B, against vader".split()
    assert "missed, 1 of 2 within" in table[4]
    assert (tmp_path / "out" / "transports.txt").read_text() == done.stdout


def test_contestants_are_compared_within_a_distance_alone(versus, tmp_path):
    far, near, sibling = [0.16, 1.0, 0.2, 1.1], [0.027, 1.0, 0.06, 1.4], [0.026, 1.6, 0.2, 1.9]
    places = {"velo:1": near, "velo:2": far, "vader:1": far, "vader:2": near, "ucx:1": near, "ucx:2": far}
    done = versus("--sizes", "8", FAKE_LINES=json.dumps(places), FAKE_SLOWS_DOWN="vader")
    assert done.returncode == 0, done.stderr
    found = {point["distance"]: point for point in document(tmp_path)["points"]}
    assert [found[name]["usec"]["vader"] for name in ("shared cache", "far")] == [30.0, 20.0], "of its second round, of its first one"
    assert [found[name]["ratios"]["velo"] for name in ("shared cache", "far")] == [pytest.approx(1 / 3), 0.5]
    assert [found[name]["blocks"] for name in ("shared cache", "far")] == 2 * [{"velo": 1, "vader": 1, "ucx": 1}]
    done = versus("--sizes", "8", FAKE_LINES=json.dumps({f"{name}:{number}": sibling for name in ("velo", "vader", "ucx") for number in (1, 2)}))
    assert [point["distance"] for point in document(tmp_path)["points"]] == ["sibling threads"]


def test_fewer_blocks_than_asked_for_give_no_ratio(versus, tmp_path):
    done = versus("--sizes", "8", "--min-blocks", "2", FAKE_LINES=json.dumps({"ucx:1": [0.2, 1.0, 0.2, 1.0]}))
    assert done.returncode == 0, done.stderr
    assert [(point["distance"], point["ratios"]["velo"]) for point in document(tmp_path)["points"]] == [("shared cache", None), ("far", None)]
    assert [entry["verdict"] for entry in document(tmp_path)["classes"]] == 2 * ["too few blocks"]
    assert "2 of 2 sizes at a distance have fewer than 2 of somebody, and no ratio" in done.stdout
    assert "shared cache, ping-pong: too few blocks" in done.stdout and "far: ucx 1 blocks" in done.stdout
    versus("--sizes", "8", "--min-blocks", "2")
    assert document(tmp_path)["points"][0]["ratios"]["velo"] == 0.5


def test_sizes_without_a_block_at_a_distance_have_no_row_there():
    case, velo = Case(2, BY_NAME["pingpong"], (8, 16)), SimpleNamespace(name="velo", is_velo=True)
    lines = [Line(case, 8, "far", {"velo": "btl"}, usec={"velo": 1.0}, blocks={"velo": 1}), Line(case, 16, "far", {"velo": "btl"})]
    assert [row.split()[2] for row in sizes_text(lines, [velo]).splitlines()[3:]] == ["8"]


def test_a_block_during_which_the_distance_changes_is_left_out(versus, tmp_path):
    done = versus("--sizes", "8", FAKE_LINES=json.dumps({"velo:1": [0.05, 1.0, 0.2, 1.0]}))
    point, = document(tmp_path)["points"]
    assert (point["distance"], point["blocks"]) == ("shared cache", {"velo": 1, "vader": 2, "ucx": 2})
    assert "changed: velo 1 blocks" in done.stdout and "left out" in done.stdout


def test_goal_may_name_its_opponent_and_differs_far_away(versus, tmp_path):
    versus("--sizes", "8", FAKE_TIMES=json.dumps({"velo:pingpong:8": 20.0, "ucx:pingpong:8": 5.0}))
    entry, = document(tmp_path)["classes"]
    assert (entry["goal"], entry["worst"], entry["met"]) == (1.0, 1.0, True), "near, of the BTL to vader, though UCX is faster"
    versus("--sizes", "8", FAKE_TIMES=json.dumps({"velo:pingpong:8": 20.0, "ucx:pingpong:8": 5.0}),
           FAKE_LINES=json.dumps({f"{name}:{number}": [0.2, 1.0, 0.2, 1.0] for name in ("velo", "vader", "ucx") for number in (1, 2)}))
    entry, = document(tmp_path)["classes"]
    assert (entry["goal"], entry["worst"], entry["met"]) == (1.0, 4.0, False)


def test_another_build_is_compared_block_by_block(versus, installation, tmp_path):
    older = tmp_path / "older"
    older.mkdir()
    done = versus("--before", str(older))
    assert done.returncode == 2 and "has neither mca_btl_velo.so nor mca_mtl_velo.so" in done.stderr
    (older / "mca_mtl_velo.so").touch()
    done = versus("--before", str(older))
    assert done.returncode == 0 and "missing: before: there is no mca_btl_velo.so in" in done.stdout
    (older / "mca_btl_velo.so").touch()
    done = versus("--before", str(older), "--sizes", "8", "--min-blocks", "2", FAKE_SLOWS_DOWN="velo")
    assert done.returncode == 0, done.stderr
    run = next(run for run in document(tmp_path)["runs"] if run["contestant"] == "before")
    assert f"--mca mca_base_component_path {older}:usual" in run["command"]
    assert document(tmp_path)["points"][0]["changes"] == {"before": 2.5}, "10 and 15 us against 5"
    assert "Time of Velo / time of before" in done.stdout
    versus("--before", str(older), "--sizes", "8", "--min-blocks", "2", FAKE_LINES=json.dumps({"before:1": [0.2, 1.0, 0.2, 1.0]}))
    assert [point["changes"] for point in document(tmp_path)["points"]] == [{}, {}]


def test_whole_programs_are_timed_and_so_is_what_of_them_is_in_mpi(versus, installation, tmp_path):
    given = f"other|{installation[0]}/mpicc|{installation[0]}/mpirun"
    done = versus("--contestant", given, "--program", "both=bin/{mpi}/solve -n 3", "--program", "one=solve", "--patterns", "exchange")
    assert done.returncode == 2 and "--program: not with --patterns" in done.stderr
    done = versus("--contestant", given, "--program", "both=bin/{mpi}/solve -n 3", "--program", "one=solve", "--min-blocks", "2")
    assert done.returncode == 0, done.stderr
    both, one = document(tmp_path)["points"]
    assert both["usec"] == {"velo": 10e6, "vader": 20e6, "ucx": 40e6, "other": 30e6} and both["ratios"] == {"velo": 0.5}
    assert both["share_percent"]["velo"] == pytest.approx(100 * 3 / 19), "of both ranks"
    assert both["distance"] == "shared cache" and set(both["blocks"].values()) == {2}
    assert set(one["usec"]) == {"velo", "vader", "ucx"}, "other is no Open MPI"
    commands = [run["command"] for run in document(tmp_path)["runs"] if run["pattern"] == "both"]
    assert any("bin/other/solve -n 3" in command for command in commands) and any("bin/openmpi/solve -n 3" in command for command in commands)
    assert "velo in MPI" in done.stdout and "16 %" in done.stdout


def test_contestants_take_turns(versus, tmp_path):
    versus("--patterns", "pingpong,alltoall", "--sizes", "8")
    assert calls(tmp_path) == [f"{name}:{pattern}:2" for order in (["velo", "vader", "ucx"], ["vader", "ucx", "velo"])
                               for pattern in ("pingpong", "alltoall") for name in order]


def test_variant_is_velo_once_more_and_no_opponent(versus, tmp_path):
    done = versus("--variant", "quick.one=--mca btl_velo_fast 1")
    assert done.returncode == 0, done.stderr
    assert "Time of quick.one / time of the best of the others" in done.stdout
    row = points(tmp_path)["pingpong", 8]
    assert (float(row["velo_ratio"]), float(row["quick.one_ratio"]), row["best_other"]) == (0.5, 0.25, "vader")


def test_variant_of_the_mtl_is_the_mtl_once_more(versus, installation, tmp_path):
    installation[1]((*COMPONENTS, "mtl:velo"))
    done = versus("--mtl-variant", "quick.mtl=--mca mtl_velo_other 1")
    assert done.returncode == 0, done.stderr
    entry = next(entry for entry in document(tmp_path)["contestants"] if entry["name"] == "quick.mtl")
    assert entry["layer"] == "mtl" and "--mca pml cm --mca mtl velo --mca btl self --mca mtl_velo_other 1" in entry["command"]
    assert "Time of quick.mtl / time of the best of the others" in done.stdout


def test_any_mpi_can_take_part(versus, installation, tmp_path):
    folder = installation[0]
    done = versus("--contestant", f"other|{folder}/mpicc|{folder}/mpirun --flag", "--only", "velo")
    assert done.returncode == 0, done.stderr
    assert float(points(tmp_path)["pingpong", 8]["velo_ratio"]) == pytest.approx(1 / 3)
    runs = document(tmp_path)["runs"]
    assert {run["contestant"] for run in runs} == {"velo", "other"}
    assert any(run["command"].startswith(f"{folder}/mpirun --flag -n 2 ") for run in runs)


def test_more_ranks_than_cores_are_not_pinned_and_yield(versus, tmp_path):
    many = 2 * len(os.sched_getaffinity(0)) + 2
    done = versus("--patterns", "alltoall", "--ranks", str(many))
    assert done.returncode == 0, done.stderr
    run = document(tmp_path)["runs"][0]["command"]
    assert f"-n {many} --bind-to none --mca mpi_yield_when_idle 1 " in run
    assert document(tmp_path)["classes"][0]["goal"] == 1.0


def test_missing_component_is_named_and_the_others_go_on(versus, installation, tmp_path):
    installation[1](["btl:velo", "btl:vader"])
    done = versus()
    assert done.returncode == 0, done.stderr
    assert "missing: ucx: Open MPI 4.1.4 has no pml component ucx" in done.stdout
    assert document(tmp_path)["missing"][0]["name"] == "ucx"
    assert "ucx_usec" not in points(tmp_path)["pingpong", 8]


def test_open_mpi_5_has_sm_in_the_place_of_vader(versus, installation, tmp_path):
    installation[1](["btl:velo", "btl:sm"])
    done = versus(FAKE_VERSION="5.0.6")
    assert done.returncode == 0, done.stderr
    assert points(tmp_path)["pingpong", 8]["best_other"] == "sm"
    assert "--map-by :OVERSUBSCRIBE -n 2" in done.stdout


@pytest.mark.parametrize("there, absent, package", [([], "mpirun.mpich", "mpich"),
                                                   (["mpirun.mpich"], "mpicc.mpich", "libmpich-dev")])
def test_missing_mpich_is_named_with_its_package(command, environment, tmp_path, there, absent, package):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "cat").symlink_to("/bin/cat")
    for name in there:
        write_script(folder / name, "exit 0\n")
    command[command.index("--without") + 1] = "ucx,mtl"
    done = subprocess.run(command + ["--list"], env=environment | {"PATH": str(folder)}, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert f"missing: mpich: {absent} not found; on Debian 12: apt-get install {package};" in done.stdout


def test_without_velo_nothing_runs(versus, installation, tmp_path):
    installation[1](["btl:vader", "pml:ucx"])
    done = versus()
    assert done.returncode == 2
    assert "finds no btl component velo; run make install" in done.stderr
    assert not (tmp_path / "calls").exists()


def test_without_opponents_there_are_times_and_no_verdict(versus, tmp_path):
    done = versus("--only", "velo")
    assert done.returncode == 0
    assert "no peer" in done.stdout
    assert document(tmp_path)["classes"][0]["met"] is None


def test_failing_compiler_costs_its_contestant_alone(versus, installation, tmp_path):
    broken = tmp_path / "brokencc"
    write_script(broken, "echo 'mpi.h: no such file' >&2; exit 1\n")
    done = versus("--contestant", f"other|{broken}|{installation[0]}/mpirun")
    assert done.returncode == 0
    assert "other does not take part: the compiler failed, exit status 1" in done.stderr
    assert "mpi.h: no such file" in done.stderr
    assert "missing: other" in done.stdout


def test_opponent_that_fails_at_a_point_keeps_its_others(versus, tmp_path):
    done = versus(FAKE_FAIL="vader:pingpong:64")
    assert done.returncode == 0
    assert "FAILED: vader, ping-pong at 64 B: exit status 1" in done.stdout
    assert "rank 1: something went wrong" in done.stdout
    rows = points(tmp_path)
    assert (rows["pingpong", 8]["best_other"], rows["pingpong", 64]["best_other"]) == ("vader", "ucx")
    assert (rows["pingpong", 64]["failed"], rows["pingpong", 64]["vader_usec"]) == ("vader", "")
    assert calls(tmp_path).count("vader:pingpong:2") == 1


def test_failure_of_velo_is_the_exit_status(versus, tmp_path):
    done = versus(FAKE_FAIL="velo:pingpong:64")
    assert done.returncode == 1
    small, medium = document(tmp_path)["classes"]
    assert (small["met"], medium["met"], medium["verdict"]) == (True, False, "FAILED at 1 of 1")


def test_failure_of_velo_at_its_trial_stops_everything(versus, tmp_path):
    done = versus(FAKE_FAIL="velo:pingpong:8")
    assert done.returncode == 1
    assert "ompi_info --param btl velo" in done.stderr
    assert (tmp_path / "calls").read_text().split() == ["velo:pingpong:2"]


def test_hang_is_killed_and_not_repeated(versus, tmp_path):
    done = versus("--timeout", "2", FAKE_HANG="vader:pingpong:64")
    assert done.returncode == 0
    assert "no end after 2 s, killed" in done.stdout
    assert float(points(tmp_path)["pingpong", 8]["vader_usec"]) == 20.0
    assert calls(tmp_path).count("vader:pingpong:2") == 1


def test_wrong_data_is_a_failure(versus, tmp_path):
    done = versus(FAKE_DEFECT="velo:pingpong:64")
    assert done.returncode == 1
    assert "FAILED: velo, ping-pong at 64 B: data check: 3 defects" in done.stdout
    assert points(tmp_path)["pingpong", 64]["velo_usec"] == ""


def test_memory_is_bytes_of_a_rank_and_a_formula(versus, tmp_path):
    done = versus("--memory", "--ranks", "2,4")
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "out" / "memory.csv", newline="", encoding="utf-8") as file:
        rows = {(row["contestant"], int(row["ranks"])): row for row in csv.DictReader(file)}
    assert set(rows) == {(name, ranks) for name in ("velo", "vader") for ranks in (2, 4)}
    assert int(rows["velo", 4]["connected_pss_bytes"]) == 1704 * 1024
    assert int(rows["vader", 4]["used_pss_shmem_bytes"]) == 16 * 1024
    assert "velo, connected: own bytes of a rank = 1024000 + 1024 x ranks" in done.stdout
    assert "vader, used: own bytes of a rank = 2048000 + 4096 x ranks" in done.stdout


def test_plots_are_written(versus, tmp_path):
    pytest.importorskip("matplotlib")
    done = versus("--patterns", "pingpong,touched,exchange", "--sizes", "0,8,1024,65536", "--rounds", "1", "--min-blocks", "1", plot=True)
    assert done.returncode == 0, done.stderr
    png, svg = ((tmp_path / "out" / f"transports.{kind}").read_bytes() for kind in ("png", "svg"))
    assert png.startswith(b"\x89PNG\r\n") and len(png) > 10000
    assert b"<svg" in svg[:1000]


def test_rounds_far_apart_are_called_noise(versus):
    done = versus("--rounds", "3", FAKE_SLOWS_DOWN="vader")
    assert "vader 67 %" in done.stdout
    assert "too much for ratios to mean anything" in done.stdout
    done = versus()
    assert "velo 0 %, vader 0 %, ucx 0 %" in done.stdout
    assert "too much" not in done.stdout


def test_machine_is_named(versus, tmp_path):
    done = versus()
    machine = document(tmp_path)["machine"]
    assert machine["kernel"].endswith(os.uname().release)
    assert f"{machine['cpu']}, {machine['usable_cores']} cores" in done.stdout.splitlines()[0]
    assert "velo: Fake MPI 9, component 4.1.4; " in done.stdout


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_ended_series_keeps_what_it_has_and_leaves_nothing(command, environment, tmp_path, ending):
    log = tmp_path / "calls"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    arguments = ["--patterns", "pingpong,alltoall", "--sizes", "16", "--no-plot"]
    environment |= {"FAKE_HANG": "vader:alltoall:16", "TMPDIR": str(temporary)}
    assert terminate_when_logged(command + arguments, environment, log, "vader:alltoall", ending) == 130
    assert not list(temporary.iterdir())
    assert "INTERRUPTED" in (tmp_path / "out" / "transports.txt").read_text()
    assert float(points(tmp_path)["pingpong", 16]["velo_usec"]) == 10.0


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["--patterns", "pingpog"], "'pingpog' is not one of"),
        (["--ranks", "3"], "3 is odd: ranks work in pairs"),
        (["--sizes", "8,abc"], "'abc' is no number of bytes from 0 to 1073741824"),
        (["--sizes", "-1"], "'-1' is no number of bytes from 0 to 1073741824"),
        (["--sizes", ","], "an empty list"),
        (["--processors", "0,99999"], "processor 99999 cannot be used here: there are 0"),
        (["--without", "ucx,velo"], "--without: velo cannot be left out"),
        (["--variant", "static"], "'static' is not NAME=WORDS"),
        (["--variant", "a=--mca 'x y"], "No closing quotation"),
        (["--variant", "a=--mca x y", "--mtl-variant", "a=--mca x y"], "two called 'a'"),
        (["--variant", "vader=--mca x y"], "two called 'vader'"),
        (["--contestant", "a|mpicc"], "is not NAME|MPICC|MPIRUN WORDS"),
        (["--patterns", "touched", "--sizes", "8"], "no size of --sizes fits a pattern"),
        (["--mpirun", "/nonexistent/mpirun"], "apt-get install openmpi-bin"),
        (["--mpirun", "/bin/true"], "/bin/true is not the mpirun of an Open MPI"),
        (["--mpicc", "/nonexistent/mpicc"], "/nonexistent/mpicc not found"),
    ],
)
def test_wrong_command_line_is_explained(versus, arguments, complaint):
    done = versus(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_between_nodes_the_others_are_tcp_and_ucx_and_the_goals_are_the_networks(versus, tmp_path):
    result = versus("--between-nodes", "--patterns", "pingpong,uniband", "--sizes", "8,65536")
    assert result.returncode == 0, result.stderr
    with open(tmp_path / "out" / "transports.json", encoding="utf-8") as file:
        data = json.load(file)
    assert {entry["name"] for entry in data["contestants"]} == {"velo", "tcp", "ucx"}
    assert all("--map-by node" in entry["command"] for entry in data["contestants"])
    assert "0.83" in result.stdout, "10 us against the 12 of tcp"
    assert "0 B to 4 KiB    0.90" in result.stdout and "8 KiB to 4 MiB  1.00" in result.stdout


def test_between_nodes_broadcasts_by_multicast_are_held_against_everybodys_without(versus, installation, tmp_path):
    installation[1]([*COMPONENTS, "coll:velo"])
    done = versus("--collectives", "--between-nodes", "--only", "velo,tree,tcp,ucx", "--patterns", "bcast,bcast-rotating", "--sizes", "8,4096", "--rounds", "1", "--min-blocks", "1")
    assert done.returncode == 0, done.stderr
    assert calls(tmp_path) == [f"{name}:{pattern}:8" for pattern in ("bcast", "bcast-rotating") for name in ("velo", "tcp", "ucx", "tree")]
    commands = {run["contestant"]: run["command"] for run in document(tmp_path)["runs"]}
    assert {name: [word for word in ("auto", "off") if f"coll_velo_multicast {word}" in command]
            for name, command in commands.items()} == {"velo": ["auto"], "tree": ["off"], "tcp": [], "ucx": []}
    assert sorted(entry["goal"] for entry in document(tmp_path)["classes"] if entry["pattern"] == "bcast") == [0.6, 0.8]
    assert points(tmp_path)["bcast", 8]["best_other"] == "tree"


def test_between_nodes_does_not_go_with_other_numbers_of_ranks_or_with_memory(versus):
    for words in (["--ranks", "2,4"], ["--memory"]):
        result = versus("--between-nodes", *words)
        assert result.returncode == 2 and "--between-nodes" in result.stderr


def test_collectives_are_each_a_call_a_request_and_with_a_root_that_moves_on(versus, installation, tmp_path):
    installation[1]([*COMPONENTS, "coll:velo", "coll:sm"])
    done = versus("--collectives", "--patterns", "barrier,bcast,bcast-rotating,ibcast,allgather", "--sizes", "8,64", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert calls(tmp_path) == [f"{name}:{pattern}:2" for pattern, names in (
        ("barrier", "velo vader ucx coll-sm"), ("bcast", "velo vader ucx coll-sm"), ("bcast-rotating", "velo vader ucx coll-sm"),
        ("ibcast", "velo vader ucx"), ("allgather", "velo vader ucx")) for name in names.split()], "coll/sm has neither requests nor Allgather"
    commands = {run["contestant"]: run["command"] for run in document(tmp_path)["runs"] if run["pattern"] == "bcast-rotating"}
    assert "--mca btl velo --mca coll velo,basic,libnbc,inter,self" in commands["velo"] and "--mca coll " not in commands["vader"]
    assert all("--touch 1 --hold 1 --bytes 8,64" in command for command in commands.values()), "buffers are rewritten"
    rows = points(tmp_path)
    assert (rows["bcast", 8]["best_other"], rows["allgather", 8]["best_other"]) == ("coll-sm", "vader")
    assert "missing: coll-adapt: Open MPI 4.1.4 has no coll component adapt" in done.stdout


def test_collectives_have_goals_of_their_own_for_two_and_for_many_ranks(versus, installation, tmp_path):
    installation[1]([*COMPONENTS, "coll:velo"])
    done = versus("--collectives", "--patterns", "barrier,allreduce,alltoall", "--ranks", "2,16", "--sizes", "8,64,4096,8192", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    found = {(entry["pattern"], entry["ranks"], entry["sizes"]): entry["goal"] for entry in document(tmp_path)["classes"]}
    assert {(name, ranks): [goal for (of, at, _), goal in found.items() if (of, at) == (name, ranks)]
            for name in ("barrier", "allreduce", "alltoall") for ranks in (2, 16)} == {
                ("barrier", 2): [0.7], ("barrier", 16): [0.5], ("allreduce", 2): [0.7, 0.75, 0.85], ("allreduce", 16): [0.5, 0.75, 0.85],
                ("alltoall", 2): [0.8, 0.95], ("alltoall", 16): [0.8, 0.95]}
    assert {size for pattern, size in points(tmp_path) if pattern == "barrier"} == {0}


def test_collectives_need_the_component_and_go_with_their_own_patterns(versus, installation):
    done = versus("--collectives", "--patterns", "bcast")
    assert done.returncode == 2 and "finds no coll component velo" in done.stderr
    for words, complaint in ((["--collectives", "--patterns", "pingpong"], "pingpong is none of --collectives"),
                             (["--patterns", "bcast"], "bcast is one of --collectives"),
                             (["--collectives", "--memory"], "--collectives: not with")):
        done = versus(*words)
        assert done.returncode == 2 and complaint in done.stderr
