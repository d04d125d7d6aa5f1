"""As ordinary users run it: processes that may not look into each other."""

import os
import shutil
import stat
import subprocess

import pytest

from flows import every_flow, flows, velo_only
from test_hygiene import assert_empty

pytestmark = velo_only
CONCEALED = "VELO_TEST_CONCEALED"
SIZES = (5, 300_000)


@pytest.fixture(scope="session")
def without_rights():
    """Words before a program that leave to root what an ordinary user may do with root's processes."""
    # What comes after env has none of root's capabilities when it is executed.
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "env"] if os.geteuid() == 0 else []


def assert_exchanged(result, np):
    assert result.facts() == {"rounds": SIZES[0], "received": SIZES[0] * 16 * (np - 1)}
    assert result.stderr == "", str(result)


@every_flow(8)
def test_processes_that_are_not_dumpable_reach_each_other(mpi, flow, without_rights, private_shm):
    shm = private_shm()
    result = mpi.run("exchange", *SIZES, np=4, params=flow.params, env={CONCEALED: "1"}, before=without_rights,
                     prefix=shm.enter)
    assert_exchanged(result, 4)
    assert_empty(shm)


@pytest.mark.parametrize("first", [True, False])
@flows(8, policies=("dynamic", "lazy"))
def test_one_process_that_is_not_dumpable_among_others(mpi, flow, without_rights, first):
    words = [*without_rights, mpi.program("exchange"), *SIZES]
    parts = [(1, ["-x", f"{CONCEALED}=1", *words]), (2, words)]
    result = mpi.run_parts(parts if first else parts[::-1], params=flow.params)
    assert result.returncode == 0, str(result)
    assert_exchanged(result, 3)


@pytest.fixture
def sandboxed(mpi):
    """Words before a program that put it into a sandbox of its own."""
    words = [mpi.program("sandboxed")]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no sandboxes (Landlock, Linux 5.19) here: {tried.stderr.strip()}")
    return words


@every_flow(8)
def test_ranks_in_sandboxes_of_their_own(mpi, flow, sandboxed, private_shm):
    shm = private_shm()
    result = mpi.run("exchange", *SIZES, np=3, params=flow.params, before=sandboxed, prefix=shm.enter)
    assert_exchanged(result, 3)
    assert_empty(shm)


@pytest.mark.slow
@flows(8, policies=("dynamic",))
def test_a_rank_that_may_not_look_into_the_others_says_so(mpi, flow, sandboxed, private_shm):
    """They may look into it, so that nothing tells them of its trouble."""
    shm = private_shm()
    program = [mpi.program("exchange"), *map(str, SIZES)]
    result = mpi.run_parts([(1, [*sandboxed, *program]), (1, program)], params=flow.params, prefix=shm.enter)
    assert result.returncode != 0
    assert "The kernel lets the other process look into this one but not the reverse" in result.stderr, str(result)
    assert_empty(shm)


@flows(8, policies=("dynamic", "lazy"))
def test_an_executable_that_may_not_be_read(mpi, flow, without_rights, tmp_path):
    """The kernel makes its processes not dumpable."""
    os.chmod(tmp_path, 0o755)
    program = shutil.copy(mpi.program("exchange"), tmp_path / "exchange")
    os.chmod(program, stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    result = mpi.run_parts([(3, [*without_rights, str(program), *map(str, SIZES)])], params=flow.params)
    assert result.returncode == 0, str(result)
    assert_exchanged(result, 3)
