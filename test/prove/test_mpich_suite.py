"""velo-mpich-suite: every contestant runs a test equally often, and no failure is forgotten."""

import json
import pathlib
import subprocess

import pytest

COMMAND = pathlib.Path(__file__).resolve().parents[2] / "contrib/dev/velo-mpich-suite"
# Notes each run, and passes unless the n-th run of this transport is named: "velo-btl 1" has its first run fail.
MPIRUN = """#!/bin/sh
case "$*" in *"pml cm"*) name=velo-mtl ;; *vader*) name=vader ;; *) name=velo-btl ;; esac
echo $name >>"$LOG"
[ "$name $(grep -c "$name" "$LOG")" = "$FAILS" ] || echo " No Errors"
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """Runs a suite of one test; `fails`: which run of which contestant."""
    directory = tmp_path / "build" / "pt2pt"
    directory.mkdir(parents=True)
    (directory.parent / "source").write_text(str(directory.parent))
    (directory / "testlist").write_text("sendrecv 2\n")
    for path, text in ((directory / "sendrecv", "#!/bin/sh\n"), (tmp_path / "mpirun", MPIRUN)):
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("LOG", str(tmp_path / "log"))

    def run(*words, fails=""):
        monkeypatch.setenv("FAILS", fails)
        command = [COMMAND, "run", directory.parent, "--mpirun", tmp_path / "mpirun", "--results", tmp_path / "results", *words]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, check=False)
        log = tmp_path / "log"
        return result, log.read_text().split() if log.exists() else []

    run.results = lambda: [json.loads(line) for line in (tmp_path / "results").read_text().splitlines()]
    return run


def test_every_contestant_runs_a_test_equally_often_in_turn(suite):
    result, log = suite("--runs", 3, fails="velo-btl 1")
    assert log == ["vader", "velo-btl", "velo-mtl"] * 3


@pytest.mark.parametrize("run", [1, 2, 3])
def test_a_run_that_fails_with_velo_alone_is_told_however_the_others_end(suite, run):
    result, _ = suite("--runs", 3, fails=f"velo-btl {run}")
    assert result.returncode == 1
    assert "passes 2 times with velo-btl and 3 times with vader, of 3: pt2pt/sendrecv 2" in result.stdout


def test_a_failure_of_vader_is_none_of_velo(suite):
    result, _ = suite("--runs", 2, fails="vader 1")
    assert result.returncode == 0 and "FAILED 1/2 vader" in result.stdout


def test_results_are_kept_and_not_run_again(suite):
    suite("--only", "vader")
    result, log = suite("--runs", 2)
    assert sorted(log) == ["vader", "vader", "velo-btl", "velo-btl", "velo-mtl", "velo-mtl"]
    assert len(suite.results()) == 6 and result.returncode == 0


@pytest.mark.parametrize("words, reason", [(("--filter", "no-such-test"), "no test has that name"), (("--runs", "0"), "no number above 0")])
def test_nothing_to_run_is_an_error(suite, words, reason):
    result, log = suite(*words)
    assert result.returncode != 0 and reason in result.stderr and not log
