"""Runs an MPI program over Velo as it is in a build directory, or over vader."""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


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
        plugin = build / ".libs/mca_btl_velo.so"
        if not plugin.exists():
            raise FileNotFoundError(f"{plugin} is not there: build Velo in {build}, or name another directory with --build")
        self.bench = build / "contrib/benchmark/velo-mpi-bench"
        stage = build / "stage-prove"
        stage.mkdir(exist_ok=True)
        # By rename: another job may have the old file mapped.
        copy = stage / f"plugin.{os.getpid()}"
        shutil.copy(plugin, copy)
        copy.rename(stage / plugin.name)
        self._mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        info = shutil.which("ompi_info.openmpi") or shutil.which("ompi_info")
        if self._mpirun is None or info is None:
            raise FileNotFoundError("mpirun and ompi_info of Open MPI are not on PATH")
        paths = subprocess.run([info, "--path", "pkglibdir", "--parsable"], capture_output=True, text=True, check=True).stdout
        self._environment = {
            **os.environ, "OMPI_MCA_mca_base_component_path": f"{stage}:{paths.split(':')[-1].strip()}",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

    def run(self, transport, ranks, program, directory, limit_s, stdin=None):
        """Output and seconds. Raises JobFailed."""
        command = [self._mpirun, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "--mca", "pml", "ob1",
                   "--mca", "btl", transport.btl]
        for name, value in transport.parameters.items():
            command += ["--mca", name, str(value)]
        command += ["-np", str(ranks), *map(str, program)]
        started = time.monotonic()
        with subprocess.Popen(command, cwd=directory, env=self._environment, stdin=stdin or subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              start_new_session=True) as process:
            try:
                output, _ = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired as error:
                os.killpg(process.pid, signal.SIGKILL)
                raise JobFailed(f"still running after {limit_s} s: {' '.join(command)}") from error
        if process.returncode != 0:
            raise JobFailed(f"exit status {process.returncode}: {' '.join(command)}\n{output[-1500:]}")
        return output, time.monotonic() - started
