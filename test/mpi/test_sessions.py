"""MPI is initialized and finalized several times in a process: sessions, from Open MPI 5.0 on."""

import pytest

from flows import every_flow, flows
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


def assert_sessions(mpi, flow, shm, **keywords):
    facts = mpi.run("sessions", 12, PAUSE_MS, np=3, params=flow.params, time_limit=120, prefix=shm.enter, **keywords).facts()
    if facts["sessions"] == 0:
        pytest.skip("this Open MPI has no sessions")
    assert facts["sessions"] == 12 and facts["mappings"] == 0
    assert_empty(shm)
    if facts["descriptors"] > 0:
        # Open MPI 5.0.7 leaves five behind with each session, over any transport.
        other = mpi.run("sessions", 12, PAUSE_MS, np=3, transport="sm", time_limit=120).facts()
        assert facts["descriptors"] <= other["descriptors"]
