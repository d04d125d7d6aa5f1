"""contrib/demo in a tree where all that it calls only writes down that it was called."""

import os
import pathlib
import re
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
    for path in (tree / "contrib" / "install-deps", tree / "configure", tmp_path / "bin" / "make", home / ".local" / "bin" / "velo-measure"):
        stub(path)
    stub(tmp_path / "bin" / "id", "echo 1000")
    shutil.copy(ROOT / "contrib" / "demo", tree / "contrib")
    (tree / "contrib" / "velo").symlink_to(ROOT / "contrib" / "velo")

    def run(*arguments, status=0):
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        environment = os.environ | {"CALLS": str(calls), "HOME": str(home), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run([tree / "contrib" / "demo", *arguments], env=environment, cwd=tmp_path, timeout=60, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return calls.read_text().splitlines() if calls.exists() else [], done.stderr

    return run


def test_the_first_picture_comes_before_the_whole_suite(demo):
    calls, told = demo()
    assert [call.split()[0] for call in calls] == ["install-deps", "configure", *["make"] * 3, "velo-measure", "velo-measure"]
    assert re.findall(r"demo: (\d) of 5, after 0:\d\d: ", told) == ["1", "2", "3", "4", "5"], told
    assert calls[-2:] == ["velo-measure papers run overview --quick --output results", "velo-measure policies"]


def test_quick_ends_with_the_picture(demo):
    calls, told = demo("--quick")
    assert calls[-1].startswith("velo-measure papers") and "demo: 4 of 4" in told


def test_whoever_says_what_to_compare_gets_that_alone(demo):
    assert [call for call in demo("--np", "4")[0] if call.startswith("velo-measure policies")] == ["velo-measure policies --np 4"]


def test_a_second_time_nothing_is_configured(demo):
    demo()
    assert not [call for call in demo()[0] if call.startswith("configure")]


def test_wrong_arguments_are_told_before_anything_is_built(demo):
    calls, told = demo("--rounds", "none", status=2)
    assert calls == [] and "--rounds" in told


def test_a_build_tells_how_much_is_done_and_ends_where_it_fails(demo, tmp_path):
    (tmp_path / "bin" / "make").write_text("""#!/bin/sh
case $1 in
-n) echo 'echo "  CXX     " a;g++'; echo 'echo "  CC      " b;gcc' ;;
-j) echo "  CXX      a"; sleep 1; echo "  CC       b"; echo "b: error"; exit 1 ;;
esac
""")
    calls, told = demo(status=1)
    assert "demo:   file 1 of 2, 0:0" in told and "b: error" in told and not any("velo-measure policies" in call for call in calls)
