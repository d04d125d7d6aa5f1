"""Each command in Python is contrib/velo/command under its own name, a link or, out of the source package, a copy."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib"
COMMAND = (CONTRIB / "velo/command").read_bytes()
COMMANDS = sorted(path for path in CONTRIB.glob("*/*") if path.is_file() and path != CONTRIB / "velo/command" and path.read_bytes() == COMMAND)
# Former names, which still work, and what they are called now.
FORMER = {"velo-compare": "velo-measure policies", "velo-lab": "velo-measure papers", "velo-versus": "velo-measure transports"}
USERS = {*FORMER, "velo-info", "velo-measure", "velo-pvars", "velo-sim-plot", "velo-trace"}
DEVELOPERS = {"applications", "measured", "mutate", "oversubscription", "papers", "velo-mpich-suite", "velo-prove"}


def test_there_are_those_of_users_and_those_of_developers():
    assert {path.name for path in COMMANDS} == USERS | DEVELOPERS
    assert {path.name for path in COMMANDS if path.parent.name == "dev"} == DEVELOPERS


def usage(command, *words):
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, command, *words, "--help"], capture_output=True, text=True, timeout=60, check=True, env=environment).stdout


@pytest.mark.parametrize("command", COMMANDS, ids=lambda path: path.name)
def test_a_command_answers_by_its_name(command):
    name = FORMER.get(command.name, command.name.replace("sim-plot", "sim plot"))  # which velo-sim calls
    assert usage(command).startswith(f"Usage: {name} ")


def test_a_copy_of_a_command_answers_as_well(tmp_path):
    command = COMMANDS[0]
    copied = tmp_path / "contrib" / "somewhere" / command.name
    copied.parent.mkdir(parents=True)
    shutil.copy(command, copied)
    (tmp_path / "contrib" / "velo").symlink_to(CONTRIB / "velo")
    assert usage(copied) == usage(command)


def test_a_command_leaves_nothing_beside_its_package(tmp_path):
    shutil.copytree(CONTRIB / "velo", tmp_path / "velo", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "bin").mkdir()
    shutil.copy(CONTRIB / "velo/command", tmp_path / "bin/velo-info")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, tmp_path / "bin/velo-info", "--help"], capture_output=True, check=True, timeout=60, env=environment)
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_python_package_that_is_missing_is_named_and_not_traced(tmp_path):
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n")
    run = subprocess.run([sys.executable, CONTRIB / "trace/velo-trace", "info", tmp_path], capture_output=True, text=True, timeout=60,
                         env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"})
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "velo-trace: No module named 'numpy'; on Debian: apt-get install python3-numpy\n"


def test_the_number_of_ranks_has_one_name_and_its_alias():
    for words in (["policies"], ["transports"], ["papers", "run"]):
        told = usage(CONTRIB / "measure/velo-measure", *words)
        assert told.startswith(f"Usage: velo-measure {' '.join(words)} ") and "--np" in told and "--ranks" in told, words
