"""The report at the end of a job, and the laws that its counters obey."""

import json
import os
import re

import pytest

from flows import every_flow, flows, velo_only
from series import words_of

pytestmark = velo_only
OUTBOX_BYTES = 256 << 10
COUNTERS = ["messages_sent", "messages_delayed", "data_packets", "credit_packets", "credits_in_packets",
            "messages_by_reference", "batches", "batched_messages", "outbox_high_water", "outbox_full", "piggybacked_credits", "requests", "responses", "steals",
            "stolen_slots", "mailbox_bytes", "mailbox_high_water", "largest_share", "limic_packets", "limic_high_water", "segment_bytes", "segment_used_bytes", "private_bytes", "peers_met"]


def report_of(mpi, *arguments, **keywords):
    params = {**keywords.pop("params"), "btl_velo_report": "json"}
    return report_in(mpi.run(*arguments, params=params, **keywords))


def report_in(result):
    lines = [line for line in result.output.splitlines() if "VELO-REPORT" in line]
    assert len(lines) == 1, str(result)
    return json.loads(lines[0].partition("VELO-REPORT ")[2])


def in_the_outbox(counts):
    return counts["messages_by_reference"] + counts["batched_messages"]


def assert_laws(report, ranks):
    """What holds for every policy."""
    assert report["version"] == 1
    assert report["ranks"] == ranks == len(report["per_rank"])
    assert [process["rank"] for process in report["per_rank"]] == list(range(ranks))
    assert report["mailbox_bytes"] == 64 * report["mailbox_slots"]
    for process in report["per_rank"]:
        assert all(isinstance(process[name], int) and process[name] >= 0 for name in COUNTERS)
        assert process["mailbox_bytes"] == report["mailbox_bytes"]
        assert process["mailbox_high_water"] <= report["mailbox_slots"]
        assert process["messages_delayed"] <= process["messages_sent"]
        # Those of a batch share a packet; each of the others has one at least.
        assert process["batches"] <= min(process["data_packets"], process["batched_messages"])
        assert in_the_outbox(process) <= process["messages_sent"] <= process["data_packets"] + in_the_outbox(process)
        assert process["outbox_high_water"] <= OUTBOX_BYTES
        assert process["credit_packets"] <= process["credits_in_packets"] or process["credit_packets"] == 0
    for name in set(COUNTERS) - {"mailbox_high_water", "limic_high_water", "largest_share"}:
        assert report["total"][name] == sum(process[name] for process in report["per_rank"])


def assert_laws_of_policy(report, flow):
    """And what each promises about its credits."""
    total = report["total"]
    returned = total["credits_in_packets"] + total["piggybacked_credits"]
    if flow.policy == "none":
        for name in ("credit_packets", "credits_in_packets", "piggybacked_credits", "requests", "responses", "steals", "stolen_slots"):
            assert total[name] == 0
    if flow.policy == "static":
        # Each slot once. What is not returned yet stays below the threshold of each pair.
        held = 4 * 3 * (flow.slots // 3 + 1)
        assert total["data_packets"] - held <= returned <= total["data_packets"]
        assert total["requests"] == total["responses"] == total["steals"] == total["stolen_slots"] == 0
    if flow.policy == "dynamic":
        data_class = total["data_packets"] + total["requests"] + total["responses"]
        # A receiver can hold free slots back, or have granted more than was retrieved: those that were free at the start,
        # and, again, those that a response gave back.
        slack = 4 * report["mailbox_slots"]
        assert data_class - slack <= returned <= data_class + slack + total["responses"] * 3 * flow.slots
        assert total["responses"] <= total["requests"]
        assert total["steals"] <= total["stolen_slots"]


@every_flow(8, in_packets=(4,), always=True)
def test_the_counters_of_every_policy_obey_its_laws(mpi, flow):
    words = [mpi.series_of(["exchange", "collectives"]), *words_of([("exchange", 6, 300_000), ("collectives", 4, 5000)], "single")]
    report = report_of(mpi, *words, np=4, params=flow.params)
    assert_laws(report, 4)
    assert_laws_of_policy(report, flow)
    assert (report["policy"], report["slots_per_peer"]) == (flow.policy, flow.slots)
    assert report["total"]["messages_sent"] >= 6 * 16 * 12  # each with at least one message of the transport


STAGED = {"btl_velo_routes": "staged 65536"}


@pytest.mark.parametrize("params, possible", [(STAGED, os.cpu_count() > 1), pytest.param({**STAGED, "btl_velo_outbox": 0}, False, marks=pytest.mark.slow),
                                              pytest.param({**STAGED, "btl_velo_single_copy_mechanism": "cma"}, False, marks=pytest.mark.slow)],
                         ids=["staged", "no outbox", "cma"])
@flows(8, policies=("dynamic",))
def test_a_rendezvous_finds_its_data_in_the_outbox_of_its_sender(mpi, flow, params, possible):
    """Not each: who does not see them in time fetches them."""
    found = report_of(mpi, "modes", "cancel", 12_000, np=2, params={**flow.params, **params})["total"]["staged_gets"]
    assert 0 < found <= 20 if possible else found == 0


@flows(8, policies=("dynamic",))
def test_an_outbox_takes_no_room_that_the_mailbox_of_another_process_needs(mpi, flow, private_shm):
    """Eight segments of some 280 KiB with an outbox do not fit, eight of 18 KiB do."""
    shm = private_shm("1500k")
    result = mpi.run("exchange", np=8, prefix=shm.enter, params={**flow.params, "btl_velo_verbose": 5})
    assert result.output.count("no outbox, messages of several packets go in packets") == 8, str(result)


@pytest.mark.parametrize("without", ["sender", "receiver"])
@flows(8, policies=("dynamic",))
def test_long_messages_of_a_process_without_an_outbox_go_by_rendezvous(mpi, flow, without):
    """Its segment with an outbox is larger than its files may be. It has few slots, too."""
    program = [mpi.program("modes"), "cancel", "6000"]  # the first rank sends
    limited = ["sh", "-c", 'ulimit -f 200 && exec "$@"', "-", *program]
    parts = [(1, limited if without == "sender" else program), (1, limited if without == "receiver" else program)]
    params = {**flow.params, "btl_velo_report": "json", "btl_velo_verbose": 5, "btl_velo_single_copy_mechanism": "cma"}
    result = mpi.run_parts(parts, params=params)
    assert result.returncode == 0 and result.output.count("no outbox, ") == 1, str(result)
    assert report_in(result)["total"]["rma_single_copy_bytes"] == (20 * 6000 if without == "sender" else 0)


@pytest.mark.parametrize("params", [{"btl_velo_report": "summary"}, pytest.param({"btl_velo_trace": "here"}, marks=pytest.mark.slow), {}], ids=str)
def test_whoever_asks_for_a_report_of_a_job_without_velo_is_told(mpi, params, tmp_path):
    result = mpi.run("traffic", "rounds", 3, np=2, transport="", params=params, options=["--wdir", str(tmp_path)])
    assert re.findall(r"btl:velo: (.*)", result.output) == (["not used: name velo in --mca btl to use it"] if params else []), str(result)


@every_flow(16)
def test_under_load_a_job_takes_the_shared_memory_that_the_report_tells_and_no_more(start, private_shm, flow):
    shm, taken = private_shm(), set()
    run = start("exchange", 30, 300_000, np=3, params={**flow.params, "btl_velo_report": "json"}, prefix=shm.enter)
    run.until(lambda: taken.add(shm.bytes_used()) or run.finished(), "the end of mpirun")
    result = run.wait()
    assert result.returncode == 0, str(result)
    report = report_in(result)
    page = os.sysconf("SC_PAGE_SIZE")
    assert max(taken) == sum(-(-process["segment_bytes"] // page) * page for process in report["per_rank"]) > 0
    assert report["total"]["data_packets"] + in_the_outbox(report["total"]) > 1000
    assert_laws(report, 3)


@pytest.fixture
def summary(mpi):
    """The job of forty ranks whose summary is looked at."""

    def run(flow):
        params = {**flow.params, "btl_velo_report": "summary", "btl_velo_verbose": 1}
        return mpi.once("traffic", "neighbours", 9, np=40, params=params, time_limit=180)

    return run


@flows(8)
def test_the_summary_fits_on_one_screen(summary, flow):
    text = summary(flow).stderr
    lines = [line for line in text.splitlines() if line.strip() and "in use: " not in line]
    assert 3 <= len(lines) <= 24
    assert max(map(len, lines)) <= 120
    assert re.search(rf"flow control {flow.policy}\b.*{flow.slots} slots per peer", text)
    (used, reserved), = re.findall(r"KiB of each process: shared (\d+) in use of (\d+) \(mailbox \d+, LiMIC ring \d+, outbox \d+, staging \d+\)", text)
    assert 0 < int(used) <= int(reserved)


@flows(8)
def test_at_verbosity_1_one_line_says_that_velo_is_in_use(summary, flow):
    said = re.findall(r"btl:velo: (.*)", summary(flow).output)
    assert said == [f"in use: btl velo, 40 processes, flow control {flow.policy}"]


@pytest.mark.parametrize("outbox", [2304, pytest.param(0, marks=pytest.mark.slow)])
@flows(8, policies=("static",))
def test_the_summary_tells_what_went_by_reference_and_what_could_not(mpi, flow, outbox):
    params = {**flow.params, "btl_velo_report": "summary", "btl_velo_outbox": outbox, "btl_velo_by_reference": "always"}
    text = mpi.run("exchange", 6, 300_000, params=params).stderr
    told = re.findall(r"(\d+) messages by reference, \d+ in \d+ batches; outbox: no chunk for (\d+), at most (\d+) of (\d+) bytes", text)
    if outbox == 0:
        assert not told
    else:
        ((referred, full, *lent),) = told
        assert int(referred) > 0 and int(full) > 0 and lent == ["2304", "2304"]
