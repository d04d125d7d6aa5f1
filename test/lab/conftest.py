"""Fixtures of the tests of velo-measure papers.

VELO_BUILD_DIR      build tree with velo-mpi-bench; unset: the tests with MPI are skipped
VELO_COMPONENT_DIR  directory with the plugin under test; unset: the tests with the plugin are skipped
"""

import csv
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
CONTRIB = HERE.parent.parent / "contrib"


@pytest.fixture(scope="session")
def velo_lab():
    return CONTRIB / "measure" / "velo-measure", "papers"


@pytest.fixture
def lab(velo_lab, tmp_path):
    """Runs velo-measure papers run on an mpirun and an ompi_info that print known things; output goes to tmp_path/out.
    Plots are drawn where a test is about them."""

    def run(*arguments, plots=False, **environment):
        command = [sys.executable, *map(str, velo_lab), "run", "--mpirun", str(HERE / "fake_lab_mpirun.py"), "--ompi-info",
                   str(HERE.parent / "shared" / "fake_ompi_info.py"), "--measure", "/bin/true", "--bench",
                   "/bin/true", "--goal", "/bin/true", "--sim", str(HERE / "fake_sim.py"), "--ranks", "16",
                   "--output", str(tmp_path / "out"), *([] if plots else ["--no-plot"]), *arguments]
        env = os.environ | {"FAKE_LOG": str(tmp_path / "calls"), "IMB_MPI1": ""} | environment
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)

    return run


@pytest.fixture
def data(tmp_path):
    """Lines of data.csv of an experiment by (workload, series, x)."""

    def read(name):
        with open(tmp_path / "out" / name / "data.csv", newline="", encoding="utf-8") as file:
            return {(row["workload"], row["series"], row["x"]): row for row in csv.DictReader(file)}

    return read
