"""Communicators that are made and freed while messages travel."""

from flows import every_flow


@every_flow(8, in_packets=(4,))
def test_messages_stay_within_their_communicator(mpi, flow):
    assert mpi.run("communicators", 15, np=4, params=flow.params).facts() == {"rounds": 15}
