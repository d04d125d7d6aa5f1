"""Fixtures of the tests of velo-measure policies, velo-measure transports and velo-mpi-bench.

VELO_BUILD_DIR      build tree with velo-mpi-bench; unset: the tests build it
VELO_COMPONENT_DIR  directory with the plugin under test
VELO_TEST_BTL       transport of the tests with MPI: velo if VELO_COMPONENT_DIR is set, vader otherwise
MPICXX, MPIRUN      mpicxx.openmpi and mpirun.openmpi unless set
"""

import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
CONTRIB = HERE.parent.parent / "contrib"


@pytest.fixture
def capture():
    """The text of a captured output by its name."""
    return lambda name: (HERE / "captures" / f"{name}.txt").read_text()


@pytest.fixture(scope="session")
def velo_compare():
    return CONTRIB / "measure" / "velo-measure", "policies"


@pytest.fixture(scope="session")
def velo_versus():
    return CONTRIB / "measure" / "velo-measure", "transports"


@pytest.fixture(scope="session")
def mpi_bench(tmp_path_factory):
    """The program velo-mpi-bench."""
    build = os.environ.get("VELO_BUILD_DIR")
    if build:
        return pathlib.Path(build) / "contrib" / "benchmark" / "velo-mpi-bench"
    program = tmp_path_factory.mktemp("bench") / "velo-mpi-bench"
    sources = sorted((CONTRIB / "benchmark").glob("*.cpp"))
    compiler = os.environ.get("MPICXX", "mpicxx.openmpi")
    flags = "-DOMPI_SKIP_MPICXX -std=c++20 -O2 -Wall -Wextra -Werror".split()
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(program)], check=True)
    return program
