"""Windows: put, get and the atomic operations."""

import pytest

from flows import TRANSPORT, flows

# Without it, windows that MPI allocates on one node bypass the transport.
OVER_BTL = {"osc": "rdma"}


@pytest.fixture(autouse=True)
def known_to_fail_elsewhere(request):
    if TRANSPORT == "vader" and request.node.callspec.params["topic"] == "compare_and_swap":
        pytest.skip("osc/rdma over vader of Open MPI 4.1.4 crashes here")


@pytest.mark.parametrize("window", ["allocate", "create"])
@pytest.mark.parametrize("topic", ["fence", "lock", "pscw", "accumulate", "fetch_and_op", "compare_and_swap", "sizes"])
@flows(8)
def test_one_sided(mpi, flow, topic, window):
    assert mpi.run("rma", topic, window, np=4, params={**flow.params, **OVER_BTL}).facts() == {"passed": 1}


@pytest.mark.parametrize("topic", ["fence", "accumulate", "fetch_and_op", "compare_and_swap", "sizes"])
@flows(4, policies=("none", "dynamic"))
def test_one_sided_without_single_copy(mpi, flow, topic):
    params = {**flow.params, **OVER_BTL}
    if TRANSPORT == "velo":
        params["btl_velo_single_copy_mechanism"] = "copy"
    assert mpi.run("rma", topic, "allocate", np=3, params=params).facts() == {"passed": 1}
