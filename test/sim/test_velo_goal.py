"""velo-goal and velo-sim goal from the command line: files, conversions, findings, pictures, and wrong input."""

import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

TIME_LIMIT = 120
RING = """num_ranks 2
rank 0 {
r: recv 8b from 1
s: send 8b to 1
s requires r
}
rank 1 {
r: recv 8b from 0
s: send 8b to 0
s requires r
}
"""


@pytest.fixture(scope="session")
def velo_goal():
    """Runs velo-goal with the given words."""
    build = os.environ.get("VELO_BUILD_DIR")
    if not build:
        pytest.skip("VELO_BUILD_DIR names no build tree with velo-goal; make check-mpi sets it")

    def run(*words):
        return subprocess.run([pathlib.Path(build) / "contrib" / "goal" / "velo-goal", *map(str, words)], capture_output=True,
                              timeout=TIME_LIMIT)

    return run


def algorithms(velo_goal):
    return velo_goal("list").stdout.decode().split()


def times(result):
    assert result.returncode == 0, result.stdout + result.stderr
    return [int(time) for time in re.findall(r"^Host \d+: (\d+)$", result.stdout, re.MULTILINE)]


def test_every_collective_is_generated_checked_and_simulated(velo_goal, velo_sim, tmp_path):
    names = algorithms(velo_goal)
    assert len(names) >= 30
    for name in names:
        file = tmp_path / "collective.goal"
        generated = velo_goal("generate", name, "-n", 6, "--bytes", 96, "-o", file)
        assert generated.returncode == 0, generated.stderr
        checked = velo_goal("check", name, "-n", 6, "--bytes", 96, "--eager", 0)
        assert checked.returncode == 0, checked.stdout
        # The text of it is the same program, to the nanosecond.
        by_name = velo_sim("goal", name, "-n", 6, "--bytes", 96, "--machine", "loggops")
        assert times(by_name) == times(velo_sim("goal", file, "--machine", "loggops")), name


def test_text_and_binary_are_converted_into_each_other(velo_goal, tmp_path):
    text, binary, again = (tmp_path / name for name in ("a.goal", "a.bin", "b.goal"))
    assert velo_goal("generate", "allreduce:ring", "-n", 5, "--bytes", 100, "--local", 0.5, "-o", text).returncode == 0
    assert "calc 10\n" in text.read_text()
    assert velo_goal("convert", text, "--binary", "-o", binary).returncode == 0
    assert binary.read_bytes()[:12] == (4223).to_bytes(8, "little") + (5).to_bytes(4, "little")
    assert velo_goal("convert", binary, "-o", again).returncode == 0
    assert again.read_text() == text.read_text()


def test_what_the_checker_finds_is_told_and_an_exit_status(velo_goal, tmp_path):
    file = tmp_path / "ring.goal"
    file.write_text(RING)
    found = velo_goal("check", file)
    assert found.returncode == 1
    assert found.stdout.decode() == (
        "deadlock: rank 0: r (recv 8b from 1) waits for rank 1: r (recv 8b from 0) waits for rank 0\n"
        "2 ranks, 4 operations, 1 finding\n")
    as_json = json.loads(velo_goal("check", file, "--json").stdout)
    assert [finding["kind"] for finding in as_json["findings"]] == ["deadlock"]
    assert velo_goal("check", "gather:linear", "-n", 3, "--barrier").stdout.decode().count("may end before") == 4
    assert velo_goal("check", "barrier:recursive_doubling", "-n", 5, "--barrier").returncode == 0


def test_a_deadlock_is_explained_on_both_machines(velo_sim, tmp_path):
    file = tmp_path / "ring.goal"
    file.write_text(RING)
    for machine in ("packets", "loggops"):
        result = velo_sim("goal", file, "--machine", machine)
        assert result.returncode == 1
        assert "rank 0: r (recv 8b from 1) waits for rank 1: r (recv 8b from 0) waits for rank 0" in result.stdout


@pytest.mark.parametrize("text, told", [
    ("num_ranks 1\nrank 0 {\nsend 5 to 0\n}\n", "line 3, column 8: expected \"b\", found \"to\""),
    ("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n",
     "rank 0 has a cycle: b (calc 1) waits for a (calc 1) waits for b"),
    ("num_ranks 2\nrank 0 {\n}\n", "rank 1 of 2 is missing"),
])
def test_a_wrong_file_is_refused_with_its_place(velo_goal, tmp_path, text, told):
    file = tmp_path / "wrong.goal"
    file.write_text(text)
    refused = velo_goal("check", file)
    assert refused.returncode == 1 and refused.stderr.decode() == f"velo-goal: {file}: {told}\n"


@pytest.mark.parametrize("each, by_loggops", [(2**64 - 1, None), (5 * 10**15, 10**16)])
def test_what_lasts_longer_than_simulated_time_is_refused(velo_sim, tmp_path, each, by_loggops):
    file = tmp_path / "long.goal"
    file.write_text(f"num_ranks 1\nrank 0 {{\na: calc {each}\nb: calc {each}\nb requires a\n}}\n")
    refused = velo_sim("goal", file)
    assert refused.returncode == 1 and "longer than the 106 days that can be simulated" in refused.stderr
    longer = velo_sim("goal", file, "--machine", "loggops")
    if by_loggops is None:
        assert longer.returncode == 1 and "ends beyond the 2^64 nanoseconds that can be simulated" in longer.stderr
    else:
        assert times(longer) == [by_loggops]


def test_wrong_words_are_told(velo_goal):
    for words, told in ((("check", "bcast:quick"), "bcast goes as bcast:linear, "), (("check", "nothing:quick"), "no such OPERATION:ALGORITHM"), (("check", "/nowhere"), "cannot read /nowhere: No such file"),
                        (("generate", "allreduce"), "and allreduce goes as allreduce:"), (("check", "/tmp"), "velo-goal: /tmp is a directory; name a file"),
                        ((), "velo-goal: A subcommand is required; velo-goal --help shows how"),
                        (("check",), "velo-goal check: program is required; velo-goal check --help shows how"),
                        (("check", "bcast:linear", "--nonsense"), "velo-goal check: The following argument was not expected: --nonsense; velo-goal check"),
                        (("generate", "bcast:linear", "-n", 4, "--root", 4), "--root 4 is none of 4 ranks"),
                        (("generate", "bcast:linear", "-o", "/nowhere/file"), "cannot write /nowhere/file"),
                        (("draw", "alltoall:linear", "-n", 200), "too many for a picture")):
        result = velo_goal(*words)
        assert result.returncode != 0 and told in result.stderr.decode(), words


def test_a_picture_has_every_operation_requirement_and_message(velo_goal):
    drawn = velo_goal("draw", "barrier:dissemination", "-n", 4)
    svg = ElementTree.fromstring(drawn.stdout)
    count = lambda tag: len(svg.findall(f"{{http://www.w3.org/2000/svg}}{tag}"))
    assert count("rect") == 16
    # Two of each rank's operations wait for its first receive; and eight messages.
    assert count("line") == 4 * 2 + 8
    dot = velo_goal("draw", "barrier:dissemination", "-n", 4, "--dot").stdout.decode()
    assert dot.count("->") == 16 and dot.count("color=blue") == 8


def test_a_run_on_loggops_becomes_a_trace(velo_sim, tmp_path):
    file = tmp_path / "trace.json"
    result = velo_sim("goal", "bcast:binomial", "-n", 8, "--bytes", 100, "--machine", "loggops", "--trace", file)
    events = json.loads(file.read_text())["traceEvents"]
    phases = [event["ph"] for event in events]
    # A slice at both ends of each of 7 messages, and an arrow from one to the other.
    assert (phases.count("X"), phases.count("s"), phases.count("f")) == (14, 7, 7)
    assert {e["id"] for e in events if e["ph"] == "s"} == {e["id"] for e in events if e["ph"] == "f"}
    assert round(1000 * max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")) == max(times(result))


@pytest.mark.parametrize("words, told", [
    (["--machine", "loggops", "--policy", "dynamic"], '--policy has no meaning for this machine: "With --machine packets" only'),
    (["-L", "5"], '-L has no meaning for this machine: "With --machine loggops" only'),
    (["--machine", "loggops", "--noise", "5"], "--noise requires --noise-period"),
    (["--machine", "loggops", "-S", "-1"], "-S"),
])
def test_an_option_of_the_other_machine_is_refused(velo_sim, words, told):
    result = velo_sim("goal", "bcast:binomial", "-n", 4, *words)
    assert result.returncode != 0 and told in result.stderr


def test_collectives_run_under_a_policy_with_packets_that_are_counted(velo_sim):
    for policy in ("none", "static", "dynamic"):
        result = velo_sim("goal", "barrier:dissemination", "-n", 64, "--policy", policy, "--slots", 12, "--iterations", 5, "--json")
        counted = json.loads(result.stdout)
        assert counted["total"]["messages_sent"] == counted["total"]["data_packets"] == 64 * 6 * 5
        assert counted["deadlock"] == counted["fault"] == ""
