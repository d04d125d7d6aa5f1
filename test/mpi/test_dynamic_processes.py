"""Jobs that grow and jobs that meet: peers that were unknown at the start."""

import os
import pathlib
import re
import shutil

import excuses
import pytest

from flows import LAYER, POLICIES, TRANSPORT, every_flow, flows, velo_only
from launcher import Hang, Run, finish

pytestmark = pytest.mark.skipif(TRANSPORT == "vader", reason="vader does not reach other jobs")


TRIES = 4
# Each job knows only its own ranks, and would not think that they are too many for the processors.
SLEEPY = {"btl_velo_idle_sleep": 300}


def lost_by_mpirun(hang):
    """A spawned process that has not loaded Velo is in MPI_Init, and those that wait for it have no part in that."""
    return any(process.has_velo is False and process.words and pathlib.Path(process.words[0]).name == "dynamic"
               for process in hang.left)


def spawn(mpi, params, *way, time_limit=60, **keywords):
    """If it hangs, a process that waits for Velo tells of that before the time is over. mpirun of Open MPI 4.1 loses a spawn
    now and then, with any transport: the parent waits in PMIx_Lookup, a child in PMIx_Init."""
    for _ in range(TRIES):
        try:
            return mpi.run("dynamic", *way, np=2, params={**SLEEPY, **params, "btl_velo_stall_warning": 10},
                           time_limit=time_limit, **keywords)
        except Hang as hang:
            if not lost_by_mpirun(hang) or "no progress towards" in str(hang):
                raise
            excuses.add("a spawn that hung, tried again: a child without Velo in its memory was in MPI_Init")
            last = hang
    raise last


@every_flow(8, 64)
def test_two_spawned_jobs_talk_merge_and_disconnect(mpi, flow):
    assert spawn(mpi, flow.params, "spawn", 2).facts() == {"spawned": 4}


with_their_own_mailbox = pytest.mark.parametrize("policy", [
    pytest.param(policy, marks=() if policy in ("dynamic", "lazy") else pytest.mark.slow) for policy in POLICIES])


@velo_only
@with_their_own_mailbox
def test_spawned_processes_and_their_parents_leave_without_having_disconnected(mpi, policy):
    assert spawn(mpi, {"btl_velo_flow_control": policy}, "leave", 2).facts() == {"spawned": 2}


@pytest.mark.slow
@velo_only
@pytest.mark.parametrize("policy", ["none", "static", "dynamic", "lazy"])
def test_more_processes_than_there_are_places_come_and_go(mpi, policy):
    """VELO_GUESTS=200 for so many with the default of 16 spare peers."""
    guests = int(os.environ.get("VELO_GUESTS", 10))
    params = {"btl_velo_flow_control": policy}
    if guests <= 16:
        params["btl_velo_spare_peers"] = 6
    result = spawn(mpi, params, "guests", guests, time_limit=15 + guests)
    assert result.facts() == {"guests": guests}


@pytest.mark.slow
@velo_only
def test_a_hundred_spawned_processes_leave_no_more_in_memory_than_with_tcp(mpi):
    """In jobs of 25, as mpirun of Open MPI 4.1 seldom gets through hundreds, with any transport; and Open MPI itself keeps
    memory of each: docs/known-issues.md."""
    jobs, each = 4, 25
    tcp = spawn(mpi, {"btl_tcp_if_include": "lo"}, "growth", each, transport="tcp").facts()
    facts = [spawn(mpi, {}, "growth", each).facts() for _ in range(jobs)]
    assert sum(job["spawned"] for job in facts) == jobs * each
    assert sum(job["kib"] for job in facts) / jobs <= tcp["kib"], (facts, tcp)


@velo_only
def test_processes_for_which_there_is_no_place_are_left_to_another_transport(mpi):
    options = ["--mca", "btl", "velo,tcp,self", "--mca", "btl_base_verbose", "1"]
    result = spawn(mpi, {"btl_velo_spare_peers": 3, "btl_tcp_if_include": "lo"}, "crowd", 5, time_limit=90, options=options, transport_btl=False)
    assert result.facts() == {"spawned": 5}
    assert "raise btl_velo_spare_peers (now 3)" in result.stderr
    chosen = re.findall(r"bml: Using (\w+) btl for send to", result.stderr)
    assert 0 < chosen.count("tcp") < chosen.count("velo")


@flows(8)
def test_two_halves_of_a_job_connect_through_a_port(mpi, flow):
    assert mpi.run("dynamic", "halves", np=4, params=flow.params).facts() == {"remote": 2}


@velo_only
@with_their_own_mailbox
def test_what_is_owed_leaves_while_open_mpi_waits_for_others(mpi, is_4_1, policy):
    if not is_4_1:
        pytest.skip("from 5.0 on libmpi waits in PMIx itself, see docs/known-issues.md")
    params = {"btl_velo_flow_control": policy, "btl_velo_slots_per_peer": 8}
    assert mpi.run("dynamic", "owing", np=4, params=params).facts() == {"debts": 2}


def connect_through_a_server(mpi, params, tmp_path, rounds):
    uri, port = tmp_path / "server", tmp_path / "port"
    server = Run(["ompi-server", "--no-daemonize", "-r", str(uri)], mpi.environment(), time_limit=60)
    runs = [server]
    try:
        server.until(lambda: uri.exists() and uri.read_text().strip(), "the address of ompi-server")
        options = ["--ompi-server", f"file:{uri}"]
        for way in ("accept", "connect"):
            runs.append(mpi.start("dynamic", way, port, rounds, np=2, params={**SLEEPY, **params}, options=options))
        for run in runs[1:]:
            result = finish(run)
            assert result.returncode == 0, str(result)
            assert result.facts() == {"connections": rounds}
    finally:
        for run in reversed(runs):
            run.stop()


has_server = pytest.mark.skipif(not shutil.which("ompi-server"), reason="this Open MPI has no ompi-server")


@has_server
@flows(8, policies=POLICIES)
def test_two_jobs_connect_through_a_server(mpi, flow, tmp_path):
    """Again and again. Rotating memory is provided once, at first use, and little of it."""
    own = TRANSPORT == "velo" and LAYER == "btl"
    connect_through_a_server(mpi, {**flow.params, "btl_velo_routes": "staged 65536"} if own else flow.params, tmp_path, 50 if own else 2)
