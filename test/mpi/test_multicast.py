"""Broadcasts between nodes by multicast (contrib/nodes): nodes that hear each other, and lose datagrams."""

import re

import pytest

from flows import velo_only

pytestmark = velo_only
PARAMS = {"coll": "velo,basic,libnbc,inter,self", "coll_velo_multicast": "always", "mpi_yield_when_idle": 1,
          "btl_velo_verbose": 5}
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


@pytest.mark.parametrize("scheme", ["basic", pytest.param("window", marks=pytest.mark.slow), pytest.param("tree", marks=pytest.mark.slow),
                                    pytest.param("coroot", marks=pytest.mark.slow)])
def test_each_scheme_of_the_slides_brings_every_broadcast(begin, scheme):
    chosen = {"coll_velo_multicast_scheme": scheme, "coll_velo_multicast_window": 64, "coll_velo_multicast_ack_every": 10,
              "coll_velo_multicast_co_roots": 1}
    result = begin("check", 1, params=chosen).wait()
    assert result.facts() == {"rounds": 1}
    assert 0 < total(result, "multicasts_sent") * 3 == total(result, "multicasts_taken"), str(result)
    datagrams, acks = total(result, "multicast_datagrams"), total(result, "multicast_acks")
    if scheme == "basic":
        assert datagrams == total(result, "multicasts_sent"), str(result)
        # A root ends without having waited for those of its last one.
        assert acks >= 3 * (datagrams - len(leaders(result))), str(result)
        assert {counters["multicast_share"] for counters in leaders(result)} == {1}
    else:
        assert 0 < acks < 3 * datagrams, str(result)


def test_unless_it_is_asked_for_there_is_none(begin):
    result = begin("check", 1, nodes=2, params={"coll_velo_multicast": "off"}).wait()
    assert result.facts() == {"rounds": 1} and not leaders(result)


@pytest.mark.slow
def test_auto_leaves_two_nodes_alone(begin):
    result = begin("check", 1, nodes=2, params={"coll_velo_multicast": "auto"}).wait()
    assert result.facts() == {"rounds": 1} and total(result, "multicasts_sent") == 0


@pytest.mark.slow
@pytest.mark.parametrize("percent", [1, 30])
def test_lost_datagrams_are_repaired(begin, percent):
    rule = FILTER + f"meta l4proto udp numgen random mod 100 < {percent} drop"
    result = begin("steady", 6, before=on("node2|node3", f'nft "{rule}"')).wait()
    assert result.facts() == {"finished": 1}, str(result)
    assert total(result, "multicasts_sent") * 3 == total(result, "multicasts_taken"), str(result)
    assert percent == 1 or total(result, "multicast_repairs") > 0, str(result)


def test_an_interface_that_a_node_does_not_have_is_said_once_and_all_go_without(begin):
    result = begin("check", 1, nodes=2, params={"coll_velo_multicast_interface": "nosuch0"}).wait()
    assert result.facts() == {"rounds": 1} and not leaders(result)
    assert result.stderr.count("rank 0 has no interface nosuch0 that is up and multicasts") == 1, str(result)


def test_who_has_passed_a_late_leader_takes_nothing_of_a_communicator_that_was_freed(begin):
    result = begin("again", 1000, nodes=2, slots=3).wait()
    assert result.facts() == {"rounds": 1000}, str(result)
    assert sum(counters["multicasts_overheard"] for counters in everybody(result)) > 0, str(result)
