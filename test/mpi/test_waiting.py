"""Waits that nothing but progress ends: fragments that were refused, ranks that compute, ranks that have left."""

import os

import pytest

from flows import LAYER, TRANSPORT, every_flow, flows, velo_only


@pytest.mark.parametrize("size", [10, 50_000])
@every_flow(in_packets=(4,))
def test_refused_fragments_are_sent_in_the_end_and_then_nothing_is_owed(mpi, flow, size):
    """ob1 keeps a control fragment for which it got no descriptor until something of the same transport completes."""
    facts = mpi.run("refusals", 50, size, np=4, params=flow.params, time_limit=120).facts()
    assert facts["messages"] == 101 * 16
    if TRANSPORT == "velo" and LAYER == "btl":
        assert facts["refused"] > 0


@pytest.mark.parametrize("size", [3000, 60_000])
@flows(4)
def test_ranks_that_finalize_before_their_messages_are_received(mpi, flow, size):
    assert mpi.run("leavers", "sends", 60, size, np=4, params=flow.params).facts() == {"received": 180}


@flows(4, 8)
def test_ranks_that_talk_on_after_one_has_finalized(mpi, flow):
    assert mpi.run("leavers", "stays", 60, np=4, params=flow.params).facts() == {"rounds": 60}


SHARES = "there are more processes than processors"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
@pytest.mark.parametrize("prefix, options, shares", [(("taskset", "-c", str(min(os.sched_getaffinity(0)))), (), True),
                                                     ((), ("--bind-to", "core"), False)], ids=["confined", "bound"])
@velo_only
def test_ranks_share_a_processor_where_they_may_use_no_other(mpi, prefix, options, shares):
    result = mpi.run("exchange", 1, 100, np=2, params={"btl_velo_verbose": 5}, prefix=list(prefix), options=options)
    assert (SHARES in result.stderr) == shares, str(result)
