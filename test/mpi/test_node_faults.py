"""Nodes that disturb, or lose, each other (contrib/nodes)."""

import os
import re
import signal

import pytest

from flows import velo_only

pytestmark = velo_only
TIMEOUT = {"btl_velo_network_timeout": 5}


@pytest.fixture
def talk(start, cluster):
    """A job that talks across two nodes, up to that point where it does so."""

    def begin(seconds, *arguments, params=None):
        job = start("chatter", seconds, *arguments, np=2, params=params, prefix=cluster.prefix(2, 1), time_limit=90)
        job.until_printed("talking")
        return job

    return begin


def test_a_killed_rank_ends_the_job(talk, cluster):
    job = talk(80)
    (victim,) = cluster.processes("node2", "chatter")
    os.kill(victim, signal.SIGKILL)
    result = job.wait()
    assert result.returncode != 0 and "finished" not in result.stdout


def test_who_waits_for_a_rank_that_was_killed_on_another_node_is_told(mpi, cluster):
    result = mpi.run_any("faults", "waiting", 60, np=3, options=("--enable-recovery",), prefix=cluster.prefix(3, 1), time_limit=90)
    told = dict(re.findall(r"^(\[\w+:\d+\]) btl:velo: the connection to (rank \d on node\d) is lost: \w+", result.stderr, re.M))
    # Who is told first ends, and may be the one that the other misses first. With --enable-recovery mpirun itself may end with 0.
    assert len(told) == 2 and "rank 1 on node2" in told.values() and "finished" not in result.stdout, str(result)
    for process in told:
        lines = [line for line in result.stderr.splitlines() if line.startswith(process)]
        assert "btl:velo" in lines[-1], str(result)


@pytest.mark.parametrize("size", [pytest.param(64, marks=pytest.mark.slow), 1_000_000])
def test_a_lost_link_ends_in_an_error_that_names_the_peer(talk, cluster, size):
    job = talk(80, size, params=TIMEOUT)
    cluster.fault("node2", "down")
    job.until(lambda: "is lost" in job.stderr or job.finished(), "an error")
    assert re.search(r"the connection to rank 1 on \w+ is lost", job.stderr), job.stderr


def test_a_receiver_may_compute_for_longer_than_the_timeout(mpi, cluster):
    # What the credits allow shuts the window while rank 0 sleeps for 6 s.
    params = {"btl_velo_network_timeout": 2, "btl_velo_slots_per_peer": 32768}
    result = mpi.run("incast", 200, 8192, 6_000, "blocking", np=2, params=params, prefix=cluster.prefix(2, 1))
    assert result.returncode == 0, str(result)


@pytest.mark.parametrize("fault", [("loss", 5), pytest.param(("rate", "100mbit"), marks=pytest.mark.slow)])
def test_a_bad_link_only_slows_the_job(talk, cluster, fault):
    job = talk(3, 20_000)
    cluster.fault("node2", *fault)
    assert job.wait().returncode == 0, job.stderr
    assert "finished=1" in job.stdout
