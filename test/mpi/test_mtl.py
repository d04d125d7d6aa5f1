"""What only the MTL promises: bounded memory for unmatched messages, one mailbox beside the BTL, matching at scale."""

import os
import re
import shutil
import signal

import pytest

from flows import every_flow, flows, mtl_only
from launcher import MPIRUN, Run, finish
from series import cases
from series import run as run_series
from test_faults import assert_node_is_told
from test_goal import build, goal, needs_build  # noqa: F401
from test_hygiene import assert_empty

pytestmark = mtl_only

VERBOSE = {"btl_velo_verbose": 5}


def states(result):
    """The numbers of each rank that the MTL logs at the end."""
    numbers = re.findall(r"mtl: sent (\d+) eager, (\d+) by rendezvous \((\d+) of them.*?"
                         r"pool (\d+) bytes \((\d+) for each sender\), at most (\d+) used; at most (\d+) headers; "
                         r"(\d+) bytes of memory; (\d+) headers for each sender; held back at most (\d+)", result.stderr)
    names = ("eager", "rendezvous", "degraded", "pool", "share", "used", "headers", "memory", "share_headers", "held")
    return [dict(zip(names, map(int, words))) for words in numbers]


@pytest.mark.parametrize("what", ["bereft", "waiting"])
@flows(8)
def test_operations_with_a_rank_that_was_killed_fail_and_the_line_says_why(mpi, flow, what):
    result = mpi.run_any("faults", what, np=3, params=flow.params, options=("--enable-recovery",))
    assert result.facts() == {"sent": int(what == "bereft"), "received": 1, "late": 1}, str(result)
    assert_node_is_told(result)


@pytest.mark.parametrize("call", ["receive", pytest.param("send", marks=pytest.mark.slow), pytest.param("barrier", marks=pytest.mark.slow)])
def test_a_rank_that_is_killed_is_told_once_a_node_in_every_job(mpi, call):
    result = mpi.run_any("faults", "killed", call, np=4)
    assert result.returncode != 0
    assert_node_is_told(result)


@pytest.mark.parametrize("way", ["blocking", "nonblocking"])
@every_flow(8)
def test_a_flood_that_nothing_matches_stays_within_the_pool(mpi, flow, way):
    messages, pool = 20_000, 1 << 20
    params = {**flow.params, **VERBOSE, "mtl_velo_unexpected_pool": pool}
    result = mpi.run("unmatched", messages, 1024, 700, way, np=4, params=params, time_limit=150)
    facts = result.facts()
    assert facts["received"] == 3 * messages
    ranks = states(result)
    assert len(ranks) == 4
    receiver = max(ranks, key=lambda rank: rank["used"])
    headers = 3 * (1 if way == "blocking" else receiver["share_headers"])
    assert receiver["pool"] == pool
    assert 0 < receiver["used"] <= pool
    assert receiver["headers"] <= headers
    # Memory comes in slabs of 64 KiB.
    assert receiver["memory"] <= pool + headers * 256 + (64 << 10)
    # What else a process needs when it begins to receive: nowhere near the 60 MB of the messages.
    assert facts["growth_kib"] < (pool + headers * 256 >> 10) + 3000
    assert sum(rank["degraded"] for rank in ranks) > 0


@pytest.mark.parametrize("name", ["flow_control", pytest.param("piggyback", marks=pytest.mark.slow)])
def test_a_word_that_is_not_permitted_ends_the_job_by_name_where_the_mtl_alone_is_named(mpi, name):
    result = mpi.run_any("traffic", "rounds", 3, params={f"btl_velo_{name}": "bogus"}, transport_btl=False)
    assert result.returncode != 0, str(result)
    assert f'btl_velo_{name} is "bogus"; it must be' in result.output


# By default the random programs go through all.
@every_flow(8, in_packets=(4,))
def test_every_policy(mpi, flow):
    every = {("exchange", 4, 300_000): {"rounds": 4, "received": 192}, ("collectives", 4, 5000): {"rounds": 4}}
    assert run_series(mpi, every, np=4, params=flow.params) == {case: (facts, None) for case, facts in every.items()}


def test_collectives_on_boards_and_as_schedules_beside_the_mtl(mpi):
    params = {**VERBOSE, "coll": "velo,basic,libnbc,inter,self"}
    result = mpi.run("coll", "check", 1, np=3, params=params)
    assert result.facts() == {"rounds": 1}
    assert len(re.findall(r"schedules: [1-9]\d* runs of ", result.stderr)) == 3, str(result)
    assert len(re.findall(r"boards: [1-9]\d*, published [1-9]\d* times", result.stderr)) == 3, str(result)


@pytest.mark.parametrize("beside", ["velo,self", "self"])
def test_one_mailbox_serves_both_components(mpi, beside):
    params = {**VERBOSE, "osc": "^sm,ucx"}
    result = mpi.run("traffic", "rounds", 20, np=3, params=params, options=["--mca", "btl", beside], transport_btl=False)
    assert result.facts()["rounds"] == 20
    assert len(re.findall(r"btl:velo: (?:flow_control dynamic, slots_per_peer|rank \d: (?:processor|locality))", result.stderr)) == 3


def test_a_copy_of_the_plugin_instead_of_the_link_works_too(mpi, component_path, tmp_path):
    if component_path is None:
        pytest.skip("the plugin is installed")
    directory = component_path.split(":")[0]
    for name in ("mca_btl_velo.so", "mca_mtl_velo.so"):
        shutil.copyfile(f"{directory}/{name}", tmp_path / name)
    environment = {"OMPI_MCA_mca_base_component_path": component_path.replace(directory, str(tmp_path), 1)}
    # Only one of the two may tell where its mailbox is: no BTL.
    assert mpi.run("traffic", "rounds", 20, np=3, params={"pml": "cm"}, env=environment).facts()["rounds"] == 20


@flows(64)
def test_velo_pvars_shows_what_the_matching_does(mpi, flow):
    params = {**flow.params, "mtl_velo_unexpected_pool": "64k"}
    result = mpi.run("unmatched", 500, 1024, 500, "nonblocking", params=params, prefix=["velo-pvars", "--all"])
    total = {name: int(value.replace(",", "")) for name, value in re.findall(r"mtl_velo_(\w+) +([\d,]+)", result.stderr)}
    assert total["unexpected"] > 100 and total["degraded"] > 100 and total["expected"] > 0
    assert 0 < total["pool_used_bytes_max"] <= 64 << 10
    # The tool's own messages are still on their way.
    assert total["pool_used_bytes"] <= 1024 and total["held"] == 0
    assert total["eager"] + total["rendezvous"] >= 500


def test_ompi_info_lists_the_variables_of_the_mtl_with_help(ompi_info):
    text = ompi_info("--all", "--parsable").stdout
    for name in ("pool_used_bytes", "pool_used_bytes_max", "headers", "held", "unexpected", "degraded"):
        assert re.search(rf"^mca:mtl:velo:pvar:mtl_velo_{name}:help:.{{10,}}", text, re.MULTILINE), name


def test_at_verbosity_1_one_line_says_that_the_mtl_is_in_use(mpi):
    result = mpi.run("exchange", np=3, params={"btl_velo_verbose": 1})
    assert re.findall(r"btl:velo: (.*)", result.output) == ["in use: mtl velo, 3 processes, flow control dynamic"], str(result)


def test_the_mtl_is_not_used_unless_it_is_named(mpi):
    result = mpi.run("traffic", "rounds", 3, np=2, transport="", params={"mtl_base_verbose": 20})
    assert result.facts()["rounds"] == 3
    assert "btl:velo" not in result.stderr


@needs_build
@flows(8)
def test_a_program_over_goal_h(goal, flow):  # noqa: F811
    assert goal("scatter.c", np=5, params=flow.params) == {"runs": 5}


# --- between nodes, and what goes wrong around a job


BETWEEN_NODES = {("exchange", 4, 300_000): {"rounds": 4, "received": 4 * 48}, ("collectives", 3, 5000): {"rounds": 3}}


@cases(BETWEEN_NODES)
@flows(8, policies=("static", "dynamic", "lazy"))
def test_between_nodes_and_inside_them(facts, cluster, flow, case):
    found = facts(np=4, params={**flow.params, "btl_velo_report": "json"}, prefix=cluster.prefix(2, 2))
    assert found == BETWEEN_NODES[case]
    carried = [int(packets) for packets in re.findall(r'"network_packets":(\d+)', found.job.stderr.replace(" ", ""))]
    assert carried and min(carried) > 0, "the network carried nothing"


@cases([("modes", mode, size) for mode in ("ssend", "bsend", "rsend", "persistent", "cancel") for size in (8, 100_000)])
@flows(8, policies=("dynamic",))
def test_send_mode_between_nodes(facts, cluster, flow, case):
    assert facts(np=2, params=flow.params, prefix=cluster.prefix(2, 1)) == {"rounds": 20}


@flows(8, policies=("dynamic", "lazy"))
def test_a_flood_from_another_node_stays_within_the_pool(mpi, cluster, flow):
    messages, pool = 5000, 256 << 10
    params = {**flow.params, **VERBOSE, "mtl_velo_unexpected_pool": pool}
    result = mpi.run("unmatched", messages, 1024, 1500, "nonblocking", np=2, params=params, prefix=cluster.prefix(2, 1),
                     time_limit=150)
    assert result.facts()["received"] == messages
    receiver = max(states(result), key=lambda rank: rank["used"])
    assert 0 < receiver["used"] <= receiver["pool"] == pool
    assert receiver["headers"] <= receiver["share_headers"]


@flows(8, policies=("dynamic", "lazy"))
def test_a_program_that_forks_goes_on(mpi, flow):
    assert mpi.run("faults", "fork", np=4, params=flow.params).facts()["rounds"] == 12


@flows(8, policies=("dynamic",))
def test_a_rank_killed_in_a_rendezvous_ends_the_job_and_nothing_is_left(start, flow, private_shm):
    shm, victim = private_shm(), 1
    run = start("faults", "rendezvous", np=3, params=flow.params, prefix=shm.enter)
    os.kill(int(run.until_printed(rf"rank {victim} pid=(\d+)")[1]), signal.SIGKILL)
    result = run.wait()
    # mpirun may notice it first, or the other rank, whose message goes nowhere; and mpirun of Open MPI 4.1 may lose the text.
    assert result.returncode != 0 and result.stderr, str(result)
    assert_empty(shm)


@pytest.mark.parametrize("victim", [pytest.param("rank", marks=pytest.mark.slow), "mpirun"])
@flows(8, policies=("dynamic",))
def test_nothing_is_left_after_a_kill_in_traffic(start, flow, private_shm, mpi, victim):
    shm = private_shm()
    run = start("traffic", "endless", np=4, params=flow.params, prefix=shm.enter)
    run.until_printed(r"traffic pid=\d+")
    assert shm.bytes_used() > 0
    os.kill(run.pid if victim == "mpirun" else run.ranks(mpi.program("traffic"))[-1], signal.SIGKILL)
    assert run.wait().returncode != 0
    assert_empty(shm)


@pytest.mark.parametrize("which", ["all", "first", pytest.param("second", marks=pytest.mark.slow)])
@flows(8, policies=("static", "dynamic", "lazy"))
def test_large_messages_pass_where_the_kernel_refuses_access_to_memory(mpi, flow, which):
    program, filtered = [mpi.program("exchange"), "5", "300000"], [mpi.program("without_cma")]
    parts = [(1, [*(filtered if which in ("all", name) else []), *program]) for name in ("first", "second")]
    result = mpi.run_parts(parts, params=flow.params)
    assert result.returncode == 0 and result.stderr == "", str(result)
    assert result.facts() == {"rounds": 5, "received": 80}


def test_one_file_of_parameters_chooses_it(mpi, tmp_path):
    file = tmp_path / "velo-mtl.conf"
    file.write_text("pml = cm\nmtl = velo\nbtl = velo,self\nbtl_velo_verbose = 1\n")
    words = [MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", "2", mpi.program("traffic"), "rounds", "3"]
    result = finish(Run(words, mpi.environment({"OMPI_MCA_mca_base_param_files": str(file)}), 60))
    assert result.returncode == 0 and "in use: mtl velo, 2 processes" in result.stderr, str(result)
