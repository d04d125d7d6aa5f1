"""Messages that nobody waits for yet."""

import pytest

from flows import every_flow, flows


@pytest.mark.parametrize("way", ["one_way", "both_ways"])
@pytest.mark.parametrize("size", [8, 2000, 50_000])
@flows(8, in_packets=(4,))
def test_a_matched_message_passes_two_hundred_unmatched_ones(mpi, flow, size, way):
    assert mpi.run("unexpected", 200, size, way, params=flow.params).facts()["received"] == 200


@pytest.mark.parametrize("count", [64, 100, 1024, 2048])
@flows(8)
def test_unexpected_messages_of_one_source_are_all_kept(mpi, flow, count):
    assert mpi.run("unexpected", count, 32, "one_way", params=flow.params).facts()["received"] == count


@every_flow(8)
def test_twenty_thousand_unexpected_messages_through_a_tiny_mailbox(mpi, flow):
    assert mpi.run("unexpected", 20_000, 8, "one_way", params=flow.params).facts()["received"] == 20_000


@flows(64)
def test_a_hundred_thousand_unexpected_messages_of_one_source_are_all_kept(mpi, flow):
    result = mpi.run("unexpected", 100_000, 8, "one_way", params=flow.params, time_limit=120)
    assert result.facts()["received"] == 100_000


@pytest.mark.slow
@flows(8)
def test_a_hundred_thousand_unexpected_messages_through_a_tiny_mailbox(mpi, flow):
    result = mpi.run("unexpected", 100_000, 8, "one_way", params=flow.params, time_limit=300)
    assert result.facts()["received"] == 100_000
