"""velo-prove: which phases it takes, how it judges them, what its table says."""

import json
import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "contrib/dev/velo-prove"
from velo.dev.prove import phases, running, table


def phase(script, **further):
    return phases.Phase("sample", "a sample", ("sh", "-c", script), 20, **further)


def run(tmp_path, script, limit_s=None, **further):
    return running.run(phase(script, **further), tmp_path, tmp_path / "log", limit_s)


def test_a_phase_that_succeeds_says_what_it_ran(tmp_path):
    result = run(tmp_path, "echo noise; echo '== 3 passed, 1 skipped in 2 s =='; echo more noise")
    assert (result.outcome, result.detail) == ("passed", "3 passed, 1 skipped in 2 s")


def test_a_phase_that_fails_names_its_status_and_its_log(tmp_path):
    result = run(tmp_path, "echo '2 failed, 3 passed'; exit 3")
    assert result.outcome == "FAILED"
    assert result.detail.startswith("exit status 3: 2 failed, 3 passed; see ") and result.detail.endswith("/log")


def test_a_phase_that_fails_without_counts_shows_its_last_words(tmp_path):
    assert "no compiler" in run(tmp_path, "echo no compiler >&2; exit 1").detail


def test_a_phase_that_hangs_fails_at_its_limit_and_leaves_no_process(tmp_path):
    result = run(tmp_path, "sleep 300 & echo $! >child; wait", limit_s=1)
    assert result.outcome == "FAILED" and "still running after 1 s" in result.detail
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 20
    while pathlib.Path(f"/proc/{child}/cmdline").exists() and time.monotonic() < deadline:
        if pathlib.Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not pathlib.Path(f"/proc/{child}").exists()


def test_what_is_not_installed_is_a_reason_to_skip_and_runs_nothing(tmp_path):
    result = run(tmp_path, "touch ran", needs=("sh", "no-such-command-anywhere"))
    assert (result.outcome, result.detail) == ("skipped", "no-such-command-anywhere not installed")
    assert not (tmp_path / "ran").exists()


def test_a_command_that_finds_nothing_to_run_is_skipped_with_its_reason(tmp_path):
    result = run(tmp_path, "echo 'no application is installed'; exit 77")
    assert (result.outcome, result.detail) == ("skipped", "no application is installed")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to see that root is enough")
def test_a_phase_for_root_runs_as_root(tmp_path):
    assert run(tmp_path, "true", root=True).outcome == "passed"


def test_counts_that_stand_together_are_taken_together(tmp_path):
    script = "printf '# PASS: 9\\n\\n# TOTAL: 5\\n# PASS: 4\\n# FAIL: 1\\n'"
    assert run(tmp_path, script, ran=r"^# \w+:").detail == "TOTAL: 5, PASS: 4, FAIL: 1"


def test_the_environment_of_a_phase_reaches_its_command(tmp_path):
    assert run(tmp_path, "test \"$PART\" = unit", environment={"PART": "unit"}).outcome == "passed"


@pytest.mark.parametrize("outcomes, status", [
    (["passed"], 0), (["passed", "skipped"], 0), (["passed", "FAILED"], 1), (["skipped"], 1), ([], 1)])
def test_the_exit_status_is_good_only_if_something_ran_and_nothing_failed(outcomes, status):
    assert table.exit_status([running.Result("x", outcome, "") for outcome in outcomes]) == status


def test_the_table_has_a_line_for_each_phase_and_one_for_all():
    results = [running.Result("unit", "passed", "TOTAL: 8, PASS: 8", 61.4), running.Result("series", "skipped", "needs root"),
               running.Result("mpi", "FAILED", "exit status 1: " + "many words " * 20, 7)]
    text = table.text(results)
    assert "unit    passed        61  TOTAL: 8, PASS: 8" in text
    assert "series  skipped        -  needs root" in text
    assert text.endswith("1 passed, 1 failed, 1 skipped")
    assert max(map(len, text.splitlines())) <= 120


def test_a_table_of_nothing_but_skips_says_that_nothing_is_proved():
    assert "nothing has been proved" in table.verdict([running.Result("series", "skipped", "needs root")])


def test_phases_keep_their_order_and_unknown_ones_are_named():
    assert [p.name for p in phases.choose(["mpi", "unit"], [])] == ["unit", "mpi"]
    assert "mpi" not in [p.name for p in phases.choose([], ["mpi"])]
    with pytest.raises(ValueError, match="no phase mpl; there are unit, "):
        phases.choose(["mpl"], [])


def test_every_phase_calls_a_command_of_the_tree():
    for each in phases.PHASES:
        assert os.access(ROOT / each.command[0], os.X_OK), each.command[0]


def test_the_command_lists_its_phases_and_refuses_unknown_ones(tmp_path):
    listed = subprocess.run([COMMAND, "--list"], capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in listed.splitlines()] == [p.name for p in phases.PHASES]
    wrong = subprocess.run([COMMAND, "--only", "unti", "--logs", tmp_path], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "no phase unti" in wrong.stderr


def test_results_are_kept_for_other_programs_and_for_a_run_that_goes_on():
    results = [running.Result("unit", "passed", "9 tests", 1.26, "abc1234")]
    assert json.loads(table.as_json(results)) == [
        {"phase": "unit", "outcome": "passed", "detail": "9 tests", "seconds": 1.3, "source": "abc1234"}]
    assert table.from_json(table.as_json(results))[0].detail == "9 tests"
    for wrong in ("", "{}x", '[{"name": "unit"}]', "[3]"):
        with pytest.raises(ValueError, match="no results of velo-prove"):
            table.from_json(wrong)


def test_phases_of_another_commit_are_named():
    results = [running.Result("unit", "passed", "", 1, "abc1234"), running.Result("lint", "passed", "", 1, "def5678")]
    assert "another commit than def5678: unit (abc1234)" in table.text(results, "def5678")
    assert "another commit" not in table.text(results[:1], "abc1234")


def resume(directory, *words):
    return subprocess.run([COMMAND, "--resume", directory, *words], capture_output=True, text=True, check=False)


def test_a_run_that_goes_on_does_not_repeat_what_has_passed(tmp_path):
    kept = [running.Result("unit", "passed", "TOTAL: 8", 61.4, "abc1234"), running.Result("lint", "FAILED", "x", 3, "abc1234")]
    (tmp_path / "results.json").write_text(table.as_json(kept))
    result = resume(tmp_path, "--only", "unit")
    assert "TOTAL: 8" in result.stdout and "abc1234" in result.stdout
    assert result.returncode == 1 and "1 passed, 1 failed" in result.stdout, "what has failed stays so until it is run again"
    assert list(tmp_path.iterdir()) == [tmp_path / "results.json"]


def test_a_run_goes_on_only_where_one_has_been(tmp_path):
    result = resume(tmp_path)
    assert result.returncode == 2 and "results.json" in result.stderr
    (tmp_path / "results.json").write_text("nothing")
    result = resume(tmp_path)
    assert result.returncode == 2 and "no results of velo-prove" in result.stderr
    assert resume(tmp_path, "--logs", tmp_path).returncode == 2
