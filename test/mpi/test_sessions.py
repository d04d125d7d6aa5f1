"""MPI is initialized and finalized several times in a process: sessions, from Open MPI 5.0 on."""

import os

import pytest

from flows import every_flow

# Between two sessions: Open MPI 5.0.7 may hand out what a process has published in its last one, whatever the transport.
PAUSE_MS = 200


def names_in_shm():
    return {name for name in os.listdir("/dev/shm") if "velo" in name}


@every_flow(8)
def test_sessions_one_after_the_other(mpi, flow):
    before = names_in_shm()
    facts = mpi.run("sessions", 12, PAUSE_MS, np=3, params=flow.params, time_limit=120).facts()
    if facts["sessions"] == 0:
        pytest.skip("this Open MPI has no sessions")
    assert facts["sessions"] == 12 and facts["mappings"] == 0
    assert names_in_shm() == before
    if facts["descriptors"] > 0:
        # Open MPI 5.0.7 leaves five behind with each session, over any transport.
        other = mpi.run("sessions", 12, PAUSE_MS, np=3, transport="sm", time_limit=120).facts()
        assert facts["descriptors"] <= other["descriptors"]
