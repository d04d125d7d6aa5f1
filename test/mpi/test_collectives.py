"""Collective operations over the transport."""

import pytest

from flows import every_flow, flows


@every_flow(8, 64, in_packets=(4,), always=True)
def test_four_ranks_with_random_sizes(mpi, flow):
    assert mpi.run("collectives", 8, 5000, np=4, params=flow.params).facts() == {"rounds": 8}


@every_flow(8, in_packets=(4,))
def test_nine_ranks_with_random_sizes(mpi, flow):
    assert mpi.run("collectives", 3, 3000, np=9, params=flow.params).facts() == {"rounds": 3}


@pytest.mark.slow
@flows(8, 64, in_packets=(4,))
def test_thirty_two_ranks_with_random_sizes(mpi, flow):
    assert mpi.run("collectives", 2, 1000, np=32, params=flow.params, time_limit=180).facts() == {"rounds": 2}
