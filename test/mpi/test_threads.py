"""MPI_THREAD_MULTIPLE."""

import pytest

from flows import every_flow, flows

# Of Open MPI 4.1's windows only these work in several threads.
ONE_SIDED = {"osc": "rdma"}


@pytest.mark.parametrize("size", [8, 1500, 20_000])
@flows(8, 64, in_packets=(4,))
def test_four_threads_of_two_ranks_talk_to_each_other(mpi, flow, size):
    facts = mpi.run("threads", 4, 60, size, params=flow.params, time_limit=120).facts()
    assert facts == {"received": 240}


@every_flow(8)
def test_three_threads_of_four_ranks_talk_to_each_other(mpi, flow):
    facts = mpi.run("threads", 3, 30, 500, np=4, params=flow.params, time_limit=120).facts()
    assert facts == {"received": 270}


@pytest.mark.parametrize("seed", [1, 2])
@every_flow(64, in_packets=(4,))
def test_four_threads_of_four_ranks_do_different_things_at_once(mpi, flow, seed):
    facts = mpi.run("thread_mix", 4, 60, seed, np=4, params={**flow.params, **ONE_SIDED}, time_limit=120).facts()
    assert facts == {"steps": 240}
