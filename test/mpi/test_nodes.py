"""Several nodes: shared memory inside, UCX between (contrib/nodes)."""

import json
import re

import pytest

from flows import every_flow, flows, velo_only
from series import cases

pytestmark = velo_only


@pytest.fixture
def run(mpi, cluster):
    """Runs a program on 2 nodes with 2 ranks each, unless told otherwise."""

    def begin(*arguments, np=4, nodes=2, slots=2, **keywords):
        return mpi.run(*arguments, np=np, prefix=cluster.prefix(nodes, slots), time_limit=120, **keywords)

    return begin


@pytest.fixture
def together_on_nodes(facts, cluster):
    """The same of the case of a test, with the others that have all else alike."""

    def begin(np=4, nodes=2, slots=2, **keywords):
        return facts(np=np, prefix=cluster.prefix(nodes, slots), **keywords)

    return begin


PAIRS = {("exchange", 4, 300_000): {"rounds": 4, "received": 4 * 48}, ("collectives", 4, 5000): {"rounds": 4}}


@cases(PAIRS)
@every_flow(8)
def test_two_nodes_with_two_ranks_each(together_on_nodes, flow, case):
    assert together_on_nodes(params=flow.params) == PAIRS[case]


PHASES = ("alltoall", "allgather", "gather", "scatter")


def test_blocks_between_nodes_go_from_leader_to_leader(run):
    """All forms of the operations are right, and fewer messages pass between the nodes."""
    sent = {}
    for name in ("linear", "nodes"):
        result = run("coll", "check", 1, params={
            "coll": "velo,basic,libnbc,inter,self", "btl_velo_verbose": 5, "coll_velo_choices": ",".join(f"{operation}:{name}" for operation in PHASES)})
        assert result.facts() == {"rounds": 1}
        found = re.findall(r"to other nodes (\d+) messages, to \d+ processes", result.stderr)
        assert len(found) == 4, str(result)
        sent[name] = sum(map(int, found))
    assert 0 < sent["nodes"] < sent["linear"]


def reports(text):
    return [json.loads(line) for line in re.findall(r"VELO-REPORT (\{.*\})", text)]


@every_flow(8)
def test_four_nodes_with_two_ranks_each_use_shared_memory_inside_and_the_network_between(run, flow):
    result = run("collectives", 2, 3000, np=8, nodes=4, params={**flow.params, "btl_velo_report": "json"})
    assert result.facts() == {"rounds": 2}
    nodes = reports(result.stderr)
    assert len(nodes) == 4, "one report from each node"
    for node in nodes:
        assert node["ranks"] == 2
        assert all(rank["network_packets"] > 0 and rank["data_packets"] > 0 for rank in node["per_rank"])


TWO = {**{("modes", mode, size): {"rounds": 20} for mode in ("ssend", "issend", "bsend", "rsend", "persistent", "cancel") for size in (8, 100_000)},
       ("large", (8 << 20) + 1): {"received": (8 << 20) + 1}}


@cases(TWO)
@flows(8, policies=("dynamic",))
def test_two_nodes_with_one_rank_each(together_on_nodes, flow, case):
    assert together_on_nodes(np=2, slots=1, params=flow.params) == TWO[case]


@flows(8)
def test_who_has_sent_and_computes_holds_up_no_other_sender(run, flow, tmp_path):
    assert run("away", tmp_path / "got", 2000, np=3, nodes=3, slots=1, params=flow.params).facts() == {"received": 2}


@cases([("rma", topic, "create") for topic in ("fence", "lock", "accumulate", "fetch_and_op", "compare_and_swap")])
@flows(8, policies=("dynamic",))
def test_windows_between_nodes(together_on_nodes, flow, case, ompi_info):
    if "mca:osc:pt2pt:" not in ompi_info("--param", "osc", "all", "--parsable").stdout:
        pytest.skip("no osc/pt2pt from Open MPI 5.0 on")
    assert together_on_nodes(params={**flow.params, "osc": "pt2pt"}) == {"passed": 1}


TOPICS = ["fence", "lock", "pscw", "accumulate", "fetch_and_op", "narrow", "compare_and_swap", "compare_and_swap_at_home",
          "sizes"]


@cases([("rma", topic, window) for window in ("allocate", "create") for topic in TOPICS])
@flows(8, policies=("dynamic",))
def test_one_module_reaches_every_process_of_windows_between_nodes(together_on_nodes, flow, case):
    assert together_on_nodes(params={**flow.params, "osc": "rdma"}) == {"passed": 1}


# With 2 and 3 all ranks but one are on a node.
@pytest.mark.parametrize("np, btl", [pytest.param(2, "velo", marks=pytest.mark.slow), (3, "velo,self"), (5, "velo")])
@cases([("rma", topic, "create") for topic in ("lock", "accumulate", "sizes")])
def test_windows_of_ranks_that_lie_on_nodes_in_turn(together_on_nodes, case, btl, np):
    options = ["--mca", "btl", btl, "--mca", "osc", "rdma", "--map-by", "node"]
    assert together_on_nodes(np=np, nodes=2, slots=3, options=options, transport_btl=False) == {"passed": 1}


@pytest.mark.parametrize("btl, itself", [pytest.param("velo", "velo", marks=pytest.mark.slow), ("velo,self", "self")])
def test_messages_on_a_node_go_by_the_module_for_the_node(run, btl, itself):
    options = ["--mca", "btl", btl, "--mca", "btl_base_verbose", "1"]
    result = run("exchange", 1, 100_000, options=options, transport_btl=False)
    chosen = re.findall(r"bml: Using (\w+) btl for send to", result.stderr)
    # One for each pair of ranks: the module that reaches all of them is none for messages on this node.
    assert sorted(chosen) == sorted([itself] * 4 + ["velo"] * 12)


@cases([("threads", 4, 40, size) for size in (8, 20_000, 300_000)])
@flows(8, 64, policies=("dynamic", "none", "rnr"))
def test_threads_of_two_nodes_talk_to_each_other(together_on_nodes, flow, case):
    assert together_on_nodes(np=2, slots=1, level="multiple", params=flow.params) == {"received": 160}


@pytest.fixture
def spawn(is_4_1):
    """Two jobs, each on a node of its own. Open MPI 4.1 fills one node after the other, and takes no host that is named
    ("already filled")."""
    hosts = [] if is_4_1 else ["node2", "node3"]
    return ["dynamic", "spawn", 2, *hosts]


@every_flow(8, 64)
def test_jobs_that_are_spawned_on_other_nodes_are_reached(run, flow, spawn):
    params = {**flow.params, "btl_velo_network": "always"}
    assert run(*spawn, np=2, nodes=3, params=params).facts() == {"spawned": 4}


@flows(64, policies=("dynamic",))
def test_a_job_on_one_node_is_told_what_those_on_others_need(run, flow, spawn):
    """Another BTL serves them here."""
    params = {**flow.params, "btl": "velo,tcp"}
    result = run(*spawn, np=2, nodes=3, params=params, transport_btl=False)
    assert result.facts() == {"spawned": 4}
    assert "--mca btl_velo_network always opens one (for all jobs that are to meet)" in result.stderr
    result = run(*spawn, np=2, nodes=3, params={**params, "btl_velo_network": "none"}, transport_btl=False)
    assert result.facts() == {"spawned": 4} and "btl_velo_network" not in result.stderr


@flows(64, policies=("dynamic",))
def test_network_none_leaves_other_nodes_to_another_btl(run, flow):
    params = {**flow.params, "btl_velo_network": "none", "btl": "velo,tcp", "btl_velo_report": "json"}
    nodes = reports(run("collectives", 1, 3000, params=params, transport="").stderr)
    assert all(node["total"]["network_packets"] == 0 and node["total"]["data_packets"] > 0 for node in nodes)


def test_parameters_that_differ_between_nodes_end_in_an_error_that_names_them(mpi, cluster):
    script = 'if [ "$(hostname)" = node2 ]; then export OMPI_MCA_btl_velo_credit_slots=4; fi; exec "$0" "$@"'
    result = mpi.run_any("exchange", 1, 100, np=2, prefix=cluster.prefix(2, 1), before=["sh", "-c", script])
    assert result.returncode != 0
    assert "btl_velo_credit_slots must be the same in all processes" in result.output


@pytest.mark.parametrize("size", [2048, pytest.param(65536, marks=pytest.mark.slow)])
@flows(64, policies=("static", "dynamic"))
def test_seven_nodes_send_to_one_whose_mailbox_stays_bounded_and_starves_nobody(run, flow, size):
    """None of them ends before messages of each have come: who gets no credits while the others send holds up all."""
    least = 200
    params = {**flow.params, "btl_velo_report": "json", "btl_velo_spare_peers": 1}
    result = run("fair", 1, size, least, np=8, nodes=8, slots=1, params=params)
    counts = [int(count) for count in re.findall(r"messages_of_\d+=(\d+)", result.stdout)]
    assert len(counts) == 7 and min(counts) >= least, counts
    credit_slots = 2
    bound = 7 * 64 + 1 * 2 * credit_slots
    assert 0 < max(node["total"]["network_high_water"] for node in reports(result.stderr)) <= bound
