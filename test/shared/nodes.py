"""Nodes on this machine (contrib/nodes)."""

import os
import pathlib
import subprocess

import pytest

NODES = str(pathlib.Path(__file__).parents[2] / "contrib" / "nodes")
SECONDS = 60


def call(*words, **keywords):
    return subprocess.run([NODES, *map(str, words)], capture_output=True, text=True, timeout=SECONDS, check=False, **keywords)


@pytest.fixture(scope="session")
def nodes_permitted():
    result = call("run", "-n", 1, "--", "true")
    if "no namespaces permitted" in result.stderr:
        pytest.skip(f"no namespaces permitted here: {result.stderr.strip()}")
    assert result.returncode == 0, result.stderr


class Cluster:
    """Words that put an mpirun onto nodes of its own, and what can happen to these nodes meanwhile."""

    def __init__(self, name):
        self.name = name

    def prefix(self, nodes=2, slots=2):
        return [NODES, "run", "--name", self.name, "-n", str(nodes), "--slots", str(slots), "--"]

    def fault(self, node, *what):
        subprocess.run([NODES, "fault", "--name", self.name, node, *map(str, what)], check=True, timeout=20)

    def remove(self):
        """Takes away what a run that had to be killed has left."""
        subprocess.run([NODES, "down", "--name", self.name], check=True, timeout=20)

    def processes(self, node, program):
        """Ids of the processes on a node that execute the program."""
        state = pathlib.Path(f"/tmp/velo-nodes-{os.getuid()}-{self.name}")
        home = os.stat(f"/proc/{(state / 'node' / node).read_text()}/ns/net").st_ino
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if os.path.basename(words[0]).decode() == program and os.stat(entry / "ns/net").st_ino == home:
                    found.append(int(entry.name))
            except OSError:
                pass
        return found


@pytest.fixture
def cluster(nodes_permitted):
    nodes = Cluster(f"mpi{os.getpid()}")
    yield nodes
    nodes.remove()
