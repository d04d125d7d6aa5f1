"""What the verdicts and the setups are computed with."""

import struct

import pytest

from velo import policies
from velo.lab import judging, trace
from velo.lab.experiment import NOT_SHOWN, OPEN, SHOWN, Context
from velo.lab.experiments import benchmark_suite, localised, overhead_parts, reallocation

CONTEXT = Context(plugin=None, ranks=16, cores=16)


def test_a_curve_settles_where_it_stays_below_the_limit():
    assert judging.settles_at({8: 50, 16: 4, 32: 9, 57: 3, 64: 2}, 5) == 57
    assert judging.settles_at({8: 1, 16: 2}, 5) == 8
    assert judging.settles_at({8: 1, 16: 9}, 5) is None


def test_the_steepest_fall_counts_slots():
    assert judging.steepest({8: 400, 16: 200, 38: 180, 40: 10}) == (38, 40)
    assert judging.steepest({8: 400}) is None


@pytest.mark.parametrize("slots", [8, 16, 57, 64])
def test_buffers_and_their_credit_messages_fit_the_slots(slots):
    def needed(buffers):
        return buffers + buffers // min(5, buffers)

    buffers = policies.buffers_in(slots)
    assert needed(buffers) <= slots < needed(buffers + 1)


@pytest.mark.parametrize("slots", [8, 16, 32, 57])
def test_credits_return_as_often_from_a_large_mailbox(slots):
    credit_slots = overhead_parts.equally_frequent(slots, 512)
    small = (slots - 2) // 3 + 1
    assert abs((512 - credit_slots) // (credit_slots + 1) + 1 - small) <= 1
    assert 2 * credit_slots <= 512


@pytest.mark.parametrize("dynamic, static, noise, status", [
    ({8: 9, 16: 2.9, 32: 1, 64: 0}, {8: 90, 16: 50, 32: 9, 64: 3}, "", SHOWN),
    ({8: 93, 16: 12, 32: -4, 64: -16}, {8: 773, 16: 502, 32: 238, 64: 94}, "", NOT_SHOWN),  # 12 % is no 3 %
    ({8: 9, 16: 2, 32: 1, 64: 0}, {8: 90, 16: 50, 32: 9, 64: 94}, "", NOT_SHOWN),  # static never settles
    ({8: 2, 16: 2, 32: 1, 64: 0}, {8: 90, 16: 50, 32: 9, 64: 3}, "", NOT_SHOWN),  # 8 are enough already
    ({8: 9, 16: 2, 32: 1, 64: 0}, {8: 90, 16: 50, 32: 2, 64: 3}, "", NOT_SHOWN),
    ({16: 2, 64: 0}, {16: 50, 64: 3}, "", OPEN),
    ({8: 9, 16: 2.9, 32: 1, 64: 0}, {8: 90, 16: 50, 32: 9, 64: 3}, "noisy", OPEN),
])
def test_sixteen_slots_instead_of_64_are_those_of_three_per_cent(dynamic, static, noise, status):
    verdict = benchmark_suite._judge_needs(static, dynamic, noise, CONTEXT)
    assert verdict.status == status
    assert verdict.kind == "predicted"


@pytest.mark.parametrize("curve, is_shown", [
    ({8: 90, 32: 40, 54: 9, 57: 2}, True),
    ({8: 90, 37: 3, 54: 2, 57: 2}, False),  # acceptable from 37 on
    ({8: 90, 32: 40, 57: 2}, None),  # where it falls between 32 and 57 is not measured
    ({8: 90, 32: 40, 54: 9, 57: 8}, None),  # never acceptable: no limit was seen
])
def test_static_mailboxes_are_unacceptable_below_55_slots_and_not_below_37(curve, is_shown):
    limits = {active: (judging.settles_at(curve, 5), curve) for active in (16, 8)}
    assert localised._is_unacceptable_below(limits) is is_shown


def test_a_part_of_what_all_need_is_unknown_where_all_never_have_enough():
    enough, never = {8: 9, 57: 2}, {8: 90, 57: 8}
    assert localised._is_proportional({16: (None, never), 8: (57, enough)}, 16) is None


def test_phases_and_groups_follow_the_thesis():
    assert reallocation.phases(1024) == [1024, 256, 512, 1024, 512, 256, 1024]
    assert [(group[0], group[-1]) for group in reallocation.groups(1024).values()] == [(1, 255), (256, 511), (512, 1023)]


def trace_file(path, records, version=1):
    data = struct.pack("<8sIIIIQ", b"VELOTRAC", version, 256, 32, 0x01020304, 0).ljust(256, b"\0")
    path.write_bytes(data + b"".join(struct.pack("<QHHIIIII", *record) for record in records) + b"cut off")
    return path


def test_trace_is_read_at_the_marks(tmp_path):
    none = 0xFFFFFFFF
    path = trace_file(tmp_path / "velo.7.0.vtrace", [
        (10, 1, 0, 0, 5, 30, 0, 0), (11, 1, 0, 1, 6, 20, 0, 0), (20, 2, 0, 0, 4, 26, 0, 0), (25, 14, 0, none, 3, none, 0, 0),
        (30, 4, 0, 1, 9, 29, 0, 0)])
    assert trace.file_of_rank(tmp_path, 0) == path
    events = trace.credits(path)
    assert events == [(10, 5, 30), (11, 6, 20), (20, 5, 26), (30, 6, 29)]
    points = trace.at_marks(events, [(0, 5), (1, 25), (2, 30)], {"both": range(5, 7)})
    assert points == [(0, {"both": None}), (1, {"both": (26, 20, 26)}), (2, {"both": (29, 26, 29)})]


def test_a_trace_of_another_version_is_refused(tmp_path):
    with pytest.raises(trace.TraceError, match="version 2 of the trace format"):
        trace.credits(trace_file(tmp_path / "velo.7.0.vtrace", [], version=2))
    with pytest.raises(trace.TraceError, match="no trace of rank 3"):
        trace.file_of_rank(tmp_path, 3)
