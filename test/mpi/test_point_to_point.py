"""Sends and receives of all kinds between pairs of ranks."""

import pytest

from flows import TRANSPORT, every_flow, flows


@every_flow(8, 64, in_packets=(4,), always=True)
def test_two_ranks_exchange_all_sizes_at_once(mpi, flow):
    assert mpi.run("exchange", 20, 300_000, params=flow.params).facts() == {"rounds": 20, "received": 320}


@every_flow(8, in_packets=(4,))
def test_six_ranks_exchange_all_sizes_at_once(mpi, flow):
    assert mpi.run("exchange", 4, 300_000, np=6, params=flow.params).facts() == {"rounds": 4, "received": 320}


@every_flow(64, in_packets=(4,))
def test_small_exchanges_both_ways_use_a_tiny_mailbox_many_times(mpi, flow):
    assert mpi.run("exchange", 2000, 500, params=flow.params).facts() == {"rounds": 2000, "received": 18_000}


@pytest.mark.parametrize("size", [8, 2000, 100_000])
@pytest.mark.parametrize("mode", ["ssend", "issend", "bsend", "rsend", "persistent", "cancel"])
@flows(8)
def test_send_mode(mpi, flow, mode, size):
    assert mpi.run("modes", mode, size, params=flow.params).facts() == {"rounds": 20}


@pytest.mark.parametrize("how, messages, size", [("send", 40, 8), ("gaps", 40, 8), ("gaps", 40, 900)])
@flows(8, policies=("static", "dynamic"))
def test_what_was_sent_leaves_without_another_call(mpi, flow, how, messages, size):
    assert mpi.run("leaves", how, messages, size, params=flow.params).facts() == {"received": messages}


@pytest.mark.parametrize("how, messages, size", [("send", 1, 8), ("send", 40, 8), ("send", 1, 100_000), ("gaps", 40, 8),
                                                 ("gaps", 40, 3000), ("bsend", 40, 8)])
def test_what_was_sent_leaves_for_another_node_without_another_call(mpi, cluster, how, messages, size):
    assert mpi.run("leaves", how, messages, size, prefix=cluster.prefix(2, 1)).facts() == {"received": messages}


@pytest.mark.parametrize("credit_slots", [1, 2, 4])
@pytest.mark.parametrize("piggyback", [0, 1])
@flows(8, policies=("static", "dynamic"))
def test_credit_slots_and_piggybacking_do_not_change_what_arrives(mpi, flow, credit_slots, piggyback):
    params = flow.params
    if TRANSPORT == "velo":
        params = {**params, "btl_velo_credit_slots": credit_slots, "btl_velo_piggyback": piggyback}
    assert mpi.run("exchange", 10, 300_000, np=3, params=params).facts() == {"rounds": 10, "received": 320}


@flows(8)
def test_sixty_four_ranks_exchange_with_their_neighbours(mpi, flow):
    facts = mpi.run("traffic", "neighbours", 12, np=64, params=flow.params, time_limit=180).facts()
    assert facts["rounds"] == 12
