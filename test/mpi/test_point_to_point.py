"""What was sent leaves though its sender calls MPI no more."""

import pytest

from flows import flows


@pytest.mark.parametrize("how, messages, size", [("send", 40, 8), ("gaps", 40, 8), ("gaps", 40, 900)])
@flows(8, policies=("static", "dynamic"))
def test_what_was_sent_leaves_without_another_call(mpi, flow, how, messages, size):
    assert mpi.run("leaves", how, messages, size, params=flow.params).facts() == {"received": messages}


@pytest.mark.parametrize("how, messages, size", [("send", 1, 8), ("send", 40, 8), ("send", 1, 100_000), ("gaps", 40, 8),
                                                 ("gaps", 40, 3000), ("bsend", 40, 8)])
def test_what_was_sent_leaves_for_another_node_without_another_call(mpi, cluster, how, messages, size):
    assert mpi.run("leaves", how, messages, size, prefix=cluster.prefix(2, 1)).facts() == {"received": messages}
