"""test/conftest.py: a session tells what it skipped and excused, and fails if nothing ran."""

import pathlib
import shutil
import subprocess
import sys

import pytest

TEST = pathlib.Path(__file__).resolve().parents[1]
TESTS = """
import excuses, pytest

def test_passes(): pass

def test_fails(): assert False

@pytest.mark.parametrize("number", range(3))
def test_skipped(number): pytest.skip("no namespaces permitted here")

@pytest.mark.skipif(True, reason="about another layer")
def test_skipped_by_a_mark(): pass

@pytest.mark.xfail(reason="a defect of Open MPI")
@pytest.mark.parametrize("number", range(2))
def test_expected(number): assert number == 0

def test_excused(): excuses.add("a crash of mpirun")

class Flow:
    def __init__(self, policy): self.policy = policy

lazy = pytest.param(Flow("lazy"), id="lazy", marks=pytest.mark.matrix)

@pytest.mark.parametrize("flow", [pytest.param(Flow("dynamic"), id="dynamic"), lazy])
def test_chosen_flow(flow): pass

@pytest.mark.slow
@pytest.mark.parametrize("flow", [lazy])
def test_chosen_slow(flow): pass

def test_chosen_plain(): pass
"""


@pytest.fixture
def session(tmp_path):
    """Runs some of TESTS."""
    for name in ("conftest.py", "pytest.ini", "shared/excuses.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(TEST / name, tmp_path / name)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "test_sample.py").write_text(TESTS)

    def run(selection, *options):
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", selection, *options]
        return subprocess.run(words, cwd=tmp_path / "below", capture_output=True, text=True, timeout=60, check=False)

    return run


def test_skips_are_told_by_reason_with_their_number(session):
    result = session("passes or skipped")
    assert result.returncode == 0
    assert "     3 skipped: no namespaces permitted here\n     1 skipped: about another layer\nskipped 4, excused 0\n" in result.stdout


def test_excuses_are_told_by_reason_with_their_number(session):
    result = session("excused")
    assert result.returncode == 0 and "     1 excused: a crash of mpirun\nskipped 0, excused 1\n" in result.stdout


def test_what_was_expected_to_fail_is_told(session):
    result = session("passes or expected")
    assert "     1 expected to fail, and did: a defect of Open MPI\n" in result.stdout
    assert "     1 expected to fail, and passed: a defect of Open MPI\n" in result.stdout


@pytest.mark.parametrize("selection", ["skipped", "no_such_test"])
def test_a_session_in_which_nothing_ran_fails_and_says_so(session, selection):
    result = session(selection)
    assert result.returncode == pytest.ExitCode.NO_TESTS_COLLECTED and "nothing was tested" in result.stdout


def test_a_failure_is_a_failure_of_the_session(session):
    result = session("fails or skipped")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED and "nothing was tested" not in result.stdout


@pytest.mark.parametrize("options, ran", [
    ([], {"flow[dynamic]", "plain"}),
    (["--all"], {"flow[dynamic]", "flow[lazy]", "slow[lazy]", "plain"}),
    (["--policies", "lazy"], {"flow[lazy]"}),
    (["--policies", "lazy,dynamic"], {"flow[dynamic]", "flow[lazy]"}),
    (["--policies", "lazy", "--all"], {"flow[lazy]", "slow[lazy]"}),
], ids=str)
def test_the_matrix_and_what_is_slow_run_only_when_asked_for(session, options, ran):
    result = session("chosen", "-vv", *options)
    assert result.returncode == 0, result.stdout
    assert {line.split()[0].rpartition("::test_chosen_")[2] for line in result.stdout.splitlines() if " PASSED" in line} == ran


def test_a_marker_that_is_not_registered_is_an_error(session, tmp_path):
    (tmp_path / "below" / "test_other.py").write_text("import pytest\n@pytest.mark.slwo\ndef test_it(): pass\n")
    assert "'slwo' not found in `markers`" in session("test_it").stdout
