"""Windows: put, get and the atomic operations."""

import pytest

from flows import TRANSPORT, every_flow, flows

# Without it, windows that MPI allocates on one node bypass the transport.
OVER_BTL = {"osc": "rdma"}


@pytest.mark.parametrize("window", ["allocate", "create"])
@pytest.mark.parametrize("topic", ["fence", "lock", "pscw", "accumulate", "fetch_and_op", "narrow", "sizes"])
@flows(8)
def test_one_sided(mpi, flow, topic, window):
    assert mpi.run("rma", topic, window, np=4, params={**flow.params, **OVER_BTL}).facts() == {"passed": 1}


@pytest.mark.parametrize("topic", ["fence", "accumulate", "fetch_and_op", "sizes"])
@every_flow(4)
def test_one_sided_without_single_copy(mpi, flow, topic):
    params = {**flow.params, **OVER_BTL}
    if TRANSPORT == "velo":
        params["btl_velo_single_copy_mechanism"] = "copy"
    assert mpi.run("rma", topic, "allocate", np=3, params=params).facts() == {"passed": 1}


@every_flow(8)
def test_compare_and_swap_by_competing_ranks(mpi, flow):
    params = {**flow.params, **OVER_BTL}
    assert mpi.run("rma", "compare_and_swap", "create", np=4, params=params).facts() == {"passed": 1}


@flows(8, policies=("dynamic",))
def test_compare_and_swap_in_memory_that_mpi_allocated(mpi, flow, is_4_1, request):
    if is_4_1:
        reason = "osc/rdma of Open MPI 4.1.4 sends the BTL an address of its own mapping"
        request.applymarker(pytest.mark.xfail(strict=False, reason=reason))
    params = {**flow.params, **OVER_BTL}
    assert mpi.run("rma", "compare_and_swap", "allocate", np=3, params=params).facts() == {"passed": 1}


@flows(8, policies=("dynamic",))
def test_compare_and_swap_in_own_memory(mpi, flow):
    params = {**flow.params, **OVER_BTL}
    assert mpi.run("rma", "compare_and_swap_at_home", "create", np=3, params=params).facts() == {"passed": 1}
