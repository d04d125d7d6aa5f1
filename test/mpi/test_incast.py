"""Many senders, one receiver that starts late."""

import pytest

from flows import every_flow, flows

RENDEZVOUS = 100_000


@every_flow(4, 8, 64)
def test_small_messages_of_four_senders_all_arrive_in_order(mpi, flow):
    facts = mpi.run("incast", 500, 40, 100, "nonblocking", np=5, params=flow.params).facts()
    assert facts == {"received": 2000, "senders": 4}


@every_flow(4, 8, 64)
def test_rendezvous_messages_of_four_senders_all_arrive_in_order(mpi, flow):
    facts = mpi.run("incast", 50, RENDEZVOUS, 100, "nonblocking", np=5, params=flow.params).facts()
    assert facts == {"received": 200, "senders": 4}


@pytest.mark.parametrize("size", [0, 40, 3000, RENDEZVOUS])
@flows(8)
def test_two_ranks_with_a_sleeping_receiver(mpi, flow, size):
    facts = mpi.run("incast", 300, size, 100, "blocking", np=2, params=flow.params).facts()
    assert facts["received"] == 300


@pytest.mark.parametrize("size", [40, 3000, RENDEZVOUS])
@flows(8, in_packets=(4,))
def test_sixteen_ranks_with_a_sleeping_receiver(mpi, flow, size):
    facts = mpi.run("incast", 30, size, 100, "nonblocking", np=16, params=flow.params, time_limit=120).facts()
    assert facts == {"received": 450, "senders": 15}


@every_flow(8)
def test_blocking_senders_wait_and_are_served(mpi, flow):
    facts = mpi.run("incast", 200, 1000, 100, "blocking", np=8, params=flow.params).facts()
    assert facts == {"received": 1400, "senders": 7}


@every_flow(in_packets=(4, 8))
def test_messages_in_packets_wait_for_credits_and_are_served(mpi, flow):
    facts = mpi.run("incast", 60, 3000, 100, "nonblocking", np=8, params=flow.params).facts()
    assert facts == {"received": 420, "senders": 7}


@pytest.mark.parametrize("size", [40, RENDEZVOUS])
@flows(8)
def test_sixty_four_ranks_with_a_sleeping_receiver(mpi, flow, size):
    facts = mpi.run("incast", 5, size, 100, "nonblocking", np=64, params=flow.params, time_limit=180).facts()
    assert facts == {"received": 315, "senders": 63}


@pytest.mark.slow
@pytest.mark.parametrize("size", [40, 3000, RENDEZVOUS])
@flows(4, 64)
def test_a_hundred_and_ninety_two_ranks_with_a_sleeping_receiver(mpi, flow, size):
    facts = mpi.run("incast", 5, size, 500, "nonblocking", np=192, params=flow.params, time_limit=300).facts()
    assert facts == {"received": 955, "senders": 191}
