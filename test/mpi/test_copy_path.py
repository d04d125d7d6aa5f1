"""Large messages where the kernel lets no process read another one's memory."""

import shutil
import subprocess

import pytest

from flows import every_flow, flows, velo_only

pytestmark = velo_only
SIZES = [0, 1, 56, 4096, 5000, 32_768, 100_000, (1 << 20) + 3]
FORCED = {"btl_velo_single_copy_mechanism": "cma"}
COPY = {"btl_velo_single_copy_mechanism": "copy"}
PARAMETER = "btl_velo_single_copy_mechanism"


@pytest.fixture
def filtered(mpi):
    """Words before a program that take the right away from it."""
    return [mpi.program("without_cma")]


@pytest.fixture
def deadly(mpi):
    """Words before a program that the kernel kills when it tries."""
    return [mpi.program("without_cma"), "--kill"]


@pytest.fixture(scope="session")
def user_namespace():
    """Words before a program that put it into a user namespace of its own."""
    words = ["unshare", "--user", "--map-current-user"]
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip("user namespaces are not permitted here")
    return words


def quiet(result):
    """The fallback is a matter of course: no word about it by default."""
    assert result.stderr == "", str(result)
    return result.facts()


@every_flow(4, 64)
def test_all_sizes_pass_with_copy_asked_for(mpi, flow):
    result = mpi.run("datatypes", *SIZES, params={**flow.params, **COPY})
    assert quiet(result) == {"exchanges": 9 * len(SIZES)}


@every_flow(4, 64)
def test_all_sizes_pass_where_the_kernel_refuses(mpi, flow, filtered):
    result = mpi.run("datatypes", *SIZES, params=flow.params, before=filtered)
    assert quiet(result) == {"exchanges": 9 * len(SIZES)}


@flows(8)
def test_messages_are_copied_where_the_kernel_kills(mpi, flow, deadly):
    result = mpi.run("exchange", 5, 300_000, np=3, params=flow.params, before=deadly)
    assert quiet(result) == {"rounds": 5, "received": 160}


@flows(8)
def test_cma_asked_for_where_the_kernel_kills_ends_with_the_parameter_named(mpi, flow, deadly):
    result = mpi.run_any("exchange", 5, 300_000, np=3, params={**flow.params, **FORCED}, before=deadly)
    assert result.returncode != 0
    assert f"{PARAMETER} is cma, but a seccomp filter kills" in result.stderr, str(result)


@pytest.mark.parametrize("first", [True, pytest.param(False, marks=pytest.mark.slow)])
@every_flow(8)
def test_one_rank_with_the_right_and_one_without(mpi, flow, filtered, first):
    program = [mpi.program("exchange"), "5", "300000"]
    parts = [(1, [*filtered, *program]), (1, program)]
    result = mpi.run_parts(parts if first else parts[::-1], params=flow.params)
    assert result.returncode == 0, str(result)
    assert quiet(result) == {"rounds": 5, "received": 80}


@flows(8)
def test_ranks_in_user_namespaces_of_their_own(mpi, flow, user_namespace):
    result = mpi.run("exchange", 5, 300_000, np=3, params=flow.params, before=user_namespace)
    assert quiet(result) == {"rounds": 5, "received": 160}


@flows(8)
def test_cma_asked_for_where_the_kernel_refuses_ends_with_the_parameter_named(mpi, flow, filtered):
    result = mpi.run_any("exchange", 5, 300_000, np=3, params={**flow.params, **FORCED}, before=filtered)
    assert result.returncode != 0
    assert PARAMETER in result.stderr, str(result)
