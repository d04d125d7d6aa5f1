"""contrib/check, in a tree whose configure makes a Makefile that does nothing but fail where a test says so."""

import pathlib
import re
import shutil
import subprocess

import pytest

CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib"
# What is made is told with its directory; FAILS: a target, or a word in what check-mpi is given.
CONFIGURE = r"""#!/bin/sh
cat >Makefile <<'END'
MPI_TESTS = of-mpi
MTL_TESTS = of-mtl
TOOL_TESTS = of-tools
%:
	@echo "made $@ in $(notdir $(CURDIR))"; test "$@" != "$(FAILS)"
check-mpi:
	@echo "tested in $(notdir $(CURDIR)): $(MPI_TESTS) $(MTL_TESTS) with $(PYTEST_ARGS)"; \
		case "$(notdir $(CURDIR)) $(MPI_TESTS) $(MTL_TESTS)" in *"$(or $(FAILS),!)"*) exit 1 ;; esac
test/thread_tests:
	@mkdir -p test && echo 'echo threads tested' >$@ && chmod +x $@
END
"""
PARTS = {"unit", "schedules", "mpi", "mtl", "tools"}
ONLY_WITH_ALL = {"threads", "checked", "distcheck"}


@pytest.fixture
def check(tmp_path):
    (tmp_path / "contrib" / "dev").mkdir(parents=True)
    for name in ("check", "dev/check.mk"):
        shutil.copy(CONTRIB / name, tmp_path / "contrib" / name)
    for name, text in (("contrib/install-deps", "#!/bin/sh\n"), ("configure", CONFIGURE)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def run(*arguments, **environment):
        words = ["env", "-u", "MAKEFLAGS", "-u", "VELO_CHECK_PARTS", *(f"{key}={value}" for key, value in environment.items()),
                 tmp_path / "contrib" / "check", *arguments]
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)

    return run


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
    result = check("-k", "one or other", VELO_CHECK_PARTS="checked threads")
    assert result.returncode == 0, result.stdout + result.stderr
    assert words_of(tmp_path, "checked") == f"tested in checked: {tmp_path}/test/mpi  with '-k' 'one or other' --policies lazy"
    assert "threads tested" in result.stdout


def test_all_leaves_nothing_out(check, tmp_path):
    result = check("--all")
    assert result.returncode == 0, result.stdout + result.stderr
    assert PARTS | ONLY_WITH_ALL <= outcomes(result).keys()
    assert words_of(tmp_path, "mpi").endswith("with --all ")
    assert words_of(tmp_path, "checked") == (f"tested in checked: {tmp_path}/test/mpi {tmp_path}/test/mpi "
                                           "with --all --policies dynamic,lazy")
    assert "made check-TESTS in threads" in (tmp_path / "build-check" / "threads.log").read_text()


def test_a_part_that_fails_stops_no_other_and_is_shown_last(check):
    result = check(FAILS="of-mtl")
    assert result.returncode == 1
    assert {part for part, outcome in outcomes(result).items() if outcome == "FAILED"} == {"mtl"}
    assert PARTS <= outcomes(result).keys()
    *_, last = result.stdout.split("--- ")
    assert last.startswith("mtl FAILED\n") and "tested in build-check:  of-mtl" in last


def test_what_cannot_be_built_is_not_tested(check):
    result = check(FAILS="stage-plugin")
    assert result.returncode == 1 and outcomes(result) == {"plugin": "FAILED"}
    assert "--- plugin FAILED\n" in result.stdout and "made stage-plugin in build-check\n" in result.stdout


def test_parts_are_chosen_by_name(check):
    result = check(VELO_CHECK_PARTS="mtl")
    assert result.returncode == 0 and outcomes(result) == {"plugin": "passed", "mtl": "passed"}
    result = check(VELO_CHECK_PARTS="mtl nonsense")
    assert result.returncode == 2 and "nonsense is none of unit, schedules" in result.stderr


def test_the_help_names_every_part(check):
    text = check("--help").stdout
    assert set(re.findall(r"^  (\w+) {2,}", text, re.MULTILINE)) == PARTS | ONLY_WITH_ALL | {"user"} and "--all" in text
