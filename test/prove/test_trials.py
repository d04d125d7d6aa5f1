"""What velo-prove's trials read out of programs, and how they judge it."""


import pytest

from velo.dev import applications, oversubscription
from velo.dev.prove.job import Launcher
from velo.programs import NotFound

LAMMPS = """Per MPI rank memory allocation (min/avg/max) = 2.706 | 2.706 | 2.706 Mbytes
Step Temp E_pair E_mol TotEng Press
       0            3   -6.7733681            0   -2.2744931   -3.7033504
a line of something else
      50    1.6842865   -4.8082494            0   -2.2824513    5.5666131
Loop time of 5.6 on 4 procs for 250 steps with 4000 atoms
"""


def test_the_energies_of_lammps_are_its_answers_whatever_is_printed_between():
    answers = applications.lammps_answers(LAMMPS, None)
    assert len(answers) == 12 and answers["0.2"] == -6.7733681 and answers["1.5"] == 5.5666131


def test_lammps_without_energies_is_an_error_that_shows_its_last_words():
    with pytest.raises(ValueError, match="ERROR: Lost atoms"):
        applications.lammps_answers("ERROR: Lost atoms\n", None)


def test_failed_residuals_of_scalapack_are_an_error():
    good = "   12 tests completed and passed residual checks.\n    0 tests completed and failed residual checks.\n"
    assert applications.scalapack_answers(good, None) == {"passed": 12.0, "failed": 0.0}
    with pytest.raises(ValueError, match="residuals"):
        applications.scalapack_answers(good.replace("  0 tests", "  1 tests"), None)
    with pytest.raises(ValueError, match="none in the output"):
        applications.scalapack_answers("", None)


def test_hpcc_is_judged_by_its_summary(tmp_path):
    (tmp_path / "hpccoutf.txt").write_text("||Ax-b|| .... PASSED\nSuccess=1\nHPL_XnormI=11.35\nHPL_time=3.1\n")
    assert applications.hpcc_answers("", tmp_path) == {"Success": 1.0, "HPL_XnormI": 11.35, "PASSED": 1.0, "FAILED": 0.0}
    (tmp_path / "hpccoutf.txt").write_text("Success=0\n")
    with pytest.raises(ValueError):
        applications.hpcc_answers("", tmp_path)


def test_the_energies_of_a_program_are_numbered_and_have_to_be_there():
    nwchem = next(application for application in applications.APPLICATIONS if application.name == "nwchem")
    output = "         Total SCF energy =    -76.010496172412\n          Total MP2 energy           -76.199032714913\n"
    assert nwchem.answers(output, None) == {"energy 0": -76.010496172412, "energy 1": -76.199032714913}
    with pytest.raises(ValueError, match="there is no energy in the output: ...ARMCI died"):
        nwchem.answers("ARMCI died", None)


def test_a_failed_test_of_hdf5_is_an_error():
    good = "Testing  -- multiple datasets write (cschunkw) \nTesting  -- one more (x)\nPHDF5 tests finished with no errors\n"
    assert applications.hdf5_test_answers(good, None) == {"tests": 3.0}
    with pytest.raises(ValueError, match="FAILED"):
        applications.hdf5_test_answers(good + " collective write   *FAILED*\n", None)
    with pytest.raises(ValueError, match="detected 2 errors"):
        applications.hdf5_test_answers("***PHDF5 tests detected 2 errors***\n", None)


def test_answers_differ_by_more_than_the_tolerance_or_by_being_absent():
    reference = {"a": 1.0, "b": 2.0, "zero": 0.0}
    assert applications.differences(dict(reference), reference, 1e-6) == []
    assert applications.differences({**reference, "a": 1.0 + 1e-8}, reference, 1e-6) == []
    assert applications.differences({**reference, "a": 1.001}, reference, 1e-6) == ["a is 1.001 and 1.0 with vader"]
    assert applications.differences({"a": 1.0, "zero": 0.0}, reference, 1e-6) == ["b is missing"]
    assert applications.differences({**reference, "zero": 0.5}, reference, 1e-6) == ["zero is 0.5 and 0.0 with vader"]
    assert applications.differences({**reference, "c": 1}, reference, 1e-6) == ["c is there and not with vader"]


def test_the_average_is_the_last_column_of_the_last_row():
    rows = "     #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n" \
           "          0        1000         0.02         0.02         0.02\n" \
           "       2048          60     21000.10     23000.20     22392.25\n"
    assert oversubscription.parse(rows) == 22392.25
    assert oversubscription.parse(" #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n  1000  2.5  2.7  2.6\n") == 2.6
    with pytest.raises(ValueError):
        oversubscription.parse("nothing")


def test_the_best_runs_are_compared():
    assert oversubscription.verdict([10, 30, 11], [10, 10, 10]) == (1.0, True)
    ratio, good = oversubscription.verdict([12, 13, 14], [10, 40, 40])
    assert ratio == pytest.approx(1.2) and not good


def test_a_directory_without_a_plugin_is_named(tmp_path):
    with pytest.raises(NotFound, match="--build"):
        Launcher(tmp_path)
