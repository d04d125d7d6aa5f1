"""A set of nodes (contrib/nodes), gone with the test."""

import os
import pathlib
import subprocess

import pytest

NODES = str(pathlib.Path(__file__).parents[2] / "contrib" / "nodes")
SECONDS = 60


def call(*words, **keywords):
    return subprocess.run([NODES, *map(str, words)], capture_output=True, text=True, timeout=SECONDS, check=False, **keywords)


@pytest.fixture(scope="session")
def permitted():
    result = call("run", "-n", 1, "--", "true")
    if "no namespaces permitted" in result.stderr:
        pytest.skip(f"no namespaces permitted here: {result.stderr.strip()}")
    assert result.returncode == 0, result.stderr


@pytest.fixture
def bed(permitted):
    """Two nodes that stay; calls contrib/nodes for them."""
    name = f"test{os.getpid()}"

    def act(action, *arguments):
        result = call(action, "--name", name, *arguments)
        return result

    result = act("up", "-n", 2)
    assert result.returncode == 0, result.stderr
    yield act
    act("down")
