"""Fixtures of the tests with real mpirun runs.

VELO_COMPONENT_DIR  directory with the plugin under test; unset: where Open MPI finds it by itself
VELO_TEST_BTL       transport under test, velo unless set
VELO_TEST_LAYER     mtl: through pml cm and the MTL; btl unless set
MPICC, MPIRUN       of that Open MPI, mpicc.openmpi and mpirun.openmpi unless set
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from compiled import Programs
from flows import LAYER, TRANSPORT
from launcher import Launcher, Run, run_command
from series import Together
from shared_memory import PrivateShm

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "shared"))

from nodes import cluster, nodes_permitted  # noqa: E402, F401
MPICC = os.environ.get("MPICC", "mpicc.openmpi")
OMPI_INFO = os.environ.get("OMPI_INFO", "ompi_info.openmpi" if shutil.which("ompi_info.openmpi") else "ompi_info")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The compiled test programs, beside the build that is tested, so that they are compiled once."""
    build = os.environ.get("VELO_BUILD_DIR")
    kept = pathlib.Path(build, "test", "programs") if build and os.access(build, os.W_OK) else None
    return Programs(MPICC, kept or tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="session")
def component_path():
    """Search path with the plugin first, or nothing if it is installed."""
    directory = os.environ.get("VELO_COMPONENT_DIR")
    if not directory:
        return None
    paths = subprocess.run([OMPI_INFO, "--path", "pkglibdir", "--parsable"], capture_output=True, text=True, check=True)
    return f"{os.path.abspath(directory)}:{paths.stdout.strip().rpartition(':')[2]}"


@pytest.fixture(scope="session")
def mpi(programs, component_path):
    """Runs programs under mpirun."""
    # Short: Open MPI puts sockets below it.
    with tempfile.TemporaryDirectory(prefix="velo-", ignore_cleanup_errors=True) as temporary:
        yield Launcher(TRANSPORT, component_path, temporary, programs, LAYER)


@pytest.fixture(scope="session")
def together():
    return Together()


@pytest.fixture
def facts(request, mpi, together):
    """What the case of this test has printed, in one job with the others that have all else alike."""

    def run(**how):
        return together.facts(request.node, mpi, **how)

    return run


@pytest.fixture(scope="session")
def ompi_info(mpi):
    def run(*arguments):
        return run_command([OMPI_INFO, *arguments], mpi.environment())

    return run


@pytest.fixture(scope="session")
def is_4_1(ompi_info):
    """The oldest Open MPI; later ones have another launcher, and Debian's later ones newer compilers."""
    return ompi_info("--version").stdout.startswith("Open MPI v4.1.")


@pytest.fixture(scope="session")
def needs_mtl(ompi_info):
    if "mca:mtl:velo:" not in ompi_info("--param", "mtl", "velo", "--parsable", "-l", "9").stdout:
        pytest.skip("this Open MPI was built without any MTL")


@pytest.fixture
def start(mpi):
    """Starts a run that the test watches; ended with the test at the latest."""
    runs = []

    def begin(*arguments, **keywords) -> Run:
        runs.append(mpi.start(*arguments, **keywords))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()


@pytest.fixture(scope="session")
def pid_namespace():
    """Words before a program that put it into a PID namespace of its own, in which it is process 1."""
    words = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-current-user"]), "--pid", "--fork", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no PID namespaces permitted here (unshare --pid)")
    return words


@pytest.fixture(scope="session")
def without_proc():
    """Words before a program that take /proc away."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = ["unshare", *user, "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no mounts permitted here: {tried.stderr.strip()}")
    return words


@pytest.fixture
def private_shm():
    """Makes a /dev/shm of its own for one job: what is left in it can only be of that job."""
    namespaces = []

    def make(size="1g"):
        namespaces.append(PrivateShm.open(size))
        return namespaces[-1]

    yield make
    for namespace in namespaces:
        namespace.close()
