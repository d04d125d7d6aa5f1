"""velo-sim from the command line: files, plots, verdicts and what it says about wrong input."""

import csv
import json
import pathlib
import re
import subprocess
import sys

import pytest

PLOT = pathlib.Path(__file__).resolve().parent.parent.parent / "contrib" / "sim" / "velo-sim-plot"


def entry(**of):
    """A statement of a bounds file, as JSON."""
    return json.dumps({"kind": "predicted", "statement": "s", "source": "t", "reduced": "holds", "full": "not run", **of})


def test_an_experiment_of_another_size_is_not_held_against_the_table(velo_sim, tmp_path):
    result = velo_sim("experiment", "eight", "--processes", "16", "--seeds", "1", "--no-plot", "--output", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "(16 size, 1 run)" in result.stdout and "UNEXPECTED" not in result.stdout
    with open(tmp_path / "eight-16.csv", newline="", encoding="utf-8") as file:
        assert {row["windows"] for row in csv.DictReader(file)} == {"0", "2", "4"}  # an eighth and a quarter of 16


def test_an_experiment_writes_table_plot_and_verdict(velo_sim, tmp_path):
    result = velo_sim("experiment", "table7.1", "--output", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    with open(tmp_path / "table7.1.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["processes"] for row in rows] == ["1024", "4096", "16384", "65536", "262144"]
    assert float(rows[-1]["thesis_dynamic_mb"]) == pytest.approx(293.5, abs=0.1)
    assert "HOLDS" in (tmp_path / "table7.1-verdict.txt").read_text()
    assert (tmp_path / "table7.1.png").read_bytes().startswith(b"\x89PNG")


def test_a_verdict_that_is_not_as_expected_is_an_exit_status(velo_sim, tmp_path):
    bounds = tmp_path / "bounds.json"
    bounds.write_text(f'{{"table7.1": [{entry(metric="velo_dynamic_mb_1k", min=5)}]}}')
    result = velo_sim("experiment", "table7.1", "--output", tmp_path, "--bounds", bounds, "--no-plot")
    assert result.returncode == 1
    assert "DOES NOT HOLD (predicted): s [t]" in result.stdout and "UNEXPECTED" in result.stdout
    assert "count: predicted: 0 of 1 hold, 1 do not" in result.stdout


@pytest.mark.parametrize("entry, told", [
    (f'[{entry(metric="no_such", min=5)}]', "NOT MEASURED (predicted): s [t]"),
    (f'[{entry(metric="m", min=5, max=1)}]', "a lower bound above the upper one"),
    (f'[{entry(metric="m", min=5, kind="sure")}]', 'kind is "sure"'),
    ("[]", "no statements"),
])
def test_statements_that_can_say_nothing_are_no_success(velo_sim, tmp_path, entry, told):
    bounds = tmp_path / "bounds.json"
    bounds.write_text(f'{{"literal": {entry}}}')
    result = velo_sim("experiment", "literal", "--output", tmp_path, "--bounds", bounds, "--no-plot")
    assert result.returncode == 1
    assert told in result.stdout + result.stderr


def test_a_plot_leaves_out_what_was_not_measured_and_joins_the_seeds(velo_sim, tmp_path):
    table = tmp_path / "x.csv"
    table.write_text("seed,policy,slots_per_peer,overhead_percent\n1,static,8,4\n2,static,8,\n1,static,16,2\n2,static,16,3\n")
    picture = tmp_path / "x.svg"
    done = velo_sim("plot", table, picture, "--x", "slots_per_peer", "--y", "overhead_percent")
    assert done.returncode == 0, done.stderr
    assert picture.read_text().count('id="line2d_') > 0 and "policy static" in picture.read_text()


def test_help_is_text_and_has_one_name_for_the_number_of_ranks(velo_sim):
    for command in ("run", "experiment", "goal", "multicast"):
        told = velo_sim(command, "--help").stdout
        assert all(character.isprintable() or character == "\n" for character in told)
    assert "--by-reference TEXT:{always,auto,never}=auto" in velo_sim("run", "--help").stdout
    assert all("--np" in velo_sim(command, "--help").stdout for command in ("run", "experiment"))


def plot(*words):
    return subprocess.run([sys.executable, PLOT, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)


def test_a_plot_of_what_is_not_there_names_it(tmp_path):
    table = tmp_path / "x.csv"
    table.write_text("seed,policy,slots_per_peer\n1,static,8\n")
    done = plot(table, tmp_path / "x.png", "--x", "slots_per_peer", "--y", "nothing")
    assert (done.returncode, done.stderr) == (2, f"velo-sim plot: {table} has no column nothing; it has seed, policy, slots_per_peer\n")
    done = plot("/nowhere.csv", tmp_path / "x.png", "--x", "slots_per_peer", "--y", "nothing")
    assert (done.returncode, done.stderr) == (2, "velo-sim plot: /nowhere.csv: No such file or directory\n")


def test_a_title_that_is_too_long_for_a_line_takes_several(tmp_path):
    table, picture = tmp_path / "x.csv", tmp_path / "x.svg"
    table.write_text("slots_per_peer,overhead_percent\n8,4\n16,2\n")
    words = [f"word{number}" for number in range(60)]
    done = plot(table, picture, "--x", "slots_per_peer", "--y", "overhead_percent", "--title", " ".join(words))
    assert done.returncode == 0, done.stderr
    lines = [line for line in re.findall(r"<!-- (.*?) -->", picture.read_text()) if "word" in line]
    assert len(lines) >= 2 and " ".join(lines).split() == words


def test_the_same_seed_is_the_same_run(simulate):
    words = ["alltoall", "-n", 64, "--policy", "dynamic", "--slots", 16, "--iterations", 2]
    first, second, other = simulate(*words), simulate(*words), simulate(*words, "--seed", 5)
    assert first["digest"] == second["digest"] != other["digest"]


def test_counts_what_goes_by_reference(simulate):
    words = ["alltoall", "-n", 32, "--policy", "static", "--slots", 8]
    usual, never = simulate(*words)["total"], simulate(*words, "--by-reference", "never")["total"]
    assert usual["messages_by_reference"] == usual["messages_sent"] == never["messages_sent"]
    assert 0 < usual["outbox_high_water"] <= 262144
    assert never["messages_by_reference"] == never["outbox_high_water"] == never["outbox_full"] == 0


def test_groups_have_their_alltoalls_at_the_same_time_and_among_themselves(simulate):
    words = ["alltoall", "-n", 16, "--active", 8, "--policy", "static", "--slots", 8, "--by-reference", "never", "--per-process", "--groups"]
    alone, both = (simulate(*words, groups) for groups in (1, 2))
    assert (alone["total"]["messages_sent"], both["total"]["messages_sent"]) == (8 * 7, 2 * 8 * 7)
    assert [process["messages_delayed"] for process in alone["per_process"]] == [7] * 8 + [0] * 8
    assert [process["messages_delayed"] for process in both["per_process"]] == [7] * 16


def test_counts_what_goes_in_batches(simulate, velo_sim):
    words = ["stream", "-n", 2, "--policy", "static", "--slots", 8, "--bytes", 8, "--repetitions", 60, "--gets", 0]
    total = simulate(*words)["total"]
    assert 0 < total["batches"] < total["batched_messages"] < total["messages_sent"]
    text = velo_sim("run", *words).stdout
    assert f"in batches         {total['batched_messages']}, in {total['batches']} of them\n" in text


def test_multicast_says_what_came_of_it_and_what_the_models_say(velo_sim):
    result = velo_sim("multicast", "-n", 64, "--loss", 1, "--broadcasts", 300)
    assert result.returncode == 0, result.stderr
    assert "median of 300 broadcasts" in result.stdout and "model: " in result.stdout
    words = ["multicast", "-n", 64, "--stream", "--scheme", "window", "--ack-every", 1, "--json"]
    told = json.loads(velo_sim(*words, "--broadcasts", 100).stdout)
    # Each of 63 members for each datagram, but for those that come after the last one has.
    assert 0.9 * 6300 <= told["acks_at_root"] <= 6300 and told["fault"] == "" and told["resent"] == 0
    words = ["multicast", "--stream", "--share", 4, "--loss", 2, "--broadcasts", 2000, "--json", "--shares"]
    waited = {shares: json.loads(velo_sim(*words, shares).stdout)["us_each"] for shares in ("static", "dynamic")}
    assert waited["dynamic"] < waited["static"]
    original = json.loads(velo_sim("multicast", "-n", 64, "--mode", "original", "--json").stdout)
    assert original["median_us"] == pytest.approx(original["model"]["original_us"], rel=0.1)


@pytest.mark.parametrize("words, expected", [
    (["run", "alltoall", "--policy", "dynamic", "--slots", 3], "set btl_velo_slots_per_peer to at least"),
    (["run", "alltoall", "--nodes", "4x"], "--nodes 4x"),
    (["run", "alltoall", "-n", 64, "--nodes", "2"], "--nodes"),
    (["run", "alltoall", "--cost", "hop"], "NAME=NANOSECONDS"),
    (["run", "alltoall", "--cost", "hops=3"], "no such cost"),
    (["run", "alltoall", "--warm-up", 1], "--iterations"),
    (["run", "phases"], "--phases"),
    (["run", "phases", "--phases", "128"], "--processes"),
    (["run", "phases", "-n", 4, "--phases", "0"], "--phases"),
    (["run", "alltoall", "-n", 4, "--active", 9], "--active"),
    (["run", "alltoall", "-n", 4, "--active", 2, "--groups", 3], "--groups"),
    (["run", "sparse", "-n", 4, "--neighbours", 9], "--neighbours"),
    (["run", "alltoall", "--cost", "hop=nan"], "NAME=NANOSECONDS"),
    (["run", "alltoall", "--header-bytes", 4294967295], "--header-bytes"),
    (["run", "alltoall", "--bytes", 4294967295], "--bytes"),
    (["run", "alltoall", "--per-process"], "--json"),
    (["run", "alltoall", "--by-reference", "sometimes"], "--by-reference"),
    (["run", "alltoall", "--outbox", 4294967296], "--outbox"),
    (["run", "polka"], "polka"),
    (["multicast", "--window", 48], "power of two"),
    (["multicast", "-n", 8, "--co-roots", 8], "co-roots"),
    (["multicast", "--scheme", "hope"], "hope"),
    (["multicast", "--loss", 95], "--loss"),
    (["experiment", "fig9.9"], "fig9.9"),
    (["experiment", "fig5.5", "--processes", "32"], "fig5.5 has two sizes"),
    (["experiment", "fig7.5", "--processes", "32", "--full"], "--full"),
    (["experiment", "table7.1", "--bounds", "/nowhere"], "--bounds"),
    (["experiment", "table7.1", "--no-plot", "--output", "/proc/nowhere"], "/proc/nowhere"),
])
def test_wrong_input_is_named(velo_sim, words, expected):
    result = velo_sim(*words)
    assert result.returncode not in (0, None)
    assert expected in result.stderr and len(result.stderr) < 3000


def test_list_shows_what_there_is(velo_sim):
    text = velo_sim("list").stdout
    for word in ("fig7.4", "wavefront", "dynamic", "hop"):
        assert word in text
