"""velo-measure policies from its command line to its files, on an mpirun that prints known numbers."""

import csv
import json
import math
import os
import pathlib
import subprocess
import sys

import pytest

from processes import living_with, terminate_when_logged
from velo.compare.options import parse_options
from velo.processors import cores

HERE = pathlib.Path(__file__).resolve().parent
FAKE_MPIRUN, FAKE_OMPI_INFO = HERE / "fake_mpirun.py", HERE.parent / "shared" / "fake_ompi_info.py"
SEVEN = "none,static,dynamic,rnr,mvapich_static,mvapich_dynamic,lazy"


@pytest.fixture
def compare(velo_compare, tmp_path):
    """Runs velo-measure policies with further arguments and environment."""

    def run(*arguments, **environment):
        command = [sys.executable, *map(str, velo_compare), "--mpirun", str(FAKE_MPIRUN), "--ompi-info",
                   str(FAKE_OMPI_INFO), "--bench", "/bin/true", "--output", str(tmp_path / "out"), "--benchmarks", "Bcast,Alltoall", "--slots", "8,16",
                   "--policies", "none,static,dynamic", "--by-reference", "never", "--np", "4", "--rounds", "2", "--no-plot", *arguments]
        env = os.environ | {"FAKE_LOG": str(tmp_path / "calls")} | environment
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)

    return run


def table(tmp_path, mode="never"):
    with open(tmp_path / "out" / "policies.csv", newline="", encoding="utf-8") as file:
        return {(r["benchmark"], r["policy"], int(r["slots_per_peer"])): r for r in csv.DictReader(file) if r["by_reference"] == mode}


def test_table_has_times_overheads_and_counters(compare, tmp_path):
    done = compare()
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path)
    assert len(rows) == 2 * 3 * 2
    static = rows["Bcast", "static", 8]
    assert float(static["time_usec"]) == 18.0
    assert float(static["overhead_percent"]) == pytest.approx(80.0)
    assert float(static["delayed_percent"]) == 10.0
    assert float(static["credit_packets"]) == 20
    assert float(static["piggybacked_credits"]) == 5
    assert float(static["mailbox_bytes_per_rank"]) == 1536
    assert float(rows["Alltoall", "dynamic", 16]["overhead_percent"]) == pytest.approx(5.0)
    assert float(rows["Alltoall", "dynamic", 16]["steals"]) == 3


def test_the_thesis_and_velo_stand_side_by_side(compare, tmp_path):
    done = compare("--policies", "static", "--by-reference", "auto,never")
    assert done.returncode == 0, done.stderr
    thesis, velo = (table(tmp_path, mode)["Alltoall", "static", 8] for mode in ("never", "auto"))
    assert [float(row["overhead_percent"]) for row in (thesis, velo)] == pytest.approx([80, 8])
    assert [float(row["time_ratio"]) for row in (thesis, velo)] == pytest.approx([1.8, 1.08])
    assert [float(row["by_reference_percent"]) for row in (thesis, velo)] == [0, 90]
    assert [float(velo[name]) for name in ("messages_by_reference", "outbox_high_water", "outbox_full")] == [900, 12288, 2]


def test_all_of_it_is_held_against_none_in_packets(compare, tmp_path):
    compare("--policies", "static", "--by-reference", "auto")
    rows = table(tmp_path)
    assert set(rows) == {("Bcast", "none", 16), ("Alltoall", "none", 16)}
    assert {row["is_reference"] for row in rows.values()} == {"True"}


def test_a_plugin_without_the_parameter_is_refused(compare):
    done = compare(FAKE_PARAMETERS="slots_per_peer")
    assert done.returncode == 2
    assert "no parameter btl_velo_by_reference" in done.stderr


def test_processes_are_as_many_as_cores_at_least_two():
    assert parse_options([]).np == max(2, cores())


def test_json_has_settings_lines_averages_and_every_run(compare, tmp_path):
    compare()
    document = json.loads((tmp_path / "out" / "policies.json").read_text())
    assert document["settings"]["reference"] == {"policy": "none", "slots_per_peer": 16, "by_reference": "never"}
    assert len(document["lines"]) == 12
    assert len(document["averages"]) == 6
    assert len(document["runs"]) == 24
    assert document["runs"][0]["command"].startswith(str(FAKE_MPIRUN))


def test_all_policies_of_the_plugin_get_mailboxes_of_the_same_size(compare, tmp_path):
    done = compare("--policies", "all", "--slots", "16", "--rounds", "1", FAKE_POLICIES=SEVEN)
    assert done.returncode == 0, done.stderr
    commands = {line.split("flow_control ")[1].split()[0]: line for line in commands_of(tmp_path)}
    assert set(commands) == set(SEVEN.split(","))
    for policy, words in (("rnr", "preposted_buffers 16"), ("mvapich_static", "preposted_buffers 14"),
                          ("lazy", "lazy_slots 48"), ("mvapich_dynamic", "slots_per_peer 16")):
        assert f"--mca btl_velo_{words} " in commands[policy]
    assert float(table(tmp_path)["Bcast", "lazy", 16]["time_usec"]) == 10.0


def commands_of(tmp_path):
    return [run["command"] for run in json.loads((tmp_path / "out" / "policies.json").read_text())["runs"]]


def test_the_thesis_is_a_protocol_of_several_parameters(compare, tmp_path):
    compare("--policies", "dynamic", "--slots", "8", "--rounds", "1", "--benchmarks", "Exchange", "--thesis")
    commands = commands_of(tmp_path)
    for command in commands:
        for pair in ("by_reference never", "packet_trains false", "delay_credits false", "eager_limit 2104", "rndv_eager_limit 128"):
            assert f"--mca btl_velo_{pair} " in command
    assert sum("--mca btl_velo_flow_control none --mca btl_velo_slots_per_peer 8192 " in command for command in commands) == 1


def test_a_parameter_of_the_command_line_replaces_that_of_the_comparison(compare, tmp_path):
    compare("--mca", "btl_velo_slots_per_peer", "99", "--slots", "8", "--rounds", "1")
    assert all("slots_per_peer 99" in command and "slots_per_peer 8" not in command for command in commands_of(tmp_path))


def test_hang_is_killed_reported_and_not_repeated(compare, tmp_path):
    done = compare("--timeout", "1", "--benchmarks", "Bcast", FAKE_HANG="static:8:never")
    assert done.returncode == 1
    assert "FAILED, no end after 1 s, killed" in done.stderr
    command = next(line for line in done.stderr.splitlines() if "btl_velo_flow_control static" in line)
    assert "btl_velo_slots_per_peer 8" in command
    assert command.strip() in done.stdout
    assert (tmp_path / "calls").read_text().split().count("static:8:never") == 1
    rows = table(tmp_path)
    assert rows["Bcast", "static", 8]["time_usec"] == ""
    assert float(rows["Bcast", "static", 16]["time_usec"]) == 14.0


def test_failing_run_is_reported_with_its_output(compare):
    done = compare(FAKE_FAIL="dynamic:16:never")
    assert done.returncode == 1
    assert "FAILED, exit status 1" in done.stderr
    assert "rank 2: something went wrong" in done.stderr
    assert "2 run(s) FAILED" in done.stdout


def test_wrong_data_is_a_failure(compare):
    done = compare(FAKE_DEFECT="static:16:never")
    assert done.returncode == 1
    assert "data check: 2 defects" in done.stderr


def test_failure_of_the_very_first_run_stops_the_comparison(compare, tmp_path):
    done = compare(FAKE_FAIL="none:16:never")
    assert done.returncode == 1
    assert "ompi_info --param btl velo" in done.stderr
    assert (tmp_path / "calls").read_text().split() == ["none:16:never"]


def test_missing_report_makes_counters_not_available(compare, tmp_path):
    done = compare(FAKE_NO_REPORT="1")
    assert done.returncode == 0
    assert "n/a: 24 of 24 runs printed no VELO-REPORT line" in done.stdout
    assert table(tmp_path)["Bcast", "static", 8]["credit_packets"] == ""


def test_quick_is_short(compare, tmp_path):
    done = compare("--quick", "--slots", "8", "--rounds", "1", "--benchmarks", "Bcast")
    assert done.returncode == 0
    assert len(table(tmp_path)) == 3


def test_terminated_comparison_keeps_what_it_has_and_leaves_no_mpirun_behind(velo_compare, tmp_path):
    log = tmp_path / "calls"
    command = [sys.executable, *map(str, velo_compare), "--mpirun", str(FAKE_MPIRUN), "--ompi-info", str(FAKE_OMPI_INFO),
               "--bench", "/bin/true", "--no-plot", "--output", str(tmp_path / "out"), "--benchmarks", "Bcast", "--slots", "8"]
    env = os.environ | {"FAKE_LOG": str(log), "FAKE_HANG": "static:8:never"}
    assert terminate_when_logged(command, env, log, "static:8:never") == 130
    assert "INTERRUPTED" in (tmp_path / "out" / "policies.txt").read_text()
    assert float(table(tmp_path)["Bcast", "none", 8]["time_usec"]) == 10.0
    assert living_with(str(log)) == []


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["--by-reference", "auto,maybe"], "'maybe' is not one of never, auto, always"),
        (["--slots", "8,x"], "'x' is no number above 0"),
        (["--policies", "static,greedy"], "'greedy' is not one of none, static, dynamic"),
        (["--benchmarks", "Bcats"], "'Bcats' is not one of"),
        (["--np", "1"], "at least 2 processes"),
        (["--mpirun", "/nonexistent/mpirun"], "apt-get install openmpi-bin"),
        (["--bench", "/nonexistent/IMB-MPI1"], "--bench /nonexistent/IMB-MPI1: no such program"),
    ],
)
def test_wrong_command_line_is_explained(compare, arguments, complaint):
    done = compare(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_real_imb_is_taken_from_the_environment(compare, tmp_path):
    imb = tmp_path / "IMB-MPI1"
    imb.symlink_to("/bin/true")
    done = compare("--bench", "", "--benchmarks", "Bcast", IMB_MPI1=str(imb))
    assert f"\n{imb}, 4 processes" in done.stdout, done.stdout


def test_overheads_of_several_panels_have_one_scale_with_zero_on_it():
    pytest.importorskip("matplotlib")
    from velo.plotting import open_panels, use_overhead_scale
    for overheads in ((-3, 2), (-40, 12), (-95, 20_000), (300, 900)):
        _, panels = open_panels(2, "")
        for panel, overhead in zip(panels, overheads):
            panel.plot([8, 16], [overhead, math.nan])
        use_overhead_scale(*panels)
        low, high = panels[0].get_ylim()
        ticks = sorted(panels[0].get_yticks())
        assert panels[1].get_ylim() == (low, high)
        assert low < min(overheads) and max(overheads) < high
        assert 0 in ticks and 3 <= len(ticks) <= 12
        heights = [panels[0].transData.transform((8, tick))[1] for tick in ticks]
        of_panel = panels[0].get_window_extent().height
        assert all(upper - lower > of_panel / 13 for lower, upper in zip(heights, heights[1:]))


def test_plot_is_a_png(compare, tmp_path, velo_compare):
    pytest.importorskip("matplotlib")
    command = [sys.executable, *map(str, velo_compare), "--mpirun", str(FAKE_MPIRUN), "--ompi-info", str(FAKE_OMPI_INFO), "--bench", "/bin/true",
               "--output", str(tmp_path), "--benchmarks", "Bcast", "--slots", "8,16", "--rounds", "1",
               "--sizes", "64,2048"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    for size in (64, 2048):
        png = (tmp_path / f"policies-{size}.png").read_bytes()
        assert png.startswith(b"\x89PNG\r\n") and len(png) > 10000
