"""Broadcasts between nodes by multicast (contrib/nodes): nodes that hear each other, lose datagrams, do not hear, stop."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

from flows import velo_only

pytestmark = velo_only
PARAMS = {"coll": "velo,basic,libnbc,inter,self", "coll_velo_multicast": "always", "coll_velo_multicast_limit": 65536, "mpi_yield_when_idle": 1,
          "btl_velo_verbose": 5}
TIMEOUT = {"btl_velo_network_timeout": 5}
FILTER = 'add table inet filtered; add chain inet filtered in { type filter hook input priority 0; }; add rule inet filtered in '


@pytest.fixture
def begin(start, cluster):
    """Starts a program on nodes of its own."""

    def begin(*arguments, nodes=4, slots=1, params=None, **keywords):
        return start("broadcasts", *arguments, np=nodes * slots, params={**PARAMS, **(params or {})},
                     prefix=cluster.prefix(nodes, slots), time_limit=150, **keywords)

    return begin


def leaders(result):
    """The counters of each process that leads a node."""
    return [counters for counters in everybody(result) if counters["multicast_joins"] == 0]


def everybody(result):
    """And of those that have joined beside them."""
    lines = re.findall(r"multicast: (multicasts_sent .*)", result.stderr)
    return [{words[i]: int(words[i + 1]) for i in range(0, len(words), 2)} for words in map(str.split, lines)]


def total(result, name):
    return sum(counters[name] for counters in leaders(result))


def on(nodes, command):
    """Words between mpirun and a rank, which do something on its node first."""
    return ["sh", "-c", f'case "$(hostname)" in {nodes}) {command} ;; esac; exec "$0" "$@"']


@pytest.mark.parametrize("nodes, slots", [(2, 2), pytest.param(4, 1, marks=pytest.mark.slow), pytest.param(4, 2, marks=pytest.mark.slow)])
def test_every_broadcast_comes_to_all(begin, nodes, slots):
    result = begin("check", 2, nodes=nodes, slots=slots).wait()
    assert result.facts() == {"rounds": 2}
    assert len(leaders(result)) == nodes
    assert 0 < total(result, "multicasts_sent") * (nodes - 1) == total(result, "multicasts_taken"), str(result)


def test_unless_it_is_asked_for_there_is_none(begin):
    result = begin("check", 1, nodes=2, params={"coll_velo_multicast": "off"}).wait()
    assert result.facts() == {"rounds": 1} and not leaders(result)


@pytest.mark.slow
def test_auto_leaves_two_nodes_alone(begin):
    result = begin("check", 1, nodes=2, params={"coll_velo_multicast": "auto"}).wait()
    assert result.facts() == {"rounds": 1} and total(result, "multicasts_sent") == 0


@pytest.mark.slow
def test_what_is_above_the_limit_goes_to_each(begin):
    result = begin("steady", 2, params={"coll_velo_multicast_limit": 1000}).wait()
    assert result.facts() == {"finished": 1}, str(result)
    # Those of 4 bytes, and no other.
    assert 0 < total(result, "multicasts_sent") == total(result, "multicast_datagrams")


@pytest.mark.slow
@pytest.mark.parametrize("shares", ["static", "dynamic"])
def test_receive_buffers_are_shared(begin, shares):
    """As far as the system permits them, which is for much more than these nodes may send."""
    result = begin("check", 1, params={"coll_velo_multicast_shares": shares}).wait()
    assert result.facts() == {"rounds": 1} and total(result, "multicasts_sent") > 0
    buffer = 2 * min(4 << 20, int(Path("/proc/sys/net/core/rmem_max").read_text()))
    share = min(buffer // (2 * 1500) // 3, 128)
    assert {counters["multicast_share"] for counters in leaders(result)} <= ({share} if shares == "static" else set(range(share, 129))), str(result)


@pytest.mark.slow
@pytest.mark.parametrize("percent", [1, 30])
def test_lost_datagrams_are_repaired(begin, percent):
    rule = FILTER + f"meta l4proto udp numgen random mod 100 < {percent} drop"
    result = begin("steady", 6, before=on("node2|node3", f'nft "{rule}"')).wait()
    assert result.facts() == {"finished": 1}, str(result)
    assert total(result, "multicasts_sent") * 3 == total(result, "multicasts_taken"), str(result)
    assert percent == 1 or total(result, "multicast_repairs") > 0, str(result)


@pytest.mark.slow
def test_where_a_node_does_not_hear_all_go_without_and_it_is_said_once(begin):
    rule = FILTER + "ip daddr 239.0.0.0/8 udp dport 61000-65000 drop"
    result = begin("steady", 5, before=on("node2", f'nft "{rule}"')).wait()
    assert result.facts() == {"finished": 1}, str(result)
    assert result.stderr.count("multicast does not reach 10.77.0.2 (rank 1)") == 1, str(result)
    assert total(result, "multicasts_sent") == 0


def test_an_interface_that_a_node_does_not_have_is_said_once_and_all_go_without(begin):
    result = begin("check", 1, nodes=2, params={"coll_velo_multicast_interface": "nosuch0"}).wait()
    assert result.facts() == {"rounds": 1} and not leaders(result)
    assert result.stderr.count("rank 0 has no interface nosuch0 that is up and multicasts") == 1, str(result)


# Joins the group that the node's rank is in, hears it, and answers with what it has heard, changed, and with noise.
STRANGER = r"""
import random, socket, struct, time
end = time.monotonic() + 30
words = []
while not words and time.monotonic() < end:
    words = [line.split()[1] for line in open("/proc/net/udp") if line.split()[1][6:8] == "EF"]
    time.sleep(0.01)
group, port = words[0].split(":")
group = socket.inet_ntoa(struct.pack("<I", int(group, 16)))
port = int(port, 16)
ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
ear.bind((group, port))
ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton("10.77.0.3"))
ear.settimeout(5)
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.77.0.3"))
for i in range(300):
    heard = ear.recv(65536)
    changed = bytearray(heard)
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    for what in (heard, bytes(changed), random.randbytes(random.randrange(1400))):
        out.sendto(what, (group, port))
        out.sendto(what, ("10.77.0.1", port))
"""


@pytest.mark.slow
def test_a_stranger_who_replays_changes_and_invents_does_nothing(begin, tmp_path):
    program = tmp_path / "stranger.py"
    program.write_text(STRANGER)
    result = begin("steady", 8, before=on("node3", f"python3 {program} 2> /dev/null &")).wait()
    assert result.facts() == {"finished": 1}, str(result)
    assert total(result, "multicasts_sent") * 3 == total(result, "multicasts_taken"), str(result)
    assert total(result, "multicast_strangers") > 0 and total(result, "multicast_duplicates") > 0, str(result)


@pytest.mark.slow
def test_a_leader_that_stops_for_a_while_holds_up_nobody_for_ever(begin, cluster):
    job = begin("steady", 8)
    job.until_printed("steady")
    (leader,) = cluster.processes("node3", "broadcasts")
    os.kill(leader, signal.SIGSTOP)
    time.sleep(3)
    os.kill(leader, signal.SIGCONT)
    result = job.wait()
    assert result.facts() == {"finished": 1}, str(result)


@pytest.mark.slow
def test_late_leaders_are_passed_by(begin):
    result = begin("late", 200, slots=2).wait()
    assert result.facts() == {"rounds": 200}, str(result)
    joined = [counters for counters in everybody(result) if counters["multicast_joins"] > 0]
    assert 1 <= len(joined) <= 3, "one on each node but the root's"
    assert all(counters["multicast_late"] > 3 for counters in joined), str(result)
    assert sum(counters["multicasts_overheard"] for counters in joined) > 0, str(result)


def test_who_has_passed_a_late_leader_takes_nothing_of_a_communicator_that_was_freed(begin):
    result = begin("again", 1000, nodes=2, slots=3, params={"coll_velo_multicast_attach_after": 1}).wait()
    assert result.facts() == {"rounds": 1000}, str(result)
    assert sum(counters["multicasts_overheard"] for counters in everybody(result)) > 0, str(result)


@pytest.mark.slow
def test_without_a_time_from_which_on_they_are_late_they_are_waited_for(begin):
    result = begin("late", 20, slots=2, params={"coll_velo_multicast_attach_after": 0}).wait()
    assert result.facts() == {"rounds": 20}, str(result)
    assert len(everybody(result)) == len(leaders(result)) == 4, str(result)


@pytest.mark.slow
def test_a_lost_node_ends_in_an_error_that_names_the_peer(begin, cluster):
    job = begin("steady", 80, params=TIMEOUT)
    job.until_printed("steady")
    cluster.fault("node3", "down")
    job.until(lambda: "is lost" in job.stderr or job.finished(), "an error")
    assert re.search(r"the connection to process \[.*\(rank \d of its job\) is lost", job.stderr), job.stderr


@pytest.mark.parametrize("name, value", [("multicast", "perhaps"), ("multicast_limit", 0), ("multicast_shares", "mine")])
def test_a_wrong_value_ends_with_the_parameter_named(mpi, name, value):
    result = mpi.run_any("broadcasts", "check", 1, params={**PARAMS, f"coll_velo_{name}": value})
    assert result.returncode != 0 and f"coll_velo_{name}" in result.stderr, str(result)
