"""Builds the test suite of MPICH with Open MPI and runs it over Velo and over Open MPI's own transport, test by test.

The suite is not part of Velo. On Debian: apt-get source mpich (with deb-src in the sources), then

    velo-mpich-suite build mpich-4.0.2/test/mpi BUILD
    velo-mpich-suite run BUILD --results results.jsonl

Every contestant runs a test equally often, in turn, and no failure is forgotten: a test passes if each of its runs does. Ends
with 1 if a test passes less often with Velo than with ob1 and vader. A machine that others use stalls now and then; --runs
tells that from a defect. Results are kept: what is in the file already is not run again.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .. import command
from ..argument_types import positive
from ..process import environment, run_limited

DIRECTORIES = ("pt2pt", "coll", "comm", "datatype", "topo", "rma", "threads")
BASELINE = "vader"
CONTESTANTS = {
    BASELINE: "--mca pml ob1 --mca btl vader,self",
    "velo-btl": "--mca pml ob1 --mca btl velo",
    "velo-mtl": "--mca pml cm --mca mtl velo --mca btl velo",
}
# Removed from MPI 3.0 and from Open MPI 4, with another name and the same arguments.
RENAMED = re.compile(r"\bMPI_Type_(hvector|hindexed|struct)\(")
CONFIGURE = ("--with-mpi=/usr", "--disable-fortran", "--disable-cxx", "--disable-spawn", "--enable-strictmpi")


@dataclass(frozen=True)
class Test:
    directory: str
    program: str
    ranks: int
    arguments: tuple
    memory_gib: float

    @property
    def name(self):
        return " ".join([f"{self.directory}/{self.program}", str(self.ranks), *self.arguments])


def build(options):
    source, target = Path(options.source).resolve(), Path(options.build).resolve()
    if not (source / "configure").is_file():
        sys.exit(f"{source} has no configure; name the folder test/mpi of MPICH's source package")
    for file in (source / "dtpools" / "src").glob("*.c"):
        file.write_text(RENAMED.sub(r"MPI_Type_create_\1(", file.read_text()))
    target.mkdir(parents=True, exist_ok=True)
    compilers = [f"MPICC={options.mpicc}", f"CC={options.mpicc}"]
    subprocess.run([str(source / "configure"), *CONFIGURE, *compilers], cwd=target, check=True)
    for directory in ("dtpools", "util", *DIRECTORIES):
        # Some tests need what Open MPI does not have; they are left out.
        subprocess.run(["make", "-k", f"-j{options.jobs}", "-C", directory], cwd=target, check=False)
    (target / "source").write_text(str(source))


def listed(build_directory, name):
    """The lines of the test list of a directory, from the build if configure has made one."""
    source = Path((build_directory / "source").read_text().strip())
    for root in (build_directory, source):
        file = root / name
        if file.is_file():
            lines = file.read_text().splitlines()
            return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return []


def tests_of(build_directory, directory, with_types):
    """Those of the subdirectories too. Lines that differ in MPICH's own settings alone are one test."""
    lines = listed(build_directory, f"{directory}/testlist")
    lines += listed(build_directory, f"{directory}/testlist.dtp") if with_types else []
    found = {}
    for line in lines:
        words = line.split()
        if len(words) == 1 and not words[0].isdigit() and (build_directory / directory / words[0]).is_dir():
            for test in tests_of(build_directory, f"{directory}/{words[0]}", with_types):
                found.setdefault(test.name, test)
            continue
        if len(words) < 2 or not words[1].isdigit():
            continue
        values = [word.partition("=")[::2] for word in words[2:]]
        memory = [float(value) for key, value in values if key == "mem"]
        test = Test(directory, words[0], int(words[1]), tuple(value for key, value in values if key == "arg"),
                    max(memory, default=0))
        found.setdefault(test.name, test)
    return list(found.values())


def run_once(test, build_directory, words, options):
    words = [options.mpirun, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
             *shlex.split(words), "-np", str(test.ranks), f"./{test.program}", *test.arguments]
    ended = run_limited(words, environment(), options.limit, build_directory / test.directory, merged=True)
    passed = not ended.failure(options.limit) and re.search(r"^\s*No Errors\s*$", ended.stdout, re.MULTILINE) is not None
    return {"test": test.name, "directory": test.directory, "passed": passed, "code": ended.status,
            "seconds": round(ended.seconds, 1), "output": "" if passed else ended.stdout[-options.kept:]}


class Results:
    """The runs of each test by each contestant, kept in a file; of more than `runs` the first count."""

    def __init__(self, file, runs):
        self._file = Path(file)
        self._runs = runs
        self._all = defaultdict(list)
        if self._file.is_file():
            for line in self._file.read_text().splitlines():
                self._keep(json.loads(line))

    def _keep(self, result):
        self._all[result["test"], result["contestant"]].append(result)

    def of(self, test, contestant):
        return self._all[test.name, contestant][:self._runs]

    def add(self, result):
        self._keep(result)
        with self._file.open("a") as file:
            file.write(json.dumps(result) + "\n")

    def passed(self, test, contestant):
        """How many of the runs passed."""
        return sum(result["passed"] for result in self.of(test, contestant))


def run_test(test, build_directory, contestants, results, options):
    for number in range(options.runs):
        for contestant, words in contestants.items():
            if len(results.of(test, contestant)) == number:
                results.add({**run_once(test, build_directory, words, options), "contestant": contestant})
    for contestant in contestants:
        passed, runs = results.passed(test, contestant), results.of(test, contestant)
        seconds = max(result["seconds"] for result in runs)
        print(f"{'passed' if passed == len(runs) else 'FAILED'} {passed}/{len(runs)} {contestant:9} {seconds:6.1f} s  {test.name}",
              flush=True)


def summary(tests, contestants, results):
    """Prints the counts; returns how many tests pass less often with Velo than with the baseline."""
    print(f"\n{'directory':18}" + "".join(f"{name:>16}" for name in contestants) + "   tests of which every run passed/tests")
    for directory in sorted({test.directory for test in tests}):
        of_directory = [test for test in tests if test.directory == directory]
        counts = (f"{sum(results.passed(t, name) == len(results.of(t, name)) for t in of_directory)}/{len(of_directory)}"
                  for name in contestants)
        print(f"{directory:18}" + "".join(f"{count:>16}" for count in counts))
    worse = [(name, test) for name in contestants for test in tests
             if results.passed(test, name) < results.passed(test, BASELINE)]
    for name, test in worse:
        print(f"passes {results.passed(test, name)} times with {name} and {results.passed(test, BASELINE)} times with {BASELINE}, "
              f"of {len(results.of(test, BASELINE))}: {test.name}")
    return len(worse)


def run(options):
    build_directory = Path(options.build).resolve()
    if not (build_directory / "source").is_file():
        sys.exit(f"{build_directory} holds no suite; make one with: velo-mpich-suite build")
    contestants = {BASELINE: CONTESTANTS[BASELINE]}
    contestants.update({name: words for name, words in CONTESTANTS.items() if name in options.only})
    contestants.update(contestant.split("=", 1) for contestant in options.contestant)
    results = Results(options.results, options.runs)
    tests = []
    for directory in options.directories.split(","):
        tests += tests_of(build_directory, directory, options.types)
    tests = [test for test in tests if re.search(options.filter, test.name) and test.memory_gib <= options.memory]
    built = [test for test in tests if os.access(build_directory / test.directory / test.program, os.X_OK)]
    if not built:
        sys.exit("no test has that name, or none of them could be built")
    print(f"{len(built)} tests; {len(tests) - len(built)} more could not be built with this MPI")
    for test in built:
        run_test(test, build_directory, contestants, results, options)
    return command.EXIT_FAILED if summary(built, contestants, results) else command.EXIT_OK


def main(arguments):
    parser = command.parser("velo-mpich-suite", __doc__)
    commands = parser.add_subparsers(required=True)
    sub = commands.add_parser("build", help="configure and compile the suite")
    sub.add_argument("source", help="the folder test/mpi of MPICH's source; three calls in dtpools are renamed there")
    sub.add_argument("build", help="where to build")
    sub.add_argument("--mpicc", default="mpicc.openmpi")
    sub.add_argument("--jobs", type=int, default=2)
    sub.set_defaults(run=build)
    sub = commands.add_parser("run", help="run it and compare")
    sub.add_argument("build", help="as for build")
    sub.add_argument("--directories", default=",".join(DIRECTORIES), help="default: %(default)s")
    sub.add_argument("--filter", default="", help="a pattern in the test's name, its ranks and arguments")
    sub.add_argument("--types", action="store_true", help="the lists of datatypes (testlist.dtp) too")
    sub.add_argument("--memory", type=float, default=2, help="skip tests that need more GiB (default: %(default)s)")
    sub.add_argument("--only", default=",".join(CONTESTANTS), help="contestants (default: %(default)s)")
    sub.add_argument("--contestant", action="append", default=[], metavar="NAME=WORDS",
                     help="one more, with the words for its mpirun")
    sub.add_argument("--results", default="mpich-suite.jsonl", help="default: %(default)s")
    sub.add_argument("--limit", type=int, default=60, help="seconds for a test (default: %(default)s)")
    sub.add_argument("--runs", type=positive, default=1, help="of each test by each contestant (default: %(default)s)")
    sub.add_argument("--kept", type=int, default=4000, help="characters kept of a failure (default: %(default)s)")
    sub.add_argument("--mpirun", default="mpirun.openmpi")
    sub.set_defaults(run=run)
    options = parser.parse_args(arguments)
    if hasattr(options, "only"):
        options.only = options.only.split(",")
    return command.run("velo-mpich-suite", options.run, options)
