"""Finds mpirun and the benchmark program."""

import importlib
import os
import shutil
import sys
from pathlib import Path

from .command import Trouble

OWN_BENCHMARK = "velo-mpi-bench"


class NotFound(Trouble):
    pass


def plotter(package, otherwise=", or use --no-plot"):
    """write_plot of a command's module plot, which needs matplotlib."""
    try:
        return importlib.import_module(f"{package}.plot").write_plot
    except ImportError as error:
        raise NotFound(f"{error}; on Debian 12: apt-get install python3-matplotlib{otherwise}") from error


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


def _program(origin, name):
    if path := shutil.which(name):
        return str(Path(path).absolute())
    raise NotFound(f"{origin} {name}: no such program")


def find_own(option, given, own=OWN_BENCHMARK, folder="benchmark"):
    """A program of Velo's: the one given, on PATH, beside this program, or in the build directory that this is run from."""
    if given:
        return _program(option, given)
    here = Path(sys.argv[0]).resolve().parent
    folders = (here, here.parent / folder, Path.cwd(), Path.cwd() / "contrib" / folder)
    for name in [own] + [str(place / own) for place in folders]:
        if path := shutil.which(name):
            return str(Path(path).absolute())
    raise NotFound(f"{own} not found; build and install Velo, or name it with {option}")


def find_bench(given):
    """--bench, else $IMB_MPI1, else IMB-MPI1 on PATH, else Velo's own."""
    for origin, name in (("--bench", given), ("$IMB_MPI1", os.environ.get("IMB_MPI1"))):
        if name:
            return _program(origin, name)
    if path := shutil.which("IMB-MPI1"):
        return str(Path(path).absolute())
    return find_own("--bench", None)
