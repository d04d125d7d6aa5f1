"""Messages of a process to itself: `--mca btl velo` needs no other BTL, and leaves them to BTL self where that is named too."""

import json
import re

import pytest

from flows import flows, of_the_btl, velo_only
from series import cases

OVER_BTL = {"osc": "rdma"}
# What the answers of a protocol need must not grow with the messages that wait.
SMALL_STACK = ["sh", "-c", 'ulimit -s 256; exec "$0" "$@"']
BOTH = {"options": ["--mca", "btl", "velo,self"], "transport_btl": False}
KINDS, SIZES, WAITING = 8, 17, 2 * 300


@pytest.mark.parametrize("np, threads", [pytest.param(1, 1, marks=pytest.mark.slow), (3, 4)])
@flows(8, policies=("dynamic",))
def test_messages_of_all_sizes_arrive_in_order_and_leave_no_memory_behind(mpi, flow, np, threads):
    facts = mpi.run("oneself", threads, np=np, params=flow.params, before=SMALL_STACK).facts()
    assert facts["received"] == threads * (KINDS * SIZES + WAITING)
    assert facts["growth_kib"] < 256


def servers(result):
    """How often bml/r2 chose each BTL for messages to each rank."""
    chosen = {}
    for btl, rank in re.findall(r"bml: Using (\w+) btl for send to \[\[\d+,\d+\],(\d+)\]", result.stderr):
        chosen[btl, int(rank)] = chosen.get((btl, int(rank)), 0) + 1
    return chosen


@velo_only
def test_velo_alone_serves_every_process(mpi):
    result = mpi.run("exchange", 1, 100_000, np=2, params={"btl_base_verbose": 1})
    assert servers(result) == {("velo", 0): 2, ("velo", 1): 2}


@velo_only
def test_where_both_are_named_self_serves_the_process_itself(mpi):
    result = mpi.run("exchange", 1, 100_000, np=2, params={"btl_base_verbose": 1}, **BOTH)
    assert servers(result) == {("velo", 0): 1, ("velo", 1): 1, ("self", 0): 1, ("self", 1): 1}


@velo_only
def test_velo_serves_the_atomics_of_windows(mpi):
    """On 5.0 and later osc/rdma uses those of a BTL only if it reaches the process itself too."""
    params = {**OVER_BTL, "btl_velo_report": "json"}
    result = mpi.run("rma", "fetch_and_op", "create", np=3, params=params)
    total = json.loads(re.search(r"VELO-REPORT (\{.*\})", result.stderr)[1])["total"]
    assert total["atomics"] > 0


@of_the_btl
@cases([("rma", topic, "allocate") for topic in ("fence", "lock", "accumulate", "sizes")])
@pytest.mark.parametrize("component", ["sm", "pt2pt"])
def test_other_components_for_windows(facts, ompi_info, case, component):
    if f"mca:osc:{component}:" not in ompi_info("--param", "osc", component, "--parsable").stdout:
        pytest.skip(f"this Open MPI has no osc/{component}")
    assert facts(np=3, params={"osc": component}) == {"passed": 1}


@velo_only
@cases([("random_messages", 7, 4, 120), *(("rma", topic, "create") for topic in ("fence", "lock", "accumulate", "compare_and_swap_at_home"))])
def test_programs_with_both_named(facts, case):
    found = facts(np=3, params=OVER_BTL, **BOTH)
    assert found["rounds"] == 4 if case[0] == "random_messages" else found == {"passed": 1}


@of_the_btl
@cases([("rma", topic, window) for window in ("allocate", "create")
        for topic in ("fence", "lock", "pscw", "accumulate", "fetch_and_op", "narrow", "compare_and_swap_at_home", "sizes")])
@flows(8, policies=("dynamic",))
def test_windows_of_a_process_that_is_alone(facts, flow, case):
    assert facts(np=1, params={**flow.params, **OVER_BTL}) == {"passed": 1}
