"""The worked example of mca_btl_velo/design/adding-a-policy.md, done to a copy of the tree as the page says: it touches the files
that the page names and no other, and passes the tests that every policy gets for nothing."""

import concurrent.futures
import filecmp
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from worked_example import CODE, NAME, PAGE, SOURCE, apply, named_files

PARTS = ("docs", "mca_btl_velo", "contrib/sim", "test/schedule", "test/sim", "test/unit")
COMPILER = (os.environ.get("CXX") or shutil.which("g++") or "c++").split()
POLICY = f"mca_btl_velo/flow/{NAME}.cc"
CPUS = len(os.sched_getaffinity(0))


def changed_files(old, new, below=pathlib.Path()):
    compared = filecmp.dircmp(old / below, new / below)
    yield from (str(below / name) for name in compared.left_only + compared.right_only + compared.diff_files)
    for name in compared.common_dirs:
        yield from changed_files(old, new, below / name)


class Tree:
    def __init__(self, directory):
        self.directory = directory
        for part in PARTS:
            shutil.copytree(SOURCE / part, directory / part)
            shutil.copytree(SOURCE / part, directory / "before" / part)
        apply(directory)
        self.objects = {}

    def changed(self):
        return {name for part in PARTS
                for name in changed_files(self.directory / "before", self.directory, pathlib.Path(part))}

    def sources(self, folder, variable):
        """The .cc files that a Makefile.inc has in a list."""
        text = (self.directory if folder == "mca_btl_velo" else SOURCE).joinpath(folder, "Makefile.inc").read_text()
        listed = re.search(rf"^{variable} =((?:.*\\\n)*.*\n)", text, re.MULTILINE)[1]
        return [f"{folder}/{name}" for name in re.findall(r"%D%/(\S+\.cc)", listed)]

    def compile(self, sources):
        """As one file."""
        made = self.directory / (sources[0].replace("/", "-") + ".o")
        includes = [f"-I{self.directory / part}" for part in PARTS]
        subprocess.run([*COMPILER, "-std=c++20", "-O1", *includes, "-x", "c++", "-c", "-", "-o", made], check=True, timeout=300, text=True,
                       input="".join(f'#include "{self.directory / source}"\n' for source in sources))
        self.objects[sources] = made

    def program(self, name, *groups):
        """Linked from what is not compiled yet, and what is."""
        with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
            list(pool.map(self.compile, [group for group in groups if group not in self.objects]))
        made = self.directory / name
        subprocess.run([*COMPILER, *(self.objects[group] for group in groups), "-lgtest_main", "-lgtest", "-pthread", "-o", made],
                       check=True, timeout=300)
        return made

    def policies(self):
        sources = self.sources("mca_btl_velo", "policy_sources")
        return [(POLICY,), tuple(source for source in sources if source != POLICY)]

    def rules(self):
        return self.program("rules", *self.policies(), ("test/unit/flow_config_test.cc",),
                            tuple(f"test/schedule/{name}.cc" for name in
                                  ("invariants_test", "endurance_test", "patterns", "policy_party", "scenario")))

    def simulator(self):
        return self.program("simulator", *self.policies(), (*self.sources("mca_btl_velo", "goal_sources"),
                                                            *self.sources("mca_btl_velo", "multicast_sources")),
                            (*self.sources("contrib", "machine_sources"), *self.sources("contrib", "experiments_sources"),
                             "test/sim/simulation_test.cc"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("tree"))


def run(program, tests, **environment):
    done = subprocess.run([program, f"--gtest_filter={tests}"], env={**os.environ, **environment}, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def number_passed(program, tests, **environment):
    status, output = run(program, tests, **environment)
    assert status == 0, output[-4000:]
    return int(re.search(r"\[  PASSED  \] (\d+) test", output)[1])


def test_the_example_touches_the_files_that_the_page_names_and_no_other(tree):
    assert tree.changed() == named_files()


def test_the_example_compiles(tree):
    tree.compile((POLICY,))


@pytest.mark.slow
def test_the_example_keeps_the_rules_under_every_schedule(tree):
    rules = tree.rules()
    # Two for each of the ten patterns; the long runs.
    assert number_passed(rules, f"Schedules/*/{NAME}_*", VELO_SCHEDULE_EVENTS="2000000") >= 20
    assert number_passed(rules, f"Policies/*/{NAME}", VELO_SCHEDULE_PACKETS="2000000") >= 2
    assert number_passed(rules, "PolicyTable.MakesEveryPolicyItLists:PolicyTable.RefusesAnUnknownName*") == 2


@pytest.mark.slow
def test_the_simulator_runs_the_example_on_every_pattern(tree):
    assert number_passed(tree.simulator(), f"Table/*/{NAME}") >= 2


@pytest.mark.slow
def test_too_small_a_mailbox_is_noticed_as_the_page_says(tree):
    wrong, said = re.search(r"With `([^`]+)` the tests below\s+say \"([^\"]+)\"", PAGE).groups()
    right = wrong.replace("2", "3")
    assert CODE.count(right) == 1
    tree.objects.pop((POLICY,), None)
    (tree.directory / POLICY).write_text(CODE.replace(right, wrong))
    try:
        status, output = run(tree.rules(), f"Schedules/*/{NAME}_*", VELO_SCHEDULE_EVENTS="2000000")
    finally:
        (tree.directory / POLICY).write_text(CODE)
        tree.objects.pop((POLICY,), None)
    assert status == 1 and said in output and "VELO_SCHEDULE_SEED=" in output, output[-2000:]
