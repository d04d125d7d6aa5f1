"""Cases in one job (series.py): one that fails or hangs is told, and those behind it run."""

import series
from flows import of_the_btl


@of_the_btl
def test_one_that_fails_and_one_that_hangs_stop_no_other(mpi):
    good = ("exchange", 2, 500)
    cases = [good, ("modes", "nonsense", 8), ("collectives", 1, 100), ("traffic", "endless"), ("communicators", 2)]
    found = series.run(mpi, cases, np=2, seconds=3)
    assert list(found) == cases
    assert [found[case][0] for case in cases] == [{"rounds": 2, "received": 18}, {}, {"rounds": 1}, {}, {"rounds": 2}]
    assert [failure is None for _, failure in found.values()] == [True, False, True, False, True]
    assert "no such mode" in found[cases[1]][1] and "traffic endless: the end: not within 3 s" in found[cases[3]][1]
