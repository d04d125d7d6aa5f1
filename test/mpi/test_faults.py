"""What goes wrong around a job ends in success or in a clear error, and nothing stays behind."""

import os
import re
import signal

import pytest

from flows import flows, velo_only
from test_hygiene import assert_empty

pytestmark = velo_only
POLICIES = ("static", "dynamic")


@pytest.mark.parametrize("victim, copy", [(0, "auto"), (1, "copy")])
@flows(8, policies=POLICIES)
def test_a_rank_killed_in_a_rendezvous_ends_the_job(start, flow, private_shm, victim, copy):
    shm = private_shm()
    params = {**flow.params, "btl_velo_single_copy_mechanism": copy}
    run = start("faults", "rendezvous", np=3, params=params, prefix=shm.enter)
    os.kill(int(run.until_printed(rf"rank {victim} pid=(\d+)")[1]), signal.SIGKILL)
    result = run.wait()
    assert result.returncode != 0
    assert "signal 9" in result.output or "Killed" in result.output, str(result)
    assert_empty(shm)


@flows(8, policies=("none", *POLICIES, "lazy"))
def test_a_program_that_forks_goes_on_and_its_children_keep_no_shared_memory(mpi, flow, private_shm):
    shm = private_shm()
    assert mpi.run("faults", "fork", np=4, params=flow.params, prefix=shm.enter).facts()["rounds"] == 12
    assert_empty(shm)


@flows(8, policies=POLICIES)
def test_peers_cost_a_rank_no_descriptor(mpi, flow):
    """Peers' segments take none, once they are mapped: sixteen ranks need as many as two."""
    assert mpi.run("faults", "descriptors", 64, np=16, params=flow.params, time_limit=120).facts()["rounds"] == 20


CRASHES = re.compile(r"signal (4|6|7|8|11)\b|Segmentation fault|Bus error|terminate called|Assertion")


@flows(8, policies=("dynamic", "lazy"))
def test_no_descriptor_left_for_shared_memory_ends_in_an_error_that_names_it(mpi, flow, private_shm):
    shm = private_shm()
    result = mpi.run_any("faults", "none_left", np=2, params=flow.params, prefix=shm.enter)
    assert result.returncode != 0 and not CRASHES.search(result.output), str(result)
    assert any("cannot create a shared memory segment of" in line and "Too many open files" in line for line in result.stderr.splitlines()), str(result)
    assert_empty(shm)


COLL = {"coll": "velo,basic,libnbc,inter,self"}


# What the collectives do not use, the ring of messages does.
@pytest.mark.parametrize("coll", [pytest.param({}, marks=pytest.mark.slow), COLL, pytest.param({**COLL, "coll_velo_boards": 0}, marks=pytest.mark.slow)],
                         ids=["no coll", "boards", "schedules"])
@pytest.mark.parametrize("what", ["taken", pytest.param("jailed", marks=pytest.mark.skipif(os.geteuid() != 0, reason="chroot is for root"))])
@flows(8, policies=("dynamic", "lazy"))
def test_a_program_that_takes_all_descriptors_or_another_root_after_mpi_init_goes_on(mpi, flow, what, coll):
    assert mpi.run("faults", what, np=3, params={**flow.params, **coll}).facts()["rounds"] == 9


@pytest.mark.parametrize("coll", [pytest.param({}, marks=pytest.mark.slow), COLL, {**COLL, "coll_velo_boards": 0}], ids=["no coll", "boards", "schedules"])
@flows(8)
def test_a_program_goes_on_when_dev_shm_is_filled_after_mpi_init(mpi, flow, private_shm, coll):
    shm = private_shm("64m")
    assert mpi.run("faults", "full", np=3, params={**flow.params, **coll}, prefix=shm.enter).facts()["rounds"] == 9


RECOVERY = ("--enable-recovery",)


def assert_node_is_told(result):
    """One line of Velo's, whoever of the survivors has found it: it has the rank, the host and the cause."""
    lines = [line for line in result.stderr.splitlines() if "btl:velo:" in line]
    assert len(lines) == 1 and re.search(r"btl:velo: rank 1 on \S+ has ended without MPI_Finalize, as if killed: ", lines[0]), str(result)


SCHEDULES = {**COLL, "coll_velo_boards": 0}
slow = pytest.mark.slow


# mpirun ends the survivors a second later, those that an error has not ended.
@pytest.mark.parametrize("call, params", [("receive", {}), pytest.param("send", {}, marks=slow), pytest.param("barrier", {}, marks=slow),
                                          pytest.param("receive", COLL, marks=slow), pytest.param("send", COLL, marks=slow),
                                          ("barrier", COLL), ("barrier", SCHEDULES)],
                         ids=["receive", "send", "barrier", "receive, coll", "send, coll", "barrier, boards", "barrier, schedules"])
def test_a_rank_that_is_killed_is_told_once_a_node_in_every_job(mpi, call, params):
    result = mpi.run_any("faults", "killed", call, np=4, params=params)
    assert result.returncode != 0
    assert_node_is_told(result)


@flows(8)
def test_sends_to_a_rank_that_was_killed_fail_and_the_line_says_why(mpi, flow):
    result = mpi.run_any("faults", "bereft", np=3, params=flow.params, options=RECOVERY)
    # What receives do is ob1's (known issues).
    assert result.facts()["sent"] == 1, str(result)
    assert_node_is_told(result)


@pytest.mark.parametrize("coll", [COLL, SCHEDULES], ids=["boards", "schedules"])
def test_a_collective_operation_with_a_rank_that_was_killed_fails_at_all_others(mpi, coll):
    result = mpi.run_any("faults", "left", np=3, params=coll, options=RECOVERY)
    assert result.facts()["failed"] == 2, str(result)
    assert_node_is_told(result)


@flows(8)
def test_who_waits_for_a_rank_that_was_killed_is_told(mpi, flow):
    result = mpi.run_any("faults", "waiting", np=3, params=flow.params, options=RECOVERY)
    assert_node_is_told(result)


def test_where_the_mailbox_of_coll_velo_finds_no_room_the_error_says_whose_it_is(mpi, private_shm):
    shm = private_shm("2m")
    result = mpi.run_any("exchange", 1, 100, np=2, params=COLL, prefix=shm.enter)
    assert result.returncode != 0 and "coll velo takes a mailbox of its own in each process" in result.stderr, str(result)
