"""Copies of the tree, each with builds of its own, in which mutations are made, built, tested and undone."""

import json
import os
import pathlib
import re
import shutil
import subprocess

from ...process import run_limited

# What configure is given.
BUILDS = {"plain": [], "threads": ["--enable-sanitizers=thread"], "addresses": ["--enable-sanitizers"]}

CAUGHT, SURVIVED, EQUIVALENT, STALE, BROKEN = "caught", "SURVIVED", "equivalent", "DOES NOT APPLY", "DOES NOT BUILD"
BUILD_LIMIT_S = 1800


class WorkshopError(Exception):
    """Its text says what went wrong, whatever the mutations."""


def run(command, directory, limit_s, environment=None):
    """Exit status, None if the time was over, and output. Ends all that the command started."""
    ended = run_limited(command, {**os.environ, **(environment or {})}, limit_s, directory, merged=True)
    return (None, "") if ended.timed_out else (ended.status, ended.stdout)


def copy_sources(root, to):
    """What belongs to the tree, whether it is committed or not; nothing that was built."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True, check=False)
    if listed.returncode != 0 or not listed.stdout:
        shutil.copytree(root, to, symlinks=True)
        return
    for name in filter(None, listed.stdout.split("\0")):
        if not (root / name).is_file():
            continue
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, to / name)


def _stamps(directory):
    stamps = {}
    for path, _, files in os.walk(directory):
        for name in files:
            status = os.lstat(os.path.join(path, name))
            stamps[os.path.relpath(os.path.join(path, name), directory)] = (status.st_mtime_ns, status.st_size)
    return stamps


def _compiles_the_tests(compiler):
    """clang 14 has not what std::source_location of GCC 12's library needs."""
    source = "#include <source_location>\nstd::source_location here = std::source_location::current();\n"
    return bool(shutil.which(compiler)) and subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"], input=source, text=True,
                                                           capture_output=True, check=False).returncode == 0


class Tree:
    """A copy of the sources with its builds."""

    def __init__(self, directory):
        self.directory = directory

    def build_directory(self, build):
        return self.directory / f"build-{build}"

    def configure(self, build):
        directory = self.build_directory(build)
        directory.mkdir()
        # Most of the time is the compiler's: clang++ takes half of what g++ does, and optimisation gains less than it costs.
        fast = ["CXX=clang++"] if _compiles_the_tests("clang++") else []
        fast += ["LDFLAGS=-fuse-ld=lld"] if fast and shutil.which("ld.lld") else []
        self._require([["../configure", "-q", "--disable-lto", "CXXFLAGS=-O0", *fast, *BUILDS[build]]], directory)

    def prepare(self):
        if not (self.directory / "configure").exists():
            self._require([["./autogen.sh"]], self.directory)

    def _require(self, commands, directory):
        for command in commands:
            status, output = run(command, directory, BUILD_LIMIT_S)
            if status != 0:
                raise WorkshopError(f"{' '.join(command)}: {output[-2000:]}")

    def make(self, build, programs, jobs, *variables):
        """What make said, empty if it succeeded."""
        status, output = run(["make", f"-j{jobs}", *programs, *variables], self.build_directory(build), BUILD_LIMIT_S)
        return "" if status == 0 else output or "it did not end"

    def make_with(self, mutation, jobs):
        """The program of its test, with the mutation. What make said, empty if it succeeded."""
        group, files = self._together(mutation)
        if group:
            # Of the files that are compiled as one with it only those that hold the tests: a header is in all of them.
            source = self.build_directory(mutation.test.build) / f"together/{group}.cc"
            whole = source.read_text()
            source.write_text("".join(f'#include "{file}"\n' for file in files))
            words = mutation.test.program.replace("/", "_")
            if not self.make(mutation.test.build, [mutation.test.program], jobs,
                             f"nodist_{words}_OBJECTS=together/{words}-{group}.o", f"am_{words}_OBJECTS="):
                return ""
            source.write_text(whole)
        return self.make(mutation.test.build, [mutation.test.program], jobs)

    def _together(self, mutation):
        """The name of what is compiled as one and has the mutation and all its tests in it, and the files that they need of it."""
        directory = self.build_directory(mutation.test.build)
        listed = directory / "tests.json"
        run([f"./{mutation.test.program}", "--gtest_list_tests", f"--gtest_filter={mutation.test.filter}", f"--gtest_output=json:{listed}"],
            directory, mutation.test.limit_s)
        if not listed.exists():
            return None, []
        holding = {os.path.relpath(os.path.join(directory, each["file"]), self.directory)
                   for suite in json.loads(listed.read_text())["testsuites"] for each in suite["testsuite"]}
        listed.unlink()
        for source in directory.glob("together/*.cc"):
            files = re.findall(r'#include "(.*)"', source.read_text())
            needs = directory / f"together/.deps/{mutation.test.program.replace('/', '_')}-{source.stem}.Po"
            if holding <= set(files) and needs.exists() and mutation.file in needs.read_text():
                return source.stem, [file for file in files if file in holding or not file.endswith("_test.cc")]
        return None, []

    def test(self, test):
        """Exit status, None if the time was over, and what failed first."""
        command = [f"./{test.program}", f"--gtest_filter={test.filter}", "--gtest_brief=1", "--gtest_throw_on_failure=0"]
        # UCX's hooks run in threads that ThreadSanitizer has taken leave of.
        environment = {"UCX_MEM_MMAP_HOOK_MODE": "none", **test.environment}
        status, output = run(command, self.build_directory(test.build), test.limit_s, environment)
        if status == 0 and not re.search(r"\[==========\] [1-9]\d* tests? from", output):
            raise WorkshopError(f"{test}: no test has this name")
        return status, _first_failure(status, output, test)

    def copy(self, to):
        shutil.copytree(self.directory, to, symlinks=True)
        return Tree(to)

    def restore(self, like, mutation):
        """All as in `like`, of which this is a copy: the mutated file, and what was built from it."""
        shutil.copy2(like.directory / mutation.file, self.directory / mutation.file)
        here, there = self.build_directory(mutation.test.build), like.build_directory(mutation.test.build)
        ours, theirs = _stamps(here), _stamps(there)
        for name in ours.keys() - theirs.keys():
            (here / name).unlink()
        for name, stamp in theirs.items():
            if ours.get(name) != stamp:
                (here / name).unlink(missing_ok=True)  # a link is not written through
                shutil.copy2(there / name, here / name, follow_symlinks=False)


def _first_failure(status, output, test):
    if status is None:
        return f"still running after {test.limit_s} s"
    failed = re.search(r"\[  FAILED  \] ([\w/.]+)", output)
    if failed:
        return failed.group(1)
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "it said nothing")
    return f"exit status {status}: {last}"[:160]


def judge(mutation, tree, like, jobs):
    """Outcome and detail of a mutation, made in `tree`, which is as `like` before and afterwards."""
    objection = mutation.objection(tree.directory)
    if objection:
        return STALE, objection
    if mutation.equivalent:
        return EQUIVALENT, mutation.equivalent
    program = tree.build_directory(mutation.test.build) / mutation.test.program
    unchanged = program.stat().st_mtime_ns
    mutation.apply(tree.directory)
    try:
        said = tree.make_with(mutation, jobs)
        if said:
            error = re.search(r"^.*error: .*$", said, re.MULTILINE)
            return BROKEN, error.group(0).strip() if error else said[-300:]
        if program.stat().st_mtime_ns == unchanged:
            return BROKEN, f"make built {mutation.test.program} without it"
        status, failure = tree.test(mutation.test)
        return (SURVIVED, f"{mutation.test} passes") if status == 0 else (CAUGHT, failure)
    finally:
        tree.restore(like, mutation)


def scratch_directory(parent):
    """A new directory of this process in `parent`."""
    directory = pathlib.Path(parent) / f"velo-mutate-{os.getpid()}"
    directory.mkdir(parents=True)
    return directory
