"""contrib/demo in a tree where all that it calls only writes down that it was called."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def demo(tmp_path):
    """Runs it for an ordinary user, and returns the calls in their order."""

    def stub(path, *lines):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["#!/bin/sh", *(lines or ['echo "${0##*/} $*" >> "$CALLS"'])]) + "\n")
        path.chmod(0o755)

    tree, home = tmp_path / "tree", tmp_path / "home"
    for path in (tree / "contrib" / "install-deps", tree / "configure", tmp_path / "bin" / "make", home / ".local" / "bin" / "velo-compare"):
        stub(path)
    stub(tmp_path / "bin" / "id", "echo 1000")
    shutil.copy(ROOT / "contrib" / "demo", tree / "contrib")

    def run(*arguments):
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        environment = os.environ | {"CALLS": str(calls), "HOME": str(home), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        subprocess.run([tree / "contrib" / "demo", *arguments], env=environment, cwd=tmp_path, timeout=60, check=True)
        return calls.read_text().splitlines()

    return run


def test_the_first_picture_comes_before_the_whole_suite(demo):
    calls = demo()
    assert [call.split()[0] for call in calls] == ["install-deps", "configure", "make", "make", "velo-compare", "velo-compare"]
    assert calls[-2:] == ["velo-compare --quick --output results/quick", "velo-compare "]


def test_whoever_says_what_to_compare_gets_that_alone(demo):
    assert [call for call in demo("--np", "4") if call.startswith("velo-compare")] == ["velo-compare --np 4"]
