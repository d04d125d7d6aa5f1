"""A set of nodes (contrib/nodes), gone with the test."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shared"))

from nodes import call, nodes_permitted  # noqa: E402, F401


@pytest.fixture
def bed(nodes_permitted):  # noqa: F811
    """Two nodes that stay; calls contrib/nodes for them."""
    name = f"test{os.getpid()}"

    def act(action, *arguments):
        return call(action, "--name", name, *arguments)

    result = act("up", "-n", 2)
    assert result.returncode == 0, result.stderr
    yield act
    act("down")
