"""Processes of one job that have different builds of the plugin."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

import worked_example
from flows import flows, velo_only
from test_hygiene import assert_empty

pytestmark = velo_only
PATH = "OMPI_MCA_mca_base_component_path"
LAYOUT = re.compile(rb"VELO\d\d(?=\0\0)")


@pytest.fixture(scope="session")
def tested(component_path):
    """The directory of the plugin under test."""
    if component_path is None:
        pytest.skip("the plugin is installed")
    return pathlib.Path(component_path.split(":")[0])


@pytest.fixture(scope="session")
def path_with(component_path, tested):
    def path(directory):
        return component_path.replace(str(tested), str(directory), 1)

    return path


def marked(plugin, old, new):
    """The plugin with another name for a layout, wherever it compares or tells it."""
    changed = plugin.replace(old, new)
    assert changed != plugin
    return changed


@pytest.fixture(scope="session")
def other_layout(tested, tmp_path_factory):
    """A directory with a plugin whose shared memory is laid out in another way, as it says."""
    directory = tmp_path_factory.mktemp("other")
    directory.chmod(0o755)
    plugin = (tested / "mca_btl_velo.so").read_bytes()
    for old in set(LAYOUT.findall(plugin)):
        plugin = marked(plugin, old, b"VELO99")
    (directory / "mca_btl_velo.so").write_bytes(plugin)
    return directory


@pytest.fixture(scope="session")
def other_network(tested, tmp_path_factory):
    """The same for what goes to other nodes."""
    directory = tmp_path_factory.mktemp("network")
    (directory / "mca_btl_velo.so").write_bytes(marked((tested / "mca_btl_velo.so").read_bytes(), b"VELOcx02", b"VELOcx99"))
    return directory


def assert_both_named(result, ours, theirs):
    assert result.returncode != 0
    told = re.search(r'rank \d+ runs another build of Velo: its address has the layout "(\w+)" \(\d+ bytes\), '
                     r'that of this process would have "(\w+)"', result.stderr)
    assert told, str(result)
    assert {told[1], told[2]} == {ours, theirs}
    assert "Install the same version of Velo on all nodes" in result.stderr


def own_layout(tested):
    (name,) = set(LAYOUT.findall((tested / "mca_btl_velo.so").read_bytes()))
    return name.decode()


@pytest.mark.parametrize("first", [True, False])
@flows(8, policies=("dynamic", "lazy"))
def test_two_ranks_of_a_node_with_different_layouts(mpi, flow, tested, other_layout, path_with, private_shm, first):
    shm = private_shm()
    program = [mpi.program("exchange"), "5", "300000"]
    parts = [(1, ["-x", f"{PATH}={path_with(other_layout)}", *program]), (1, program)]
    result = mpi.run_parts(parts if first else parts[::-1], params=flow.params, prefix=shm.enter)
    assert_both_named(result, own_layout(tested), "VELO99")
    assert_empty(shm)


def on_node2(environment):
    """Words before a program that set a variable there."""
    return ["sh", "-c", f'if [ "$(hostname)" = node2 ]; then export {shlex.quote(environment)}; fi; exec "$0" "$@"']


@flows(8, policies=("dynamic",))
def test_two_nodes_with_different_layouts_of_the_network(mpi, flow, other_network, path_with, cluster):
    result = mpi.run_any("exchange", 1, 100, np=2, params=flow.params, prefix=cluster.prefix(2, 1),
                         before=on_node2(f"{PATH}={path_with(other_network)}"))
    assert_both_named(result, "VELOcx02", "VELOcx99")


@pytest.fixture(scope="session")
def built_again(tmp_path_factory):
    """A directory with a plugin of the same source, compiled with other options."""
    source = pathlib.Path(os.environ.get("VELO_SOURCE_DIR", "nowhere"))
    if not (source / "configure").exists() or (source / "config.status").exists():
        pytest.skip("VELO_SOURCE_DIR names no tree that can be built")
    directory = tmp_path_factory.mktemp("again")
    for words in ([source / "configure", "CXXFLAGS=-O1", "CFLAGS=-O1"], ["make", "-j2", "mca_btl_velo.so"]):
        made = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=900, check=False)
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    return directory


@pytest.mark.slow
@flows(8, policies=("dynamic", "lazy"))
def test_one_source_built_twice(mpi, flow, tested, built_again, path_with):
    assert (built_again / "mca_btl_velo.so").read_bytes() != (tested / "mca_btl_velo.so").read_bytes()
    program = [mpi.program("exchange"), "5", "300000"]
    parts = [(2, ["-x", f"{PATH}={path_with(built_again)}", *program]), (2, program)]
    result = mpi.run_parts(parts, params=flow.params)
    assert result.returncode == 0 and result.facts() == {"rounds": 5, "received": 240}, str(result)


@pytest.mark.slow
@flows(8, policies=("dynamic",))
def test_one_source_built_twice_for_two_nodes(mpi, flow, built_again, path_with, cluster):
    result = mpi.run("exchange", 5, 300_000, np=4, params=flow.params, prefix=cluster.prefix(2, 2), time_limit=120,
                     before=on_node2(f"{PATH}={path_with(built_again)}"))
    assert result.facts() == {"rounds": 5, "received": 240}


@pytest.fixture(scope="session")
def built_with_the_example(tmp_path_factory):
    """A directory with a plugin to which a policy was added."""
    directory = tmp_path_factory.mktemp("added")
    shutil.copytree(worked_example.SOURCE, directory / "tree", symlinks=True, ignore=shutil.ignore_patterns("build*", ".git*", "autom4te.cache"))
    worked_example.apply(directory / "tree")
    (directory / "made").mkdir()
    for words, where in ((["./autogen.sh"], "tree"), (["../tree/configure", "CXXFLAGS=-O1", "CFLAGS=-O1"], "made"),
                         (["make", "-j2", "mca_btl_velo.so"], "made")):
        made = subprocess.run(words, cwd=directory / where, capture_output=True, text=True, timeout=900, check=False)
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    return directory / "made"


@pytest.mark.slow
def test_a_policy_that_was_added_as_its_page_says(mpi, built_with_the_example, path_with):
    program = ["-x", f"{PATH}={path_with(built_with_the_example)}", mpi.program("exchange"), "5", "300000"]
    result = mpi.run_parts([(4, program)], params={"btl_velo_flow_control": worked_example.NAME})
    assert result.returncode == 0 and result.facts() == {"rounds": 5, "received": 240}, str(result)
