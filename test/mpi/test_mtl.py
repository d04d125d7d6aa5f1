"""What only the MTL promises: bounded memory for unmatched messages, one mailbox beside the BTL, matching at scale."""

import re
import shutil

import pytest

from flows import every_flow, flows, mtl_only

pytestmark = mtl_only

VERBOSE = {"btl_velo_verbose": 5}


def states(result):
    """The numbers of each rank that the MTL logs at the end."""
    numbers = re.findall(r"mtl: sent (\d+) eager, (\d+) by rendezvous \((\d+) of them.*?"
                         r"pool (\d+) bytes \((\d+) for each sender\), at most (\d+) used; at most (\d+) headers; "
                         r"(\d+) bytes of memory; (\d+) headers for each sender; held back at most (\d+)", result.stderr)
    names = ("eager", "rendezvous", "degraded", "pool", "share", "used", "headers", "memory", "share_headers", "held")
    return [dict(zip(names, map(int, words))) for words in numbers]


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


@flows(64)
def test_a_million_sends_under_way_leave_no_more_headers_than_configured(mpi, flow):
    pool, headers = 1 << 20, 256 << 10
    params = {**flow.params, **VERBOSE, "mtl_velo_unexpected_pool": pool, "mtl_velo_header_pool": headers}
    result = mpi.run("unmatched", 1_000_000, 8, 1500, "nonblocking", "window=1000000", params=params, time_limit=200)
    facts = result.facts()
    assert facts["received"] == 1_000_000
    sender, receiver = sorted(states(result), key=lambda rank: rank["used"])
    assert 0 < receiver["headers"] <= receiver["share_headers"] <= headers // 256
    assert receiver["memory"] <= pool + headers + (64 << 10)
    assert facts["growth_kib"] < (pool + headers >> 10) + 3000
    assert sender["held"] > 900_000


@pytest.mark.slow
@flows(8)
def test_an_incast_to_a_sleeping_receiver_stays_within_both_pools(mpi, flow):
    senders, pool, headers = 63, 4 << 20, 256 << 10
    params = {**flow.params, **VERBOSE, "mtl_velo_unexpected_pool": pool, "mtl_velo_header_pool": headers}
    result = mpi.run("unmatched", 1000, 1024, 3000, "nonblocking", "sleep=2000", np=senders + 1, params=params,
                     time_limit=280)
    facts = result.facts()
    assert facts["received"] == 1000 * senders
    receiver = max(states(result), key=lambda rank: rank["used"])
    assert receiver["used"] <= pool
    assert receiver["headers"] <= senders * receiver["share_headers"] <= headers // 256
    assert receiver["memory"] <= pool + headers + (64 << 10)
    # Beside 63 MB of messages.
    assert facts["growth_kib"] < (pool + headers >> 10) + 8000


@pytest.mark.slow
@flows(64)
def test_a_million_messages_that_nothing_matches_stay_within_the_pool(mpi, flow):
    params = {**flow.params, "mtl_velo_unexpected_pool": "4m"}
    facts = mpi.run("unmatched", 1_000_000, 1024, 2000, "blocking", params=params, time_limit=280).facts()
    assert facts["received"] == 1_000_000
    assert facts["growth_kib"] < 4096 + 3000


@flows(64)
def test_without_a_pool_every_message_waits_at_its_sender(mpi, flow):
    params = {**flow.params, **VERBOSE, "mtl_velo_unexpected_pool": 0}
    result = mpi.run("unexpected", 200, 2000, "one_way", params=params)
    assert result.facts()["received"] == 200
    assert all(rank["used"] == 0 and rank["eager"] == 0 for rank in states(result))


def test_an_eager_limit_that_the_mailbox_cannot_carry_is_refused_by_name(mpi):
    result = mpi.run_any("traffic", "rounds", 3, params={"mtl_velo_eager_limit": "1m"})
    assert result.returncode != 0
    assert "mtl_velo_eager_limit is 1048576" in result.output
    assert "at most" in result.output


@pytest.mark.parametrize("beside", ["velo", "velo,self", "self", "vader,self"])
def test_one_mailbox_serves_both_components(mpi, beside):
    params = {**VERBOSE, "osc": "^sm,ucx"}
    result = mpi.run("traffic", "rounds", 20, np=3, params=params, options=["--mca", "btl", beside], transport_btl=False)
    assert result.facts()["rounds"] == 20
    assert len(re.findall(r"flow_control dynamic, slots_per_peer", result.stderr)) == 3


def test_a_copy_of_the_plugin_instead_of_the_link_works_too(mpi, component_path, tmp_path):
    if component_path is None:
        pytest.skip("the plugin is installed")
    directory = component_path.split(":")[0]
    for name in ("mca_btl_velo.so", "mca_mtl_velo.so"):
        shutil.copyfile(f"{directory}/{name}", tmp_path / name)
    environment = {"OMPI_MCA_mca_base_component_path": component_path.replace(directory, str(tmp_path), 1)}
    assert mpi.run("traffic", "rounds", 20, np=3, env=environment).facts()["rounds"] == 20


@flows(64)
def test_velo_pvars_shows_what_the_matching_does(mpi, flow):
    params = {**flow.params, "mtl_velo_unexpected_pool": "64k"}
    result = mpi.run("unmatched", 500, 1024, 500, "nonblocking", params=params, prefix=["velo-pvars"])
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


def test_the_mtl_is_not_used_unless_it_is_named(mpi):
    result = mpi.run("traffic", "rounds", 3, np=2, transport="", params={"mtl_base_verbose": 20})
    assert result.facts()["rounds"] == 3
    assert "btl:velo" not in result.stderr
