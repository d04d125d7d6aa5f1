"""Fixtures of the tests of velo-sim.

VELO_BUILD_DIR      build tree with velo-sim
VELO_COMPONENT_DIR  directory with the plugin under test; without it the comparison with real runs is skipped
MPICC, MPIRUN       mpicc.openmpi and mpirun.openmpi unless set
"""

import json
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent.parent / "contrib" / "sim"
TIME_LIMIT = 240


@pytest.fixture(scope="session")
def velo_sim():
    """Runs velo-sim with the given words."""
    build = os.environ.get("VELO_BUILD_DIR")
    if not build:
        pytest.skip("VELO_BUILD_DIR names no build tree with velo-sim; make check-mpi sets it")
    program = pathlib.Path(build) / "contrib" / "sim" / "velo-sim"

    def run(*words):
        # The build tree need not be the source tree, where the bounds file and the plot script are.
        environment = {**os.environ, "VELO_SIM_DATA": str(SOURCES)}
        return subprocess.run([program, *map(str, words)], env=environment, capture_output=True, text=True,
                              timeout=TIME_LIMIT)

    return run


@pytest.fixture(scope="session")
def simulate(velo_sim):
    """The JSON of `velo-sim run`."""

    def run(*words):
        result = velo_sim("run", *words, "--json")
        assert result.returncode == 0, result.stdout + result.stderr
        return json.loads(result.stdout)

    return run


@pytest.fixture(scope="session")
def serial_program(tmp_path_factory):
    program = tmp_path_factory.mktemp("programs") / "serial"
    compiler = os.environ.get("MPICC", "mpicc.openmpi")
    subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", HERE / "programs" / "serial.c", "-o", program],
                   check=True)
    return program
