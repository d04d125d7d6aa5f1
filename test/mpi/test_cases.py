"""What any transport must pass: programs that check whatever arrives. Those with as many ranks run in one job, each as a test."""

import pytest

from flows import TRANSPORT, every_flow, flows, of_the_btl
from series import cases

RENDEZVOUS = 100_000
# All that a packet of 64 bytes, and two of them, may have left of a message with each header.
AROUND_A_PACKET = (0, 1, *range(13, 61), *range(110, 116))
KINDS = 9  # of datatypes: contiguous, vector, struct; at the sender times at the receiver

TWO = {
    ("exchange", 20, 300_000): {"rounds": 20, "received": 320},
    # A tiny mailbox is used many times.
    ("exchange", 2000, 500): {"rounds": 2000, "received": 18_000},
    ("datatypes", *AROUND_A_PACKET): {"exchanges": KINDS * len(AROUND_A_PACKET)},
    **{("modes", mode, size): {"rounds": 20} for mode in ("ssend", "issend", "bsend", "rsend", "persistent", "cancel")
       for size in (8, 2000, RENDEZVOUS)},
    # One that is waited for passes those that nobody waits for yet, and none of these is lost.
    **{("unexpected", 200, size, way): {"received": 200} for size in (8, 2000, 50_000) for way in ("one_way", "both_ways")},
    **{("unexpected", count, 32, "one_way"): {"received": count} for count in (64, 100, 1024, 2048)},
    ("unexpected", 20_000, 8, "one_way"): {"received": 20_000},
    # The receiver sleeps first.
    **{("incast", 300, size, 100, "blocking"): {"received": 300, "senders": 1} for size in (0, 40, 3000, RENDEZVOUS)},
    **{("large", count): {"received": count} for count in ((8 << 20) - 1, 8 << 20, (8 << 20) + 1)},
}
FOUR = {
    ("exchange", 4, 300_000): {"rounds": 4, "received": 192},
    ("collectives", 8, 5000): {"rounds": 8},
    ("communicators", 15): {"rounds": 15},
    # Which message a receive gets.
    **{("matching", way): {"received": 180} for way in ("wildcard", "tags", "probe", "iprobe", "mprobe", "improbe")},
}
EIGHT = {
    ("collectives", 3, 3000): {"rounds": 3},
    ("incast", 200, 1000, 100, "blocking"): {"received": 1400, "senders": 7},
    ("incast", 60, 3000, 100, "nonblocking"): {"received": 420, "senders": 7},
    **{("incast", 50, size, 100, "nonblocking"): {"received": 350, "senders": 7} for size in (40, RENDEZVOUS)},
}
SIXTY_FOUR = {
    ("traffic", "neighbours", 12): {"rounds": 12},
    **{("incast", 5, size, 100, "nonblocking"): {"received": 315, "senders": 63} for size in (40, RENDEZVOUS)},
}


@cases(TWO)
@every_flow(8, 64, in_packets=(4,))
def test_two_ranks(facts, flow, case):
    assert facts(np=2, params=flow.params) == TWO[case]


@cases(FOUR)
@every_flow(8, 64, in_packets=(4,))
def test_four_ranks(facts, flow, case):
    assert facts(np=4, params=flow.params) == FOUR[case]


@cases(EIGHT)
@every_flow(8, in_packets=(4,))
def test_eight_ranks(facts, flow, case):
    assert facts(np=8, params=flow.params) == EIGHT[case]


@cases(SIXTY_FOUR)
@flows(8)
def test_sixty_four_ranks(facts, flow, case):
    assert facts(np=64, params=flow.params, seconds=180).items() >= SIXTY_FOUR[case].items()


@pytest.mark.slow
@cases({("incast", 5, size, 500, "nonblocking"): {"received": 955, "senders": 191} for size in (40, 3000, RENDEZVOUS)})
@flows(4, 64)
def test_a_hundred_and_ninety_two_ranks(facts, flow, case):
    assert facts(np=192, params=flow.params, seconds=300) == {"received": 955, "senders": 191}


@pytest.mark.slow
@flows(8)
def test_a_hundred_thousand_unexpected_messages_through_a_tiny_mailbox(mpi, flow):
    assert mpi.run("unexpected", 100_000, 8, "one_way", params=flow.params, time_limit=300).facts() == {"received": 100_000}


@pytest.mark.parametrize("credit_slots, piggyback", [(1, 0), *(pytest.param(*others, marks=pytest.mark.slow) for others in ((2, 0), (4, 1)))])
@flows(8, policies=("static", "dynamic"))
def test_credit_slots_and_piggybacking_do_not_change_what_arrives(mpi, flow, credit_slots, piggyback):
    params = flow.params
    if TRANSPORT == "velo":
        params = {**params, "btl_velo_credit_slots": credit_slots, "btl_velo_piggyback": piggyback}
    assert mpi.run("exchange", 10, 300_000, np=3, params=params).facts() == {"rounds": 10, "received": 320}


# --- several threads

THREADS = {
    **{("threads", 4, 60, size): {"received": 720} for size in (8, 1500, 20_000)},
    **{("thread_mix", 4, 60, seed): {"steps": 240} for seed in (1, 2)},
}


@cases(THREADS)
@every_flow(8, 64, in_packets=(4,))
def test_threads(facts, flow, case):
    # Of Open MPI 4.1's windows only these work in several threads.
    assert facts(np=4, level="multiple", params={**flow.params, "osc": "rdma"}) == THREADS[case]


# --- windows: put, get and the atomic operations

# Without it, windows that MPI allocates on one node bypass the transport.
OVER_BTL = {"osc": "rdma"}
TOPICS = ("fence", "lock", "pscw", "accumulate", "fetch_and_op", "narrow", "sizes")
WINDOWS = [*(("rma", topic, window) for topic in TOPICS for window in ("allocate", "create")), ("rma", "compare_and_swap", "create"),
           ("rma", "compare_and_swap_at_home", "create")]


@of_the_btl
@cases(WINDOWS)
@flows(8)
def test_windows(facts, flow, case):
    assert facts(np=4, params={**flow.params, **OVER_BTL}) == {"passed": 1}


@of_the_btl
@cases([("rma", topic, "allocate") for topic in TOPICS] + [("rma", "compare_and_swap", "create")])
@every_flow(4)
def test_windows_without_single_copy(facts, flow, case):
    params = {**flow.params, **OVER_BTL}
    if TRANSPORT == "velo":
        params["btl_velo_single_copy_mechanism"] = "copy"
    assert facts(np=3, params=params) == {"passed": 1}


@of_the_btl
@cases([("rma", "compare_and_swap", "allocate")])
@flows(8, policies=("dynamic",))
def test_compare_and_swap_in_memory_that_mpi_allocated(facts, flow, case, is_4_1, request):
    if is_4_1:
        reason = "osc/rdma of Open MPI 4.1.4 sends the BTL an address of its own mapping"
        request.applymarker(pytest.mark.xfail(strict=False, reason=reason))
    assert facts(np=3, params={**flow.params, **OVER_BTL}) == {"passed": 1}
