"""Memory stays bounded while a receiver does not receive."""

import pathlib
import re
import time

import pytest

from flows import every_flow, flows, velo_only

pytestmark = velo_only


def shared_memory(pid):
    """Size, resident and proportional set size in KiB of what the process maps from /dev/shm."""
    totals = {"Size": 0, "Rss": 0, "Pss": 0}
    counts = False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            counts = "/dev/shm" in line
        elif counts and line.split(":")[0] in totals:
            totals[line.split(":")[0]] += int(line.split()[1])
    return totals


def settled(watch):
    """The value once it has stopped to change."""
    previous = None
    for _ in range(200):
        value = watch()
        if value == previous:
            return value
        previous = value
        time.sleep(0.05)
    raise AssertionError(f"still changing: {previous}")


@every_flow(8, 64, 1024)
def test_the_receivers_mailbox_stays_as_it_is_under_incast(start, flow, tmp_path):
    wake = tmp_path / "wake"
    run = start("flood", wake, 3000, 500, "nonblocking", np=5, params=flow.params)
    pid = int(run.until_printed(r"asleep pid=(\d+)")[1])
    first = settled(lambda: shared_memory(pid))
    assert first["Size"] > 0
    run.until_printed(r"(?s)(sent pid=.*){4}")
    for _ in range(5):
        now = shared_memory(pid)
        assert now["Size"] == first["Size"]
        assert now["Pss"] <= now["Rss"] <= now["Size"]
        time.sleep(0.05)
    wake.touch()
    result = run.wait()
    assert result.returncode == 0, str(result)
    assert result.facts()["received"] == 12_000


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


@pytest.mark.parametrize("size", [8, 1000, 4000])
@flows(8, 64)
def test_blocking_sends_stop_the_sender_and_take_no_memory(start, flow, tmp_path, size):
    assert flood(start, flow, tmp_path, 2000, size, "blocking") < 2048


@flows(8, 64)
def test_nonblocking_eager_sends_leave_their_data_with_the_user(start, flow, tmp_path):
    # Requests of Open MPI itself take less than a KiB each; the 4 MB of data must not be copied.
    growth = flood(start, flow, tmp_path, 1000, 4000, "nonblocking")
    assert growth < 2048
