"""Memory stays bounded while a receiver does not receive."""

import time

import pytest

from flows import SLOT_POLICIES, every_flow, flows, velo_only

pytestmark = velo_only
SPARE_PEERS, CREDIT_SLOTS = 16, 2
# The other parts of a segment: its header, what it shows of itself, the shares of large messages, and the directory.
OUTBOX = 256 << 10  # btl_velo_outbox
BESIDE_THE_MAILBOX = 14 << 10


def mailbox_slots(flow, peers):
    """As docs/parameters.md says: for each peer, and for processes of other jobs that may come."""
    return peers * flow.slots + SPARE_PEERS * 2 * CREDIT_SLOTS


@every_flow(8, 64, 1024)
def test_what_waits_for_a_sleeping_receiver_takes_no_more_shared_memory(start, flow, private_shm, tmp_path):
    shm, wake = private_shm(), tmp_path / "wake"
    run = start("flood", wake, 3000, 500, "nonblocking", np=5, params=flow.params, prefix=shm.enter)
    run.until_printed(r"asleep pid=\d+")
    before = shm.bytes_used()
    run.until_printed(r"(?s)(sent pid=.*){4}")
    # Of all five processes, with and without a name.
    assert shm.bytes_used() == before > 0
    if flow.policy in SLOT_POLICIES:
        most = 64 * mailbox_slots(flow, 4) + OUTBOX + BESIDE_THE_MAILBOX
        assert before <= 5 * most, f"{before // 5} bytes for each process, {most} expected"
    wake.touch()
    result = run.wait()
    assert result.returncode == 0, str(result)
    assert result.facts()["received"] == 12_000


QUEUE_LIMIT = 64 << 10
HEADER = 14


@flows(8, 64)
def test_64_kib_of_eager_messages_wait_for_a_peer_and_no_more(mpi, flow):
    facts = mpi.run("pvars", 300, 1000, np=2, params=flow.params).facts()
    # A message of 1000 bytes that begins to wait below the limit does so with all that is left of it.
    assert QUEUE_LIMIT - 2000 < facts["during_queued_of_1"] < QUEUE_LIMIT + 1000 + HEADER


def flood(start, flow, tmp_path, messages, size, way):
    wake = tmp_path / "wake"
    run = start("flood", wake, messages, size, way, np=3, params=flow.params, time_limit=120)
    run.until_printed(r"asleep pid=\d+")
    if way == "nonblocking":
        run.until_printed(r"(?s)(sent pid=.*){2}")
    else:
        time.sleep(1.5)  # the senders block soon; nothing tells when
        assert "sent" not in run.stdout, "nobody receives, and yet the sender was not stopped"
    wake.touch()
    result = run.wait()
    assert result.returncode == 0, str(result)
    assert result.facts()["received"] == 2 * messages
    return result.facts()["growth_kib"]


# Kept, the messages would take several times as much: ob1 alone needs more than 100 bytes for each of them.
MOST_KIB = 512


@pytest.mark.parametrize("size, messages", [(8, 20_000), pytest.param(1000, 4000, marks=pytest.mark.slow), (4000, 2000)])
@flows(8, 64)
def test_blocking_sends_stop_the_sender_and_take_no_memory(start, flow, tmp_path, size, messages):
    assert messages * (size + 100) > 4 * MOST_KIB << 10
    assert flood(start, flow, tmp_path, messages, size, "blocking") < MOST_KIB


@flows(8, 64)
def test_nonblocking_eager_sends_leave_their_data_with_the_user(start, flow, tmp_path):
    # Requests of Open MPI itself take about a KiB each; the 4 MB of data must not be copied.
    assert flood(start, flow, tmp_path, 1000, 4000, "nonblocking") < 2048
