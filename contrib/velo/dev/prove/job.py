"""Runs an MPI program over Velo as it is in a build directory, or over vader."""

import dataclasses
import os
import pathlib
import shutil
import subprocess

from ...process import environment, mca_words, run_limited, shell_line
from ...programs import NotFound, beside, find_mpirun

ROOT = pathlib.Path(__file__).resolve().parents[4]


@dataclasses.dataclass(frozen=True)
class Transport:
    """A BTL and its parameters."""

    name: str
    btl: str
    parameters: dict = dataclasses.field(default_factory=dict)


VADER = Transport("vader", "vader,self")


def velo(policy, slots=0):
    """Velo under a policy; 0 slots: as many as it takes by itself."""
    name = f"velo {policy}" + (f" {slots}" if slots else "")
    return Transport(name, "velo", {"btl_velo_flow_control": policy, "btl_velo_slots_per_peer": slots})


class JobFailed(Exception):
    """Its text says what ran and how it ended."""


class Launcher:
    """`build`: a directory where Velo has been built."""

    def __init__(self, build):
        build = build.resolve()
        plugin = build / "mca_btl_velo.so"
        if not plugin.exists():
            raise NotFound(f"{plugin} is not there: build Velo in {build}, or name another directory with --build")
        self.bench = build / "contrib/benchmark/velo-mpi-bench"
        stage = build / "stage-prove"
        stage.mkdir(exist_ok=True)
        # By rename: another job may have the old file mapped.
        copy = stage / f"plugin.{os.getpid()}"
        shutil.copy(plugin, copy)
        copy.rename(stage / plugin.name)
        self._mpirun = find_mpirun(None)
        info = beside(self._mpirun, "ompi_info")
        if info is None:
            raise NotFound(f"there is no ompi_info beside {self._mpirun}")
        paths = subprocess.run([info, "--path", "pkglibdir", "--parsable"], capture_output=True, text=True, check=True).stdout
        self._environment = {
            **environment(), "OMPI_MCA_mca_base_component_path": f"{stage}:{paths.split(':')[-1].strip()}",
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

    def run(self, transport, ranks, program, directory, limit_s, stdin=None):
        """Output and seconds. Raises JobFailed."""
        parameters = {"mpi_yield_when_idle": 1, "pml": "ob1", "btl": transport.btl, **transport.parameters}
        command = [self._mpirun, "--oversubscribe", "--bind-to", "none", *mca_words(parameters), "-np", str(ranks), *map(str, program)]
        ended = run_limited(command, self._environment, limit_s, directory, stdin or subprocess.DEVNULL, merged=True)
        if failure := ended.failure(limit_s):
            raise JobFailed(f"{failure}: {shell_line(command)}\n{ended.stdout[-1500:]}")
        return ended.stdout, ended.seconds
