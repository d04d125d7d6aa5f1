"""MPI is initialized and finalized several times in a process: sessions, from Open MPI 5.0 on."""

import pytest

from flows import any_velo, every_flow, flows
from test_coll import COLL, USED
from test_hygiene import assert_empty

# Between two sessions: Open MPI 5.0.7 may hand out what a process has published in its last one, whatever the transport.
PAUSE_MS = 200


@every_flow(8)
def test_sessions_one_after_the_other(mpi, flow, private_shm):
    assert_sessions(mpi, flow, private_shm())


@flows(8, policies=("dynamic", "lazy"))
def test_sessions_of_processes_in_pid_namespaces_of_their_own(mpi, flow, private_shm, pid_namespace):
    """Their segments have names, which must go with the session."""
    assert_sessions(mpi, flow, private_shm(), before=pid_namespace)


@any_velo
@flows(8, policies=("dynamic",))
def test_collectives_in_sessions_one_after_the_other(mpi, flow, private_shm):
    """The communicator of a session is left to others, its copy is served."""
    result = assert_sessions(mpi, flow, private_shm(), params={**COLL, "coll_velo_boards": 0})
    used = USED.findall(result.stderr)
    # A sum of 3 ranks takes each of them one run.
    assert len(used) == 3 * 12 and {int(runs) for runs, _, _ in used} == {1, 2}, str(result)


def assert_sessions(mpi, flow, shm, params=None, **keywords):
    result = mpi.run("sessions", 12, PAUSE_MS, np=3, params={**flow.params, **(params or {})}, time_limit=120, prefix=shm.enter,
                     **keywords)
    facts = result.facts()
    if facts["sessions"] == 0:
        pytest.skip("this Open MPI has no sessions")
    assert facts["sessions"] == 12 and facts["mappings"] == 0
    assert_empty(shm)
    if facts["descriptors"] > 0:
        # Open MPI 5.0.7 leaves five behind with each session, over any transport.
        other = mpi.run("sessions", 12, PAUSE_MS, np=3, transport="sm", time_limit=120).facts()
        assert facts["descriptors"] <= other["descriptors"]
    return result
