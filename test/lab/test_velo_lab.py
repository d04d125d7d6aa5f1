"""velo-measure papers from its command line to its files, on an mpirun that behaves as the papers say, or otherwise."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from processes import living_with, terminate_when_logged
from velo.lab.catalogue import BY_NAME, GROUPS

HERE = pathlib.Path(__file__).resolve().parent
FAKE_OMPI_INFO = HERE.parent / "shared" / "fake_ompi_info.py"
ALL_POLICIES = "none,static,dynamic,rnr,mvapich_static,mvapich_dynamic,lazy"


def verdicts(tmp_path, name):
    document = json.loads((tmp_path / "out" / name / "result.json").read_text())
    return [verdict["status"] for verdict in document["verdicts"]]


def calls(tmp_path):
    return (tmp_path / "calls").read_text().splitlines()


def test_list_names_every_experiment_with_its_source(velo_lab):
    text = subprocess.run([sys.executable, *map(str, velo_lab), "list"], capture_output=True, text=True, check=True, timeout=60).stdout
    for name in ("5.3", "5.4", "5.5", "6.8", "7.1", "7.2", "7.3", "7.4", "bandwidth", "incast"):
        assert f"\n{name} " in "\n" + text
    assert "[thesis, section 6.8, figure 6.5]" in text
    assert "[Liu & Panda, section 6.2, figures 2 to 8]" in text


def test_overhead_is_against_none_with_a_large_mailbox_in_the_same_run(lab, data, tmp_path):
    done = lab("5.5", "--rounds", "1", "--slots", "16,57", "--reference-slots", "300")
    assert done.returncode == 0, done.stderr
    rows = data("5.5")
    assert float(rows["1x16", "none, large mailbox", ""]["overhead_percent"]) == 0
    assert float(rows["1x16", "static", "57"]["overhead_percent"]) == pytest.approx(1.0)
    assert float(rows["1x16", "static", "16"]["overhead_percent"]) == pytest.approx(100 * (0.5 + 1 / 15))
    assert float(rows["1x16", "static", "16"]["delayed_percent"]) == 100
    # Each workload has its reference, and its setups follow it directly.
    assert [("flow_control none" in call, "--active 8" in call) for call in calls(tmp_path)[:6]] == [
        (True, False), (False, False), (False, False), (True, True), (False, True), (False, True)]
    assert "--mca btl_velo_slots_per_peer 300" in calls(tmp_path)[0]


def test_rounds_take_turns(lab, tmp_path):
    lab("5.4", "--rounds", "2", "--slots", "57")
    kinds = ["none" if "control none" in call else "piggyback " + call.split("velo_piggyback ")[1][0] for call in calls(tmp_path)]
    assert kinds == ["none", "piggyback 0", "piggyback 1", "piggyback 0", "piggyback 1", "none"]


def some(stand_for_the_others, *values):
    """The values of a test, of which only some are tried unless all are asked for."""
    return [pytest.param(*value, marks=() if value[0] in stand_for_the_others else pytest.mark.slow) for value in values]


@pytest.mark.parametrize("name, shown", some(("5.4", "5.5"), ("5.4", [0]), ("5.5", [0, 1]), ("6.8", [0, 1]), ("7.1", [3]), ("5.3", [0, 1, 2])))
def test_what_the_machine_shows_is_said(lab, tmp_path, name, shown):
    done = lab(name, "--rounds", "1")
    assert done.returncode == 0, done.stderr
    found = verdicts(tmp_path, name)
    assert [found[i] for i in shown] == ["shown"] * len(shown)
    assert "16 ranks on " in done.stdout and "1 round(s)" in done.stdout


def test_overview_shows_counts_times_and_the_simulated_machine(lab, data, tmp_path):
    done = lab("overview", "--rounds", "2", plots=True)
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path, "overview") == ["shown"] * 4
    rows = data("overview")
    assert float(rows["counted Multi-PingPong", "static, never", "16"]["delayed_percent"]) == 100
    assert float(rows["counted Multi-PingPong", "dynamic, never", "16"]["delayed_percent"]) == 0
    counted = [call for call in calls(tmp_path) if "-iter_policy off" in call]
    assert counted and all("-np 8 " in call and "-time" not in call for call in counted)
    assert [call.split()[1:5] for call in calls(tmp_path) if call.startswith("velo-sim")] == [["experiment", "fig7.5", "-n", "256"]]
    assert (tmp_path / "out" / "overview" / "plot.png").stat().st_size > 10000


def test_overview_finds_nothing_where_all_policies_are_alike(lab, tmp_path):
    lab("overview", "--quick", "--rounds", "1", FAKE_FLAT="1")
    assert verdicts(tmp_path, "overview")[0] == verdicts(tmp_path, "overview")[2] == "cannot be judged", "one round tells no noise"
    assert verdicts(tmp_path, "overview")[3] == "not shown"


@pytest.mark.parametrize("name", some(("5.5",), ("5.5",), ("5.3",)))
def test_what_the_machine_does_not_show_is_not_tuned_away(lab, tmp_path, name):
    done = lab(name, "--rounds", "1", "--quick", FAKE_FLAT="1")
    assert done.returncode == 0
    assert "shown" not in verdicts(tmp_path, name)
    assert "NOT SHOWN here (predicted): " in done.stdout


def test_overheads_within_the_noise_are_not_judged(lab, tmp_path):
    done = lab("5.5", "7.1", "--quick", FAKE_NOISE="2")
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path, "5.5") == ["cannot be judged", "shown", "shown"]  # delayed sends are counted, not timed
    assert verdicts(tmp_path, "7.1")[0] == "cannot be judged"
    assert "the reference varies by 50 %" in done.stdout


def test_plots_carry_the_statement(lab, tmp_path):
    lab("5.5", "--rounds", "1", "--quick", "--slots", "16", plots=True)
    png = (tmp_path / "out" / "5.5" / "plot.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n") and len(png) > 20000
    assert "<svg" in (tmp_path / "out" / "5.5" / "plot.svg").read_text()


@pytest.mark.slow
def test_suite_runs_every_benchmark_and_averages_them(lab, data):
    done = lab("7.4", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    rows = data("7.4")
    assert len({workload for workload, _, _ in rows}) == 16
    assert float(rows["Alltoall", "static", "64"]["overhead_percent"]) == pytest.approx(1.0)
    assert "average static 8: " in done.stdout


@pytest.mark.parametrize("name", some(("7.2", "7.3"), *((name,) for name in BY_NAME if name not in ("incast", "by-reference", *GROUPS["goal"], *GROUPS["multicast"]))))
def test_what_is_held_against_a_paper_goes_in_packets(lab, tmp_path, name):
    done = lab(name, "--quick", "--slots", "57", "--rounds", "1", FAKE_POLICIES=ALL_POLICIES,
               FAKE_PARAMETERS="slots_per_peer,credit_slots,preposted_buffers,piggyback,packet_trains,limic,ranks_per_node,trace,by_reference")
    assert done.returncode == 0, done.stderr
    assert calls(tmp_path) and all("--mca btl_velo_by_reference never " in call for call in calls(tmp_path))


@pytest.mark.slow
def test_both_worlds_stand_beside_each_other(lab, data, tmp_path):
    done = lab("by-reference", "--rounds", "1", FAKE_POLICIES=ALL_POLICIES)
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path, "by-reference") == ["shown", "shown", "shown"]
    assert float(data("by-reference")["Alltoall", "static, auto", "8"]["overhead_percent"]) == pytest.approx(1.0)
    assert float(data("by-reference")["Alltoall", "static, never", "8"]["overhead_percent"]) > 50
    assert "auto: 1.0 % on the average of 16 benchmarks" in done.stdout
    done = lab("by-reference", FAKE_PARAMETERS="slots_per_peer")
    assert "SKIPPED by-reference: this plugin has no parameter btl_velo_by_reference" in done.stdout


def test_counters_that_are_newer_than_the_program_are_kept(lab, data):
    lab("incast", "--quick", "--slots", "16")
    assert data("incast")["incast", "static", "16"]["refused"] == "7"


def test_a_counter_that_is_missing_is_not_measured(lab, tmp_path):
    assert lab("incast", "--quick", "--slots", "16").returncode == 0
    assert verdicts(tmp_path, "incast") == ["shown", "shown"]
    done = lab("incast", "--quick", "--slots", "16", FAKE_WITHOUT="mailbox_high_water")
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path, "incast") == ["shown", "cannot be judged"]
    assert "not measured: none 16, static 16, dynamic 16" in done.stdout


def test_verdicts_say_whose_their_bounds_are_and_are_counted_by_it(lab, tmp_path):
    done = lab("7.1", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    kinds = [verdict["kind"] for verdict in json.loads((tmp_path / "out" / "7.1" / "result.json").read_text())["verdicts"]]
    assert kinds == ["fitted", "predicted", "predicted", "predicted"]
    for kind in kinds:
        assert f" here ({kind}): " in done.stdout
    assert "\npredicted: 2 of 3 shown, 0 not, 1 cannot be judged; fitted: 1 of 1 shown, 0 not, 0 cannot be judged\n" in done.stdout


def test_phases_plot_the_credits_of_the_trace(lab, tmp_path):
    done = lab("7.3", "--quick", FAKE_PARAMETERS="slots_per_peer,credit_slots,piggyback,packet_trains,trace")
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path, "7.3") == ["shown", "shown", "shown"]
    assert calls(tmp_path)[0].endswith(" 20 2048 1,4,2,1,2,4,1")
    phases = (tmp_path / "out" / "7.3" / "phases.csv").read_text().splitlines()
    assert len(phases) == 1 + 4 * 7
    assert "ranks 1 to 3 (always active): 30, 120, 60, 30, 60, 120, 30" in done.stdout
    assert "ranks 8 to 15 (in all): 30, 2, 2, 30, 2, 2, 30" in done.stdout
    credits = (tmp_path / "out" / "7.3" / "credits.csv").read_text().splitlines()
    assert credits[0] == "alltoalls,group,median_credits,least,most"
    assert "40,ranks 8 to 15 (in all),2,2,2" in credits
    assert [path.name for path in (tmp_path / "out" / "7.3" / "trace").iterdir()] == ["velo.1.0.vtrace"]


def test_without_a_trace_the_credits_are_skipped_by_name(lab, tmp_path):
    done = lab("7.3", "--quick")
    assert "SKIPPED in 7.3: credits over time (figure 7.4): this plugin has no parameter btl_velo_trace" in done.stdout
    assert verdicts(tmp_path, "7.3")[0] == "cannot be judged"


def test_local_destinations_are_skipped_by_name_until_the_plugin_has_them(lab, tmp_path):
    done = lab("7.2")
    assert done.returncode == 0
    assert "SKIPPED 7.2: this plugin has no parameter btl_velo_limic, btl_velo_ranks_per_node" in done.stdout
    assert not (tmp_path / "calls").exists()


def test_local_destinations_vary_the_number_of_nodes(lab, tmp_path):
    done = lab("7.2", "--rounds", "1", "--quick",
               FAKE_PARAMETERS="slots_per_peer,credit_slots,piggyback,packet_trains,limic,ranks_per_node")
    assert done.returncode == 0, done.stderr
    assert {call.split("-np ")[1].split()[0] for call in calls(tmp_path)} == {"16"}
    assert all("--mca btl_velo_limic 1 " in call for call in calls(tmp_path))
    assert {call.split("btl_velo_ranks_per_node ")[1].split()[0] for call in calls(tmp_path)} == {"2", "4", "8"}


def test_bandwidth_skips_the_schemes_that_are_missing_by_name(lab):
    done = lab("bandwidth", "--quick")
    assert done.returncode == 0, done.stderr
    assert "SKIPPED in bandwidth: policy rnr: this plugin offers none, static, dynamic" in done.stdout


@pytest.mark.slow
def test_bandwidth_varies_windows_and_buffers_of_the_three_schemes(lab, data, tmp_path):
    done = lab("bandwidth", "--quick", FAKE_POLICIES=ALL_POLICIES,
               FAKE_PARAMETERS="slots_per_peer,credit_slots,preposted_buffers,initial_buffers")
    assert done.returncode == 0, done.stderr
    assert any("points Uniband --bytes 4 --window 32" in call and "flow_control rnr" in call
               and "btl_velo_preposted_buffers 10 " in call for call in calls(tmp_path))
    assert any("flow_control mvapich_dynamic --mca btl_velo_report json --mca btl_velo_initial_buffers 1 " in call
               for call in calls(tmp_path))
    matched = [call for call in calls(tmp_path) if "--mca pml cm --mca btl self --mca btl_velo_flow_control mvapich_" in call]
    # Two schemes with 10 buffers and windows of 32 and 100, blocking and not.
    assert len(matched) == 8 and all("--mca mtl velo" in call and "--bytes 4 " in call for call in matched)
    row = data("bandwidth")["4 B, 10 buffers, blocking, window 100", "none, large mailbox", "100"]
    assert float(row["mbytes_per_second"]) == pytest.approx(100 * 4 / 1000)


@pytest.fixture
def npb(tmp_path):
    """Makes programs of these names, and returns their directory."""
    def make(*names):
        for name in names:
            path = tmp_path / "npb" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)
        return str(tmp_path / "npb")
    return make


def test_nas_is_held_against_the_tables_of_its_paper(lab, npb, tmp_path):
    programs = npb("lu.A.8", "lu.S.8", "lu.A.4", "cg.A.x", "bt.A.16", "sp.W.9")
    done = lab("nas", "--npb", programs, "--rounds", "3", FAKE_POLICIES=ALL_POLICIES)
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path, "nas") == ["shown"] * 4
    assert "LU 28 of 152 (paper 9002 of 48805)" in done.stdout and "LU 63 (paper 63)" in done.stdout
    assert "SKIPPED in nas: IS, FT, MG, SP: no such programs" in done.stdout and "nas.nasa.gov" in done.stdout
    started = [call.split("/npb/")[1] for call in calls(tmp_path)]
    assert started == ["lu.A.8"] * 2 + ["cg.A.x"] * 2 + ["bt.A.16"] * 2, "one round: counts are the same in each"
    assert all("by_reference always" in call and ("-np 16 " in call) == call.endswith("bt.A.16") for call in calls(tmp_path))


def test_nas_that_shows_no_difference_or_is_of_another_class_is_not_said_to(lab, npb, tmp_path):
    lab("nas", "--npb", npb("lu.A.8", "cg.A.8"), FAKE_FLAT="1", FAKE_POLICIES=ALL_POLICIES)
    assert verdicts(tmp_path, "nas") == ["not shown", "shown", "shown", "not shown"]
    (tmp_path / "npb" / "lu.A.8").rename(tmp_path / "npb" / "lu.W.8")
    assert "LU 28 of 152 (paper 9002 of 48805), not of class A" in lab("nas", "--npb", npb(), FAKE_POLICIES=ALL_POLICIES).stdout
    assert verdicts(tmp_path, "nas")[0] == "cannot be judged"


def test_nas_is_skipped_without_programs_and_says_where_they_are(lab, npb):
    done = lab("nas", NPB_BIN="", FAKE_POLICIES=ALL_POLICIES)
    assert done.returncode == 0 and "SKIPPED nas: no NAS Parallel Benchmarks were named: NPB 3.3 or 3.4 from https://" in done.stdout
    assert "has no program such as lu.A.8" in lab("nas", NPB_BIN=npb("README"), FAKE_POLICIES=ALL_POLICIES).stdout


def test_nas_whose_own_check_fails_is_a_failure(lab, npb):
    done = lab("nas", "--npb", npb("lu.A.8", "cg.A.8"), FAKE_DEFECT="cg", FAKE_POLICIES=ALL_POLICIES)
    assert done.returncode == 1 and "its own check of the results failed" in done.stderr


def test_unexpected_benchmarks_are_counted_with_a_root_that_moves(lab, data, tmp_path):
    done = lab("7.9", "--rounds", "1", FAKE_PARAMETERS="by_reference,intended_max")
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path, "7.9")[0] == "shown"
    assert ("Reduce_scatter", "dynamic, at most 62", "16") in data("7.9")
    assert all("-np 16 " in call and "--hold 1 --calls" in call for call in calls(tmp_path))


def test_policies_can_be_chosen(lab, tmp_path):
    done = lab("5.5", "--quick", "--policies", "lazy,dynamic,greedy", "--slots", "16", FAKE_POLICIES=ALL_POLICIES)
    assert done.returncode == 0, done.stderr
    assert "SKIPPED in 5.5: policy greedy: this plugin offers none, static" in done.stdout
    assert any("flow_control lazy" in call and "btl_velo_lazy_slots 240" in call for call in calls(tmp_path))
    assert not any("flow_control static" in call for call in calls(tmp_path))


def test_hang_is_killed_reported_and_not_repeated(lab, data, tmp_path):
    done = lab("5.5", "--timeout", "0.5", "--rounds", "2", "--slots", "8,57", FAKE_HANG="static:8")
    assert done.returncode == 1
    assert "FAILED, no end after 0.5 s, killed" in done.stderr
    hung = [call for call in calls(tmp_path) if "control static --mca btl_velo_report json --mca btl_velo_slots_per_peer 8 " in call]
    assert len(hung) == 4  # once for each pattern
    assert data("5.5")["1x16", "static", "8"]["time_usec"] == ""
    assert float(data("5.5")["1x16", "static", "57"]["overhead_percent"]) == pytest.approx(1.0)


def test_wrong_data_is_a_failure(lab):
    done = lab("5.5", "--quick", "--slots", "16", FAKE_DEFECT="static:16")
    assert done.returncode == 1
    assert "FAILED, data check: 2 defects" in done.stderr


def test_failing_run_is_reported_with_its_output(lab):
    done = lab("5.4", "--quick", FAKE_FAIL="static:16")
    assert done.returncode == 1
    assert "rank 2: something went wrong" in done.stderr


def test_failing_reference_stops_the_experiment(lab, tmp_path):
    done = lab("5.4", "--quick", FAKE_FAIL="none:512")
    assert done.returncode == 1
    assert "none of the others was started" in done.stderr
    assert len(calls(tmp_path)) == 1
    assert "shown" not in verdicts(tmp_path, "5.4")


@pytest.mark.parametrize("name, broken", some(
    ("E3", "7.3", "5.4"), *((name, "dynamic") for name in BY_NAME if name not in ("5.3", "5.4", "5.5", "7.2", *GROUPS["multicast"])),
    ("5.3", "static"), ("5.4", "static"), ("5.5", "static"), ("7.1", "static"), ("7.4", "static"), ("6.8", "none")))
def test_verdicts_and_plots_survive_what_is_missing(lab, tmp_path, name, broken):
    done = lab(name, "--quick", "--slots", "16,57", plots=True, FAKE_FAIL=broken)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)
    assert (tmp_path / "out" / name / "plot.svg").exists()


def test_interrupted_experiment_keeps_what_it_has_and_the_earlier_result_and_leaves_no_mpirun_behind(velo_lab, tmp_path):
    earlier = tmp_path / "out" / "5.4"
    earlier.mkdir(parents=True)
    (earlier / "result.json").write_text("of an earlier run")
    log = tmp_path / "calls"
    command = [sys.executable, *map(str, velo_lab), "run", "5.4", "--mpirun", str(HERE / "fake_lab_mpirun.py"), "--ompi-info",
               str(FAKE_OMPI_INFO), "--patterns", "/bin/true", "--phases", "/bin/true", "--bench", "/bin/true", "--slots", "57",
               "--output", str(tmp_path / "out")]
    environment = os.environ | {"FAKE_LOG": str(log), "FAKE_HANG": "static:57"}
    assert terminate_when_logged(command, environment, log, "static") == 130
    assert (earlier / "result.json").read_text() == "of an earlier run"
    kept = tmp_path / "out" / "5.4.interrupted"
    assert ",True," in (kept / "data.csv").read_text()
    assert [path.name for path in kept.iterdir()] == ["data.csv"]  # no verdict
    assert living_with(str(log)) == []


@pytest.mark.parametrize("arguments, environment, complaint", [
    (["9.9"], {}, "'9.9' is not one of overview, 5.3, 5.4"),
    (["5.5", "--ranks", "3"], {}, "--ranks: the experiments need an even number of ranks, at least 4"),
    (["5.5", "--slots", "2"], {}, "--slots 2: a mailbox with 2 credit slots needs at least 4 slots per peer"),
    (["5.5", "--mpirun", "/nonexistent/mpirun"], {}, "apt-get install openmpi-bin"),
    (["5.5", "--patterns", "/nonexistent/program"], {}, "--measure /nonexistent/program: no such program"),
    (["5.5"], {"FAKE_NO_PLUGIN": "1"}, "finds no btl component velo; run make install"),
])
def test_wrong_command_line_is_explained(lab, arguments, environment, complaint):
    done = lab(*arguments, **environment)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_every_experiment_states_what_it_is_held_against():
    for experiment in BY_NAME.values():
        assert experiment.statement and experiment.source and experiment.title


def test_the_report_takes_in_what_was_simulated(velo_lab, tmp_path):
    (tmp_path / "fig5.3-verdict.txt").write_text("HOLDS (fitted): less < more [thesis]\n    metric: 1; bound: at most 2\nDOES NOT HOLD (predicted): far [thesis]\n"
                                                 "NOT MEASURED (input): put in [thesis]\n")
    (tmp_path / "fig5.3.png").write_bytes(b"\x89PNG")
    command = [sys.executable, *map(str, velo_lab), "report", str(tmp_path), "--simulated"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "less &lt; more [thesis] (fitted)" in page and "far [thesis] (predicted)" in page and "metric: 1" in page and "data:image/png;base64,iVBORw==" in page
    assert page.count('badge shown') == page.count('badge not-shown') == page.count('badge open') == 1

    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run([*command, str(empty)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "--simulated" in done.stderr and "velo-sim experiment" in done.stderr


ON_SCHEDULES = ("--contestants", "coll/velo,libnbc over velo,libnbc over vader")
COMPONENTS = {"FAKE_COMPONENTS": "btl:velo,btl:vader"}


def test_experiments_on_schedules_are_held_against_their_paper(lab, data, tmp_path):
    done = lab("goal", "--quick", *ON_SCHEDULES, **COMPONENTS)
    assert done.returncode == 0, done.stderr
    found = {name: verdicts(tmp_path, name) for name in GROUPS["goal"]}
    assert found == {
        "E1": ["shown", "cannot be judged", "shown"],  # --quick has no size from 64 KiB on
        "E2": ["shown", "shown", "shown"],
        "E3": ["shown", "not shown", "shown"],  # a small gather is faster here, not slower
        "E4": ["shown", "shown", "shown", "shown", "shown", "shown"],
        "E5": ["shown", "shown"]}
    assert data("E1")["ping-pong", "in one schedule", "8"]["time_usec"] == "2.0"
    assert data("E2")["addition double", "loop", "8"]["time_usec"] == "0.1008"
    assert data("E3")["gather of 500 KiB 4", "schedule of goal.h", "4"]["time_usec"] == "2.5"
    assert data("E3")["barrier 2", "libnbc over vader", "2"]["time_usec"] == "4.5"
    assert data("E4")["Iallreduce", "libnbc over vader", "8"]["wait_usec"] == "4.0"
    assert float(data("E5")["slowdown", "libnbc over vader, explicit", "16"]["slowdown_percent"]) == pytest.approx(0.2 / 0.256 * 100)
    assert "SKIPPED in E4: mpich: not among --contestants" in done.stdout
    assert "contestants take turns in the same interleaved run" in done.stdout


def test_schedules_that_win_nothing_are_not_said_to(lab, tmp_path):
    done = lab("E3", "E4", "E5", "--quick", *ON_SCHEDULES, **COMPONENTS, FAKE_FLAT="1")
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path, "E3") == ["shown", "not shown", "shown"]  # as fast is not slower
    assert verdicts(tmp_path, "E4") == ["shown", "not shown", "not shown", "not shown", "not shown", "not shown"]
    assert verdicts(tmp_path, "E5")[0] == "not shown"


NETWORK = {"FAKE_COMPONENTS": "btl:velo,coll:velo,pml:ucx"}


@pytest.fixture
def nodes(tmp_path):
    (tmp_path / "hostfile").write_text("".join(f"10.77.0.{i} slots=1\n" for i in range(1, 9)))
    return {"VELO_NODES": str(tmp_path), **NETWORK}


def test_multicast_is_held_against_trees_of_messages_by_the_number_of_nodes(lab, data, nodes, tmp_path):
    done = lab("multicast", "--quick", **nodes)
    assert done.returncode == 0, done.stderr
    assert {name: verdicts(tmp_path, name) for name in GROUPS["multicast"]} == {"S1": ["shown"] * 2, "S2": ["shown"] * 6, "S8": [], "S9": []}
    assert "SKIPPED S8: it needs several ranks on each node" in done.stdout
    assert [data("S1")["roots in turn 8", series, "8"]["time_usec"] for series in ("multicast", "tree", "tcp", "ucx")] == ["1.25", "4.5", "7.5", "7.5"]
    assert {x for _, _, x in data("S1")} == {"2", "4", "8"} and {x for _, _, x in data("S2")} == {"8"}
    by_multicast = [call for call in calls(tmp_path) if "--mca coll_velo_multicast always" in call]
    assert len(by_multicast) == 8 and all("--map-by node" in call for call in calls(tmp_path))
    assert [call.count("--hold 1") for call in by_multicast] == [1] * 3 + [0] * 5, "the roots of S1 take turns"
    assert sorted(re.findall(r"multicast_scheme (\w+)", "".join(by_multicast))) == ["basic", "coroot", "tree", "window", "window"]


def test_multicast_that_wins_nothing_is_not_said_to(lab, nodes, tmp_path):
    assert lab("multicast", "--quick", FAKE_FLAT="1", **nodes).returncode == 0
    assert {name: verdicts(tmp_path, name) for name in ("S1", "S2")} == {"S1": ["not shown"] * 2, "S2": ["shown", *["not shown"] * 5]}


def test_an_alltoall_in_three_phases_is_held_against_one_of_all_ranks(lab, nodes, tmp_path):
    (tmp_path / "hostfile").write_text("".join(f"10.77.0.{i} slots=2\n" for i in range(1, 9)))
    assert lab("S8", "S9", "--rounds", "1", **nodes).returncode == 0
    assert {name: verdicts(tmp_path, name) for name in ("S8", "S9")} == {"S8": ["shown"] * 2, "S9": ["shown"] * 2}
    schedules = [call for call in calls(tmp_path) if " /bin/true run alltoall:" in call]
    assert schedules and all("--map-by slot" in call and "-n 16 " in call and "--on-node 2" in call for call in schedules)
    assert lab("S8", "S9", "--rounds", "1", FAKE_FLAT="1", **nodes).returncode == 0
    assert {name: verdicts(tmp_path, name) for name in ("S8", "S9")} == {"S8": ["not shown"] * 2, "S9": ["not shown"] * 2}


def test_without_nodes_multicast_is_skipped_and_the_way_to_have_some_is_told(lab, tmp_path):
    done = lab("S1", "--quick", **NETWORK)
    assert done.returncode == 0 and "SKIPPED S1: it needs nodes: contrib/nodes run" in done.stdout, done.stdout + done.stderr
    assert verdicts(tmp_path, "S1") == []


def test_each_contestant_is_started_its_own_way(lab, tmp_path):
    assert lab("E4", "--quick", "--mca", "x", "y", *ON_SCHEDULES, **COMPONENTS).returncode == 0
    said = calls(tmp_path)
    schedules, libnbc = ([call for call in said if words in call] for words in ("--mca coll velo,basic,libnbc,self", "--mca btl vader,self"))
    assert len(schedules) == len(libnbc) and len(schedules) + len(libnbc) == len(said)
    assert all(" --mca x y /bin/true overlap " in call for call in schedules + libnbc)
    assert {tests for call in schedules for tests in ("0", "1") if f"--tests {tests}" in call} == {"0", "1"}


def test_without_schedules_there_is_nothing_to_say(lab, tmp_path):
    done = lab("E1", "--contestants", "libnbc over vader", **COMPONENTS)
    assert done.returncode == 0 and "SKIPPED E1: coll/velo: not among --contestants; " in done.stdout, done.stdout + done.stderr
    assert verdicts(tmp_path, "E1") == []


def test_who_is_not_there_is_skipped_by_name_and_leaves_open_what_needs_him(lab, tmp_path):
    done = lab("E5", "--quick", "--contestants", "coll/velo,libnbc over vader")
    assert done.returncode == 0, done.stderr
    assert "SKIPPED in E5: libnbc over vader: Open MPI 4.1.4 has no btl component vader" in done.stdout
    assert verdicts(tmp_path, "E5") == ["cannot be judged", "cannot be judged"]
