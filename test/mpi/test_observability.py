"""What a running job tells about its flow control: MPI_T variables, velo-pvars, the warning about stalls, the trace."""

import json
import os
import re
import shutil
import subprocess

import pytest

from flows import flows, velo_only
from velo.trace import reader

pytestmark = velo_only
WAIT_MS = 300
MANY = 5000  # of 1000 bytes: more than all that credits and outbox hold


def tool(name):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not on PATH; make check-mpi puts it there")
    return path


def run_tool(*words, expect=0):
    result = subprocess.run([tool(words[0]), *map(str, words[1:])], capture_output=True, text=True, timeout=120)
    assert result.returncode == expect, f"{words}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
    return result


# --- MPI_T


@flows(16)
def test_plain_mpi_t_sees_a_stall_while_it_lasts(mpi, flow):
    facts = mpi.run("pvars", WAIT_MS, MANY, np=3, params=flow.params).facts()
    counts_credits = flow.policy != "none"
    assert facts["variables"] >= 20
    assert facts["before_stalls"] == facts["before_stalled_time"] == facts["before_queued_bytes"] == 0
    assert (facts["before_credits"] > 0) == counts_credits
    assert facts["during_stalls"] == 1
    assert facts["during_credits_of_1"] == 0
    assert facts["during_queued_of_1"] == facts["during_queued_bytes"] > 10_000
    assert facts["after_queued_bytes"] == 0
    assert facts["after_stalls_of_1"] == facts["after_stalls"] >= 1
    assert facts["after_stalled_time_of_1"] == facts["after_stalled_time"] > WAIT_MS * 1e6
    assert facts["after_messages_sent"] >= MANY
    assert facts["after_messages_delayed"] <= facts["after_messages_sent"]
    in_the_outbox = facts["after_messages_by_reference"] + facts["after_batched_messages"]
    assert facts["after_messages_sent"] <= facts["after_data_packets"] + in_the_outbox


@flows(16, policies=("dynamic",))
def test_handles_that_are_older_than_mpi_init_count_too(mpi, flow):
    facts = mpi.run("pvars", 50, MANY, "early", np=2, params=flow.params).facts()
    assert facts["after_messages_sent"] >= MANY
    assert facts["after_stalls"] >= 1


def test_ompi_info_lists_the_variables_with_help(ompi_info):
    text = ompi_info("--all", "--parsable").stdout
    for name in ("messages_sent", "messages_delayed", "data_packets", "credit_packets", "piggybacked_credits", "requests",
                 "responses", "steals", "refusals", "mailbox_high_water", "stalls", "stalled_time", "credits", "peer_credits",
                 "peer_queued_bytes", "peer_stalled_time"):
        assert re.search(rf"^mca:btl:velo:pvar:btl_velo_{name}:help:.{{10,}}", text, re.MULTILINE), name


# --- velo-pvars


def table_of(text):
    """{variable: total} of the table at the end."""
    return {match[1]: int(match[2]) for match in re.finditer(r"^ +(\w+) +(\d+) +\d+ +\d+ +\d+ +\d+$", text, re.MULTILINE)}


@flows(16)
def test_velo_pvars_shows_a_table_of_an_unchanged_program(mpi, flow):
    result = mpi.run("traffic", "neighbours", 100, np=4, params=flow.params, prefix=[tool("velo-pvars")])
    assert "velo-pvars: 4 ranks" in result.stderr
    table = table_of(result.stderr)
    assert table["messages_sent"] >= 400
    in_the_outbox = table.get("messages_by_reference", 0) + table.get("batched_messages", 0)
    assert table["data_packets"] + in_the_outbox >= table["messages_sent"]
    assert (table.get("credits", 0) > 0) == (flow.policy != "none")
    assert all(table.values()) and re.search(r"^velo-pvars: \d+ others are 0 everywhere", result.stderr, re.MULTILINE)
    rows = [line for line in result.stderr.splitlines() if re.match(r"  \w+(\.\.\.)? .* ", line)]
    assert len(rows) > len(table) and len({len(row) for row in rows}) == 1, rows


@flows(16, policies=("dynamic",))
def test_velo_pvars_shows_changes_peers_and_what_is_0_and_writes_to_a_file(mpi, flow, tmp_path):
    file = tmp_path / "pvars.txt"
    result = mpi.run("pvars", 2000, MANY, np=3, params=flow.params,
                     prefix=[tool("velo-pvars"), "--every", "0.1", "--peers", "--all", "-o", str(file)])
    text = file.read_text()
    assert "velo-pvars" not in result.stderr
    # Rank 0 was seen waiting for rank 1.
    assert re.search(r"^velo-pvars: rank 0 .* queued_bytes=[1-9]\d* .*peer_queued_bytes=1:[1-9]", text, re.MULTILINE), text
    assert re.search(r"^  rank 0 peer_stalls \(peer:value\): 1:[1-9]", text, re.MULTILINE), text
    assert len(re.findall(r"^velo-pvars: rank 2 ", text, re.MULTILINE)) >= 3
    assert table_of(text)["limic_packets"] == 0 and "are 0 everywhere" not in text


def test_velo_pvars_says_that_velo_is_not_used(mpi):
    options = ["--mca", "btl", "vader,self"]
    result = mpi.run("traffic", "rounds", 3, np=2, transport="", options=options, prefix=[tool("velo-pvars")])
    assert "does not use Velo" in result.stderr


def test_velo_pvars_passes_on_the_exit_code_and_names_what_is_missing(tmp_path):
    assert run_tool("velo-pvars", "sh", "-c", "exit 7", expect=7).stderr == ""
    assert "no-such-program" in run_tool("velo-pvars", "no-such-program", expect=127).stderr
    assert "nowhere/x" in run_tool("velo-pvars", "-o", tmp_path / "nowhere/x", "true", expect=2).stderr
    run_tool("velo-pvars", "--every", "0", "true", expect=2)


# --- the warning


@flows(16)
def test_a_receiver_that_does_not_receive_is_named(mpi, flow):
    """When it is due, and how often: stalls_test.cc."""
    result = mpi.run("pvars", 4000, MANY, np=3, params={**flow.params, "btl_velo_stall_warning": 1})
    warnings = re.findall(r"no progress towards rank (\d+) on (\S+) \(process id \d+\) for (\d+) s: (\d+) bytes",
                          result.stderr)
    assert {(rank, host) for rank, host, _, _ in warnings} == {("1", os.uname().nodename)}, str(result)
    assert int(warnings[0][3]) > 10_000, str(result)
    assert "btl_velo_stall_warning" in result.stderr
    assert re.search(r"all messages for rank 1 on \S+ .*were sent after", result.stderr)


# --- the trace


@flows(16)
def test_the_trace_of_a_run_is_complete_and_its_credits_add_up(mpi, flow, tmp_path):

    params = {**flow.params, "btl_velo_trace": tmp_path, "btl_velo_by_reference": "never"}
    mpi.run("exchange", 6, 60_000, np=4, params=params)
    traces = reader.read_job([tmp_path])
    assert [trace.rank for trace in traces] == list(range(4))
    for trace in traces:
        assert trace.complete and not trace.cut_off_bytes
        assert trace.header["policy"] == flow.policy and trace.header["slots_per_peer"] == 16
        assert sorted(rank for _, rank in trace.peers().values()) == [rank for rank in range(4) if rank != trace.rank]
        if flow.policy != "none":
            assert_credits_add_up(reader, trace)


def assert_credits_add_up(reader, trace):
    """Each record's `credits` follows from what came before it."""
    kind, credits, checked = reader.Kind, {}, 0
    change = {kind.SEND: lambda n: -n, kind.REQUEST_SENT: lambda n: -1, kind.RESPONSE_SENT: lambda n: -n - 1,
              kind.CREDIT_RECEIVED: lambda n: n, kind.PIGGYBACK_RECEIVED: lambda n: n}
    for _, what, _, peer, count, left, _, _ in trace.records.tolist():
        if peer == reader.NONE or left == reader.NONE:
            continue
        if what == kind.PEER:
            credits[peer] = left
        elif what in change:
            credits[peer] += change[what](count)
            checked += 1
        elif what == kind.CREDIT_SENT:
            # One that was delayed leaves before a RESPONSE to the same peer, which has taken its credits by then.
            continue
        assert credits[peer] == left, (trace.path, what, peer)
    assert checked > 100


@flows(16, policies=("dynamic",))
def test_the_trace_of_a_killed_job_is_readable_up_to_the_last_second(start, mpi, flow, tmp_path):

    run = start("traffic", "endless", np=2, params={**flow.params, "btl_velo_trace": tmp_path})
    run.until_printed(r"traffic pid=\d+")
    files = lambda: list(tmp_path.glob("*.vtrace"))  # noqa: E731
    run.until(lambda: len(files()) == 2 and all(file.stat().st_size > 100_000 for file in files()), "traces of both ranks")
    run.stop()
    for trace in reader.read_job([tmp_path]):
        assert not trace.complete and len(trace.records) > 3000
    text = run_tool("velo-trace", "info", tmp_path)
    assert "no end" in text.stdout and "did not finalize" in text.stderr


@flows(16, policies=("dynamic",))
def test_an_idle_process_writes_what_it_has_within_seconds(start, flow, tmp_path):
    run = start("pvars", 20_000, MANY, np=2, params={**flow.params, "btl_velo_trace": tmp_path})
    run.until(lambda: any(file.stat().st_size > 256 for file in tmp_path.glob("*.0.vtrace")), "records of rank 0")
    run.stop()


@flows(16, policies=("dynamic",))
def test_a_program_that_exits_without_finalize_leaves_a_readable_trace(mpi, flow, tmp_path):
    mpi.run_any("pvars", 10, 7, np=1, params={**flow.params, "btl_velo_trace": tmp_path})  # one rank: MPI_Abort
    assert "velo." in run_tool("velo-trace", "info", tmp_path).stdout


@flows(16, policies=("dynamic",))
def test_the_limit_bounds_the_file_and_is_reported(mpi, flow, tmp_path):
    params = {**flow.params, "btl_velo_trace": tmp_path, "btl_velo_trace_limit": 1, "btl_velo_by_reference": "never"}
    result = mpi.run("exchange", 200, 60_000, np=4, params=params)
    sizes = [file.stat().st_size for file in tmp_path.glob("*.vtrace")]
    assert max(sizes) <= 1 << 20 and len(sizes) == 4
    assert max(sizes) > 900_000, "the test does not reach the limit"
    assert "btl_velo_trace_limit" in result.stderr
    assert "btl_velo_trace_limit" in run_tool("velo-trace", "info", tmp_path).stderr


@flows(in_packets=(30,), policies=("dynamic",))
def test_phases_are_converted_and_drawn(mpi, flow, tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    result = mpi.run_parts([(8, [tool("velo-mpi-bench"), "phases", "40", "2048"])], params={**flow.params, "btl_velo_trace": traces}, time_limit=120)
    assert result.returncode == 0, str(result)
    assert [int(ranks) for ranks in re.findall(r"^phase \d ranks (\d+) ", result.stdout, re.MULTILINE)] == [8, 2, 4, 8, 4, 2, 8]
    (tmp_path / "phases.txt").write_text(result.stdout)
    run_tool("velo-trace", "json", traces, "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == set(range(8))
    assert {"M", "C", "i"} <= {event["ph"] for event in events}
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")
    run_tool("velo-trace", "csv", traces, "-o", tmp_path / "trace.csv")
    assert (tmp_path / "trace.csv").read_text().startswith("time_ns,job,rank,kind,peer,")
    for what in ("credits", "held", "quota"):
        run_tool("velo-trace", "plot", traces, "--phases", tmp_path / "phases.txt", "--of", what, "-o", tmp_path / what)
        assert (tmp_path / f"{what}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{what}.svg").read_text()
    assert_quota_follows_the_phases(reader, traces, result.stdout)


def assert_quota_follows_the_phases(reader, directory, printed):
    """With two of eight ranks active for a while, rank 1 lends rank 0 more than it does when all are."""
    import numpy
    from velo.trace.series import quotas_of

    spans = [(int(begin), int(end)) for begin, end in re.findall(r"begin_ns (\d+) end_ns (\d+)", printed)]
    traces = reader.read_job([directory])
    times, values = quotas_of(traces, traces[0])[1]
    at_end = [int(values[numpy.searchsorted(times, end, side="right") - 1]) for _, end in spans]
    assert at_end[1] > 28 and at_end[1] > at_end[3], at_end
    assert at_end[5] > at_end[6], at_end


def test_the_directory_of_a_run_has_its_traces(mpi, tmp_path):
    mpi.run("traffic", "rounds", 3, np=2, params={"btl_velo_trace": "here"}, options=["--wdir", str(tmp_path)])
    assert len(list(tmp_path.iterdir())) == 2
