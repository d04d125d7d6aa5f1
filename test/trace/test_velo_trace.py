"""velo-trace on files made here: what it reads, refuses and writes. No MPI is run."""

import csv
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import xml.dom.minidom

import numpy
import pytest

TOP = pathlib.Path(os.environ.get("VELO_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
COMMAND = TOP / "contrib" / "trace" / "velo-trace"
from velo.trace.boards import OPERATIONS
from velo.trace import chrome, errors, reader, series, table

NONE, JOB, BEGIN = 0xFFFFFFFF, 77, 5_000_000_000
KIND = reader.Kind
DESIGN = TOP / "mca_btl_velo" / "design" / "trace.md"


def header(rank=0, job=JOB, **changes):
    fields = dict(magic=b"VELOTRAC", version=1, header_bytes=256, record_bytes=32, byte_order=0x01020304,
                  name=job << 32 | rank, realtime=10 * BEGIN, monotonic=BEGIN, pid=4711 + rank, peers=3, spare=2, slots=30,
                  credit_slots=2, mailbox=94, piggyback=1, zero=0, policy=b"dynamic", host=b"node1")
    return struct.pack("<8sIIIIQQQIIIIIIII32s64s80x", *{**fields, **changes}.values())


def record(time_us, kind, peer=NONE, count=0, credits=NONE, held=NONE, extra=0):
    return struct.pack("<QHHIIIII", BEGIN + time_us * 1000, kind, 0, peer, count, credits, held, extra)


def peers(rank=0, job=JOB, credits=10):
    others = [other for other in range(4) if other != rank]
    return [record(0, KIND.PEER, index, other, credits, credits, job) for index, other in enumerate(others)]


END = record(1000, KIND.END)


def write(path, records, **of_header):
    path.write_bytes(header(**of_header) + b"".join(records))
    return path


def run(*arguments, expect=0):
    result = subprocess.run([sys.executable, COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert result.returncode == expect, f"{arguments}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture
def trace(tmp_path):
    return write(tmp_path / "a.vtrace", [
        *peers(),
        record(100, KIND.SEND, 0, 10, 0, 10, 3),
        record(101, KIND.STALL_BEGIN, 0, 640, 0, 10, 0),
        record(150, KIND.MAILBOX, count=5, extra=94, credits=8),
        record(200, KIND.STEAL, count=6, extra=1),
        record(200, KIND.INTENDED, 0, 34, extra=28),
        record(300, KIND.CREDIT_RECEIVED, 0, 7, 7, 10),
        record(301, KIND.STALL_END, 0, 0, 7, 10, 0),
        record(400, KIND.REQUEST_SENT, 1, 0, 9, 10),
        END])


def test_the_design_page_lists_every_kind(trace):
    text = DESIGN.read_text()
    for kind in KIND:
        assert f"`{kind.name.lower()}`" in text, kind
    assert reader.VERSION == 1 and "version 1" in text


def test_the_header_and_the_records_are_read(trace):
    found = reader.read_trace(trace)
    assert (found.job, found.rank, found.complete, found.cut_off_bytes) == (JOB, 0, True, 0)
    assert (found.header["policy"], found.header["host"], found.header["mailbox_slots"]) == ("dynamic", "node1", 94)
    assert found.peers() == {0: (JOB, 1), 1: (JOB, 2), 2: (JOB, 3)}
    assert found.records["count"][3] == 10


@pytest.mark.parametrize("content, words", [
    (b"", "is empty"),
    (b"#!/bin/sh\n" * 100, "is not a trace of Velo"),
    (header()[:100], "is cut off: 100 bytes"),
    (header(version=2), "version 2"),
    (header(byte_order=0x04030201), "another byte order"),
    (header(header_bytes=8), "is damaged"),
    (header(record_bytes=16), "is damaged"),
    (header(record_bytes=0xFFFFFFF0), "is damaged"),
    (header(header_bytes=512), "cut off within its header"),
    (header() + record(9, KIND.SEND, 0, 1, 1, 1) + record(3, KIND.END), "run backwards"),
], ids=["empty", "no-trace", "cut-header", "version", "byte-order", "header-size", "record-size", "huge-record", "long-header", "times"])
@pytest.mark.parametrize("command", ["info", "json", "csv", "plot"])
def test_bad_files_are_refused_with_their_name_and_the_reason(tmp_path, command, content, words):
    path = tmp_path / "bad.vtrace"
    path.write_bytes(content)
    text = run(command, path, expect=2).stderr
    assert words in text and "bad.vtrace" in text


def test_missing_files_and_empty_directories_are_named(tmp_path):
    assert "nowhere" in run("info", tmp_path / "nowhere", expect=2).stderr
    assert "no file in it ends with .vtrace" in run("info", tmp_path, expect=2).stderr


def test_a_file_that_is_cut_off_is_used_up_to_there(tmp_path, trace):
    trace.write_bytes(trace.read_bytes()[:-40])
    result = run("csv", trace)
    assert "24 bytes ignored" in result.stderr and "has no end" in result.stderr
    assert len(result.stdout.splitlines()) == 1 + 3 + 7


def test_longer_headers_and_records_and_unknown_kinds_of_a_later_version_are_skipped(tmp_path):
    path = tmp_path / "later.vtrace"
    later = [part + b"\xff" * 8 for part in [*peers(), record(5, 999, 0, 1, 2, 3), END]]
    path.write_bytes(header(header_bytes=300, record_bytes=40) + b"\xff" * 44 + b"".join(later))
    found = reader.read_trace(path)
    assert found.complete and found.records["kind"].tolist() == [1, 1, 1, 999, 21]
    run("json", path)


def test_the_csv_has_a_line_for_each_record_with_names(trace):
    lines = list(csv.DictReader(run("csv", trace).stdout.splitlines()))
    assert [line["kind"] for line in lines][3:5] == ["send", "stall_begin"]
    assert lines[3] == {"time_ns": "100000", "job": "77", "rank": "0", "kind": "send", "peer": "0", "peer_job": "77",
                        "peer_rank": "1", "count": "10", "credits": "0", "held": "10", "extra": "3"}
    assert lines[-1]["peer"] == lines[-1]["credits"] == ""


def chrome_events(*arguments):
    return json.loads(run("json", *arguments).stdout)["traceEvents"]


def test_the_chrome_trace_has_counters_slices_and_marks(trace):
    events = chrome_events(trace)
    credits = [(event["ts"], event["args"]["credits"]) for event in events if event["name"] == "credits to rank 1"]
    assert credits == [(0, 10), (100, 0), (300, 7)]
    slices = [event for event in events if event["ph"] == "X"]
    assert [(event["name"], event["ts"], event["dur"], event["args"]["peer"]) for event in slices] == [
        ("stall: no credit", 101, 200, "rank 1")]
    assert {event["name"] for event in events if event["ph"] == "i"} == {"steal", "REQ sent"}
    assert [event["args"] for event in events if event["name"] == "quota of rank 1"] == [{"slots": 34}]
    assert [event["args"] for event in events if event["name"] == "mailbox"] == [{"packets": 5}]


def test_every_rank_is_a_process_of_the_chrome_trace(tmp_path, trace):
    write(tmp_path / "b.vtrace", [*peers(1), END], rank=1)
    titles = [event["args"]["name"] for event in chrome_events(tmp_path) if event["name"] == "process_name"]
    assert titles == ["rank 0 (node1, process 4711, dynamic)", "rank 1 (node1, process 4712, dynamic)"]


def test_a_stall_without_end_lasts_to_the_end_of_the_trace(tmp_path):
    path = write(tmp_path / "c.vtrace", [*peers(), record(10, KIND.STALL_BEGIN, 2, 1, 0, 0, 1), END])
    (event,) = [event for event in chrome_events(path) if event["ph"] == "X"]
    assert (event["name"], event["dur"]) == ("stall: no free slot", 990)


def test_operations_on_boards_have_the_names_of_the_engine():
    enum = re.search(r"typedef enum velo_board_operation \{(.*?)\}", (TOP / "mca_btl_velo" / "types" / "engine.h").read_text(), re.S)[1]
    assert [name.upper() or "NONE" for name in OPERATIONS] == re.findall(r"VELO_BOARD_(\w+)", enum)


def test_operations_on_boards_are_slices_with_their_waits_and_requests_are_asynchronous(tmp_path):
    barrier, bcast, request = 3 << 16 | 1, 3 << 16 | 2, 3 << 16 | 1 << 8 | 2
    path = write(tmp_path / "d.vtrace", [
        record(10, KIND.BOARD_BEGIN, extra=barrier), record(12, KIND.BOARD_WAIT, count=5, extra=3 << 16),
        record(20, KIND.BOARD_GO_ON, extra=3 << 16), record(21, KIND.BOARD_END, extra=barrier),
        record(30, KIND.BOARD_BEGIN, count=8, extra=request), record(31, KIND.BOARD_BEGIN, count=16, extra=request),
        record(32, KIND.BOARD_END, count=8, extra=request),
        record(40, KIND.BOARD_BEGIN, count=64, extra=bcast), record(41, KIND.BOARD_WAIT, count=NONE, extra=3 << 16), END])
    events = chrome_events(path)
    slices = [(event["name"], event["ts"], event["dur"], event["args"]) for event in events if event["ph"] == "X"]
    assert slices == [("waits for rank 5", 12, 8, {}), ("Barrier", 10, 11, {"bytes": 0}), ("waits", 41, 959, {}), ("Bcast", 40, 960, {"bytes": 64})]
    requests = [(event["ph"], event["name"], event["id"], event["ts"]) for event in events if event["ph"] in "be"]
    assert requests == [("b", "Ibcast", "0.1", 30), ("b", "Ibcast", "0.2", 31), ("e", "Ibcast", "0.1", 32), ("e", "Ibcast", "0.2", 1000)]
    assert [event["args"]["name"] for event in events if event["name"] == "thread_name"] == ["flow control", "board of communicator 3"]
    assert len({event["tid"] for event in events if event["ph"] in "Xbe"}) == 1


def test_several_jobs_have_to_be_told_apart(tmp_path, trace):
    write(tmp_path / "b.vtrace", [*peers(1, job=78), END], rank=1, job=78)
    assert "77, 78: choose one with --job" in run("info", tmp_path, expect=2).stderr
    assert "job 78" in run("info", tmp_path, "--job", 78).stdout
    assert len(run("info", tmp_path, "--job", "all").stdout.split("records")) == 3
    assert "no trace is of job 5" in run("info", tmp_path, "--job", 5, expect=2).stderr


def test_two_files_of_one_process_are_refused(tmp_path, trace):
    write(tmp_path / "b.vtrace", [END])
    assert "is of the same process as" in run("info", tmp_path, expect=2).stderr


def test_hosts_are_brought_together_by_the_real_time(tmp_path, trace):
    write(tmp_path / "b.vtrace", [*peers(1), END], rank=1, host=b"node2", realtime=10 * BEGIN + 2_000_000)
    clock = reader.Clock(traces := reader.read_job([tmp_path]))
    assert [int(t.records["time_ns"][-1]) + clock.shift_ns(t) for t in traces] == [1_000_000, 3_000_000]


def test_series_are_means_over_time_and_over_the_peers_of_a_group(trace):
    found = reader.read_trace(trace)
    borders = numpy.array([[0, 100], [100, 300], [200, 400]]) * 1000 + BEGIN
    low, high = series.series_of(series.steps_of(found, "credits"), series.parse_groups("1,2-3"), borders)
    assert low.mean.tolist() == [10, 0, 3.5]
    assert (high.peers, high.mean.tolist(), high.least.tolist(), high.most.tolist()) == (2, [10] * 3, [10] * 3, [10] * 3)


def test_quotas_come_from_the_traces_of_the_peers(tmp_path, trace):
    write(tmp_path / "b.vtrace", [*peers(1), record(0, KIND.INTENDED, 0, 28), record(50, KIND.INTENDED, 0, 40, extra=28), END],
          rank=1)
    traces = reader.read_job([tmp_path])
    times, values = series.quotas_of(traces, traces[0])[1]
    assert values.tolist() == [28, 40] and (times - BEGIN).tolist() == [0, 50_000]


def test_the_default_groups_are_those_of_the_thesis():
    assert list(map(str, series.default_groups(1024))) == ["ranks 0-255", "ranks 256-511", "ranks 512-1023"]
    assert list(map(str, series.default_groups(2))) == ["rank 0", "rank 1"]


PHASES = "".join(f"phase {i} ranks {ranks} executions 10 begin_ns {{{i}}} end_ns {{{i + 1}}} slowest_us 7.250 defects 0\n"
                 for i, ranks in enumerate((4, 2)))


@pytest.mark.parametrize("with_phases", [False, True])
def test_the_plot_is_a_png_and_an_svg(tmp_path, trace, with_phases):
    arguments = []
    if with_phases:
        (tmp_path / "phases.txt").write_text("noise\n" + PHASES.format(BEGIN, BEGIN + 400_000, BEGIN + 1_000_000))
        arguments = ["--phases", tmp_path / "phases.txt"]
    run("plot", trace, "-o", tmp_path / "plot.v1", *arguments)
    assert (tmp_path / "plot.v1.png").read_bytes().startswith(b"\x89PNG")
    xml.dom.minidom.parse(str(tmp_path / "plot.v1.svg"))


@pytest.mark.parametrize("arguments, words", [
    (["--rank", "9"], "there are traces of rank 0"),
    (["--groups", "5-2"], "is neither a rank nor a range"),
    (["--groups", "x"], "is neither a rank nor a range"),
    (["--groups", "40-50"], "no rank of ranks 40-50 has values"),
    (["--of", "quota"], "has no such numbers"),
    (["-o", "/nonexistent/plot"], "/nonexistent/plot"),
])
def test_a_plot_that_cannot_be_drawn_says_why(trace, arguments, words):
    assert words in run("plot", trace, *arguments, expect=2).stderr


def test_phases_of_another_run_or_none_are_refused(tmp_path, trace):
    path = tmp_path / "phases.txt"
    path.write_text("nothing here\n")
    assert "velo-mpi-bench phases" in run("plot", trace, "--phases", path, expect=2).stderr
    path.write_text(PHASES.format(1, 2, 3))
    assert "not from the run of this trace" in run("plot", trace, "--phases", path, expect=2).stderr


def test_a_policy_that_counts_nothing_cannot_be_drawn(tmp_path):
    path = write(tmp_path / "n.vtrace", [*peers(credits=NONE), END], policy=b"none")
    assert "flow control none" in run("plot", path, expect=2).stderr
    run("json", path)


def test_without_a_command_the_help_is_pointed_to():
    assert "Usage: velo-trace" in run(expect=2).stderr
    assert "perfetto" in run("--help").stdout


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_trace_is_read_or_refused_and_nothing_else(tmp_path, trace, seed):
    """Bytes changed, cut off, repeated: whatever is in the file, the reader says so or makes something of it."""
    random = numpy.random.default_rng(seed)
    good, damaged = trace.read_bytes(), tmp_path / "damaged.vtrace"
    refused = 0
    for _ in range(150):
        data = bytearray(good)
        for _ in range(random.integers(1, 6)):
            # Half of the changes in the header, which is what decides.
            place = int(random.integers(256 if random.integers(2) else len(data)))
            data[place % len(data)] = int(random.choice([0, 1, 127, 128, 255, int(random.integers(256))]))
        if random.integers(4) == 0:
            data = data[:random.integers(len(data))] + data[random.integers(len(data)):]
        damaged.write_bytes(data)
        try:
            traces = reader.read_job([damaged])
            table.write_csv(traces, io.StringIO())
            chrome.write_chrome(traces, io.StringIO())
        except errors.TraceError as error:
            assert "damaged.vtrace" in str(error)
            refused += 1
    assert 0 < refused < 150
