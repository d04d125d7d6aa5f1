"""Wildcards, probes and tags: which message a receive gets."""

import pytest

from flows import every_flow


@pytest.mark.parametrize("way", ["wildcard", "tags", "probe", "iprobe", "mprobe", "improbe"])
@every_flow(8, in_packets=(4,))
def test_messages_are_matched_in_the_order_of_each_sender(mpi, flow, way):
    assert mpi.run("matching", way, np=4, params=flow.params).facts() == {"received": 180}
