"""Open MPI's fault tolerance (mpirun --with-ft ulfm): the others go on without a process that was killed."""

import re

import pytest

from flows import flows, velo_only

pytestmark = velo_only
STEPS = ("receive", "early_send", "announced", "send", "long_send", "any", "barrier", "revoked")


@pytest.fixture
def outlive(mpi, is_4_1):
    if is_4_1:
        pytest.skip("Open MPI 4.1 has no fault tolerance")

    def run(*arguments, **how):
        result = mpi.run_any("ulfm", *arguments, np=4, options=("--with-ft", "ulfm"), time_limit=120, **how)
        assert result.facts() == dict.fromkeys(STEPS, 3), str(result)
        return result

    return run


@flows(8)
def test_survivors_of_a_node_go_on(outlive, flow):
    outlive(params=flow.params)


# Long enough for a broken connection to count as lost.
def test_survivors_of_two_nodes_go_on(outlive, cluster):
    result = outlive(8, prefix=cluster.prefix(2, 2))
    lines = re.findall(r"the connection to rank 3 on node2 is lost", result.stderr)
    assert len(lines) == 1, str(result)


# MPI_Finalize does not return (known issues).
def test_survivors_go_on_without_a_process_that_lives_behind_a_link_that_is_cut(start, cluster, is_4_1):
    if is_4_1:
        pytest.skip("Open MPI 4.1 has no fault tolerance")
    job = start("ulfm", 2, "cut", np=3, options=("--with-ft", "ulfm"), params={"btl_velo_network_timeout": 5}, prefix=cluster.prefix(2, 2),
                time_limit=150)
    job.until_printed("cut")
    cluster.fault("node2", "down")
    job.until_printed(" ".join(f"{step}=2" for step in STEPS))


def test_coll_velo_leaves_it_to_others(outlive):
    result = outlive(params={"coll": "velo,ftagree,basic,libnbc,inter,self"})
    assert result.stderr.count("coll velo is not used with fault tolerance") == 1, str(result)
