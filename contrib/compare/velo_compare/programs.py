"""Finds mpirun and the benchmark program."""

import os
import shutil
from pathlib import Path

OWN_BENCHMARK = "velo-mpi-bench"


class NotFound(RuntimeError):
    pass


def no_matplotlib(error):
    return NotFound(f"{error}; on Debian 12: apt-get install python3-matplotlib, or use --no-plot")


def find_mpirun(given):
    """Open MPI's mpirun: the one given, or Debian's name for it, or the one on PATH."""
    for name in [given] if given else ["mpirun.openmpi", "mpirun"]:
        if path := shutil.which(name):
            return path
    raise NotFound(f"{given or 'mpirun'} not found; on Debian 12: apt-get install openmpi-bin")


def beside(mpirun, tool, given=None):
    """A tool of the same installation: mpicc.openmpi for mpirun.openmpi, in the same directory before elsewhere."""
    if given:
        return shutil.which(given)
    path = Path(mpirun)
    suffix = path.name.removeprefix("mpirun")
    for name in (path.with_name(tool + suffix), path.with_name(tool), f"{tool}.openmpi", tool):
        if found := shutil.which(str(name)):
            return found
    return None


def find_program(name, option, given, beside_folders):
    """A program of Velo's: the one given, on PATH, or in one of the folders."""
    if given:
        if path := shutil.which(given):
            return str(Path(path).absolute())
        raise NotFound(f"{option} {given}: no such program")
    for candidate in [name] + [str(folder / name) for folder in beside_folders]:
        if path := shutil.which(candidate):
            return str(Path(path).absolute())
    raise NotFound(f"{name} not found; build and install Velo, or name it with {option}")


def find_bench(given, script_directory):
    """--bench, else $IMB_MPI1, else IMB-MPI1 on PATH, else Velo's own benchmark: on PATH, beside this program, or
    in the build directory that this is run from."""
    for origin, name in (("--bench", given), ("$IMB_MPI1", os.environ.get("IMB_MPI1"))):
        if name:
            if path := shutil.which(name):
                return str(Path(path).absolute())
            raise NotFound(f"{origin} {name}: no such program")
    beside = (script_directory, Path.cwd(), Path.cwd() / "contrib" / "benchmark")
    candidates = ["IMB-MPI1", OWN_BENCHMARK] + [str(folder / OWN_BENCHMARK) for folder in beside]
    for name in candidates:
        if path := shutil.which(name):
            return str(Path(path).absolute())
    raise NotFound(f"neither IMB-MPI1 nor {OWN_BENCHMARK} found; build and install Velo, or name one with --bench")
