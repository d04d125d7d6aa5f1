"""contrib/check, in a tree whose configure makes a Makefile that does nothing but fail where a test says so."""

import contextlib
import pathlib
import re
import shutil
import subprocess
import time

import pytest

CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib"
# What is made is told with its directory; FAILS: a target, or a word in what check-mpi is given.
CONFIGURE = r"""#!/bin/sh
cat >Makefile <<'END'
.SUFFIXES:
MPI_TESTS = of-mpi
MTL_TESTS = of-mtl
TOOL_TESTS = of-tools
%:
	@echo "made $@ in $(notdir $(CURDIR))"; test "$@" != "$(FAILS)"
check-mpi:
	@test "$(SLEEPS)" != mpi || setsid sh -c 'trap "" TERM; echo $$$$ >sleeper; sleep 600'; \
		echo "tested in $(notdir $(CURDIR)): $(MPI_TESTS) $(MTL_TESTS) with $(PYTEST_ARGS)"; \
		case "$(notdir $(CURDIR)) $(MPI_TESTS) $(MTL_TESTS)" in *"$(or $(FAILS),!)"*) exit 1 ;; esac
test/thread_tests test/unit_tests:
	@mkdir -p test && echo 'echo threads tested, "$$@"' >$@ && chmod +x $@
END
"""
CXX_TEST = "TEST(BoardTest, a_write_is_read) {}\nTEST_P(BoardOf, many) {}\n"
PARTS = {"unit", "schedules", "mpi", "mtl", "tools"}
ONLY_WITH_ALL = {"threads", "checked", "distcheck"}


@pytest.fixture
def check(tmp_path):
    (tmp_path / "contrib" / "dev").mkdir(parents=True)
    for name in ("check", "dev/check.mk"):
        shutil.copy(CONTRIB / name, tmp_path / "contrib" / name)
    for name, text in (("contrib/install-deps", "#!/bin/sh\n"), ("configure", CONFIGURE), ("test/unit/board_test.cc", CXX_TEST),
                       ("test/mpi/test_any.py", "CASES = [('exchange', 20)]\ndef test_a_way(way): pass\n"), ("test/mpi/test_btl.py", "pytestmark = velo_only\n"),
                       ("test/lab/test_lab.py", "def test_a_verdict(): pass\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def words(*arguments, **environment):
        return ["env", "-u", "MAKEFLAGS", *(f"{key}={value}" for key, value in environment.items()), tmp_path / "contrib" / "check", *arguments]

    def run(*arguments, **environment):
        return subprocess.run(words(*arguments, **environment), capture_output=True, text=True, timeout=120, check=False)

    run.words = words
    return run


@pytest.fixture
def start(check):
    with contextlib.ExitStack() as runs:
        def begin(*arguments, **environment):
            run = subprocess.Popen(check.words(*arguments, **environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            runs.callback(run.kill)
            return run

        yield begin


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def outcomes(result):
    return dict(re.findall(r"^check: ([\w-]+) (passed|FAILED) after", result.stdout, re.MULTILINE))


def words_of(tmp_path, part):
    (line,) = re.findall(r"^tested in .*", (tmp_path / "build-check" / f"{part}.log").read_text(), re.MULTILINE)
    return line


def test_every_part_runs_and_says_so(check, tmp_path):
    result = check("-k", "one or other")
    assert result.returncode == 0, result.stdout + result.stderr
    assert PARTS <= outcomes(result).keys() and not ONLY_WITH_ALL & outcomes(result).keys()
    assert set(outcomes(result).values()) == {"passed"}
    assert words_of(tmp_path, "mpi") == f"tested in build-check: {tmp_path}/test/mpi  with '-k' 'one or other' "
    assert words_of(tmp_path, "mtl") == "tested in build-check:  of-mtl with '-k' 'one or other' "
    assert words_of(tmp_path, "tools") == "tested in build-check: of-tools  with '-k' 'one or other' "


def test_what_is_left_to_all_has_a_short_form_by_name(check, tmp_path):
    result = check("checked", "threads", "-k", "one or other")
    assert result.returncode == 0, result.stdout + result.stderr
    assert words_of(tmp_path, "checked") == f"tested in checked: {tmp_path}/test/mpi  with '-k' 'one or other' --policies lazy"
    assert "threads tested" in result.stdout


def test_a_file_or_a_case_is_passed_by_its_name(check, tmp_path):
    def ran(*words):
        result = check(*words)
        assert result.returncode == 0, result.stdout + result.stderr
        return {part: text.read_text() for part in outcomes(result) if (text := tmp_path / "build-check" / f"{part}.log")}

    assert ran("test/mpi/test_btl.py").keys() == {"plugin", "mpi"}
    logs = ran("test_any")
    assert logs.keys() == {"plugin", "mpi", "mtl"}
    assert f"tested in build-check:  {tmp_path}/test/mpi/test_any.py with --may-be-empty" in logs["mtl"]
    assert f"tested in build-check: {tmp_path}/test/mpi/test_any.py  with '-k' 'test_a_way[x-1]' " in ran("test_a_way[x-1]")["mpi"]
    assert f"tested in build-check: {tmp_path}/test/mpi  with '-k' 'exchange-20' " in ran("exchange-20")["mpi"]
    assert f"{tmp_path}/test/lab/test_lab.py  with '-k' 'test_a_verdict' " in ran("test_a_verdict")["tools"]
    assert "threads tested, --gtest_filter=*BoardOf.*:*BoardOf/*:*BoardTest.*:*BoardTest/*\n" in ran("board_test.cc")["cases"]
    assert "threads tested, --gtest_filter=*a_write_is_read*\n" in ran("a_write_is_read")["cases"]


def test_who_is_stopped_leaves_no_process(check, tmp_path, start):
    """Even one in a session of its own that does not end when it is asked to."""
    run = start(SLEEPS="mpi")
    sleeper = tmp_path / "build-check" / "sleeper"
    until(lambda: sleeper.exists() and sleeper.read_text().strip())
    run.terminate()
    assert run.wait(60) == 130
    until(lambda: not pathlib.Path("/proc", sleeper.read_text().strip()).exists())  # as soon as it has been waited for


def test_all_leaves_nothing_out(check, tmp_path):
    result = check("--all")
    assert result.returncode == 0, result.stdout + result.stderr
    assert PARTS | ONLY_WITH_ALL <= outcomes(result).keys()
    assert words_of(tmp_path, "mpi").endswith("with --all ")
    assert words_of(tmp_path, "checked") == (f"tested in checked: {tmp_path}/test/mpi {tmp_path}/test/mpi "
                                           "with --all --policies dynamic,lazy")
    assert "made check-TESTS in threads" in (tmp_path / "build-check" / "threads.log").read_text()


def test_a_part_that_fails_is_shown_at_once_and_stops_no_other(check):
    result = check(FAILS="of-mtl")
    assert result.returncode == 1
    assert {part for part, outcome in outcomes(result).items() if outcome == "FAILED"} == {"mtl"}
    assert PARTS <= outcomes(result).keys()
    (shown,) = re.findall(r"^--- mtl FAILED\n(.*?)^check: mtl FAILED after", result.stdout, re.MULTILINE | re.DOTALL)
    assert "tested in build-check:  of-mtl" in shown
    assert re.search(r"^check: FAILED after \d+ s: mtl ", result.stdout, re.MULTILINE)


def test_what_cannot_be_built_is_not_tested(check):
    result = check(FAILS="stage-plugin")
    assert result.returncode == 1 and outcomes(result) == {"plugin": "FAILED"}
    assert "--- plugin FAILED\n" in result.stdout and "made stage-plugin in build-check\n" in result.stdout


def test_parts_are_chosen_by_name(check):
    result = check("mtl")
    assert result.returncode == 0 and outcomes(result) == {"plugin": "passed", "mtl": "passed"}
    assert "check: mtl begins\n" in result.stdout and re.search(r"check: mtl, \d min the last time\n", check("mtl").stdout)


def test_the_help_names_every_part(check):
    text = check("--help").stdout
    assert set(re.findall(r"^  (\w+) {2,}", text, re.MULTILINE)) == PARTS | ONLY_WITH_ALL | {"user"} and "--all" in text
