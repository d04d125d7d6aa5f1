"""MPI is initialized and finalized several times in a process: sessions, from Open MPI 5.0 on."""

import pytest

from flows import every_flow


@every_flow(8)
def test_sessions_one_after_the_other(mpi, flow, private_shm):
    shm = private_shm()
    facts = mpi.run("sessions", 12, np=3, params=flow.params, prefix=shm.enter, time_limit=120).facts()
    if facts["sessions"] == 0:
        pytest.skip("MPI of before version 4 has no sessions")
    assert facts == {"sessions": 12, "descriptors": 0}
    assert shm.names() == []
