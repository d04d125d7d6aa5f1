"""The command line."""

import concurrent.futures
import os
import pathlib
import queue
import shutil
import sys
import tempfile
import time

from ... import command
from ...argument_types import positive
from . import workshop
from .mutation import choose
from .table import MUTATIONS

ROOT = pathlib.Path(__file__).resolve().parents[4]


def parser():
    parsed = command.parser(
        "mutate", "Changes one line of the engine at a time, builds the test that must see it, runs that, and ends with a table.\n"
        "All is done in copies of the tree. The exit status is 1 if a mutation survives, does not build, or has lost the\n"
        "text that it changes.")
    parsed.add_argument("--list", action="store_true", help="the mutations and their tests")
    parsed.add_argument("--only", action="append", default=[], metavar="PATTERN",
                        help="mutations with this in their name or file; may be repeated")
    parsed.add_argument("-j", "--jobs", type=positive, default=os.cpu_count(), metavar="N",
                        help="so many mutations at a time, each in a copy of its own (default: as many as processors)")
    parsed.add_argument("--outcome", type=pathlib.Path, metavar="FILE",
                        help="a line for each mutation is added to FILE as it is found; those that FILE has are not tried again "
                             "(test/prove/mutations.outcome is the tree's: every mutation must be caught in it)")
    parsed.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()),
                        help="where the copies go, 0.3 GB for each (default: the system's directory for temporary files)")
    return parsed


def _list(mutations):
    for mutation in mutations:
        print(f"{mutation.file}: {mutation.name}\n    " + (f"equivalent: {mutation.equivalent}" if mutation.equivalent else f"{mutation.test}"))


def line(mutation, outcome, detail):
    """What a file of outcomes says."""
    return f"{outcome}: {mutation.file}: {mutation.name}: {mutation.test or 'no test'}: {detail}"


def known(path, mutations):
    """By name, outcome and detail of those mutations that the file has with the test of today."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    found = {}
    for mutation in mutations:
        words = f": {mutation.file}: {mutation.name}: {mutation.test or 'no test'}: "
        for outcome, _, detail in (each.partition(words) for each in lines if words in each):
            found[mutation.name] = outcome, detail
    return found


def _base(root, scratch, mutations, jobs):
    """A copy in which all that the mutations need is built, and every test that must fail with one passes without."""
    tree = workshop.Tree(scratch / "base")
    workshop.copy_sources(root, tree.directory)
    tree.prepare()
    needed = {}
    for mutation in mutations:
        if mutation.test:
            needed.setdefault(mutation.test.build, {})[str(mutation.test)] = mutation.test
    for build, tests in needed.items():
        tree.configure(build)
        said = tree.make(build, sorted({test.program for test in tests.values()}), jobs)
        if said:
            raise workshop.WorkshopError(f"the tree does not build without a mutation: {said[-2000:]}")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        every = [test for tests in needed.values() for test in tests.values()]
        for test, (status, failure) in zip(every, pool.map(tree.test, every)):
            if status != 0:
                raise workshop.WorkshopError(f"{test} fails without a mutation: {failure}")
    return tree


def examine(root, mutations, jobs, scratch, report):
    """Outcome and detail of each mutation, in their order."""
    base = _base(root, scratch, mutations, jobs)
    jobs = min(jobs, len(mutations))
    trees = queue.SimpleQueue()
    for number in range(jobs):
        trees.put(base.copy(scratch / str(number)))

    def one(mutation):
        tree = trees.get()
        try:
            outcome = workshop.judge(mutation, tree, base, max(1, os.cpu_count() // jobs))
        finally:
            trees.put(tree)
        report(mutation, *outcome)
        return outcome

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, mutations))


def summary(outcomes, seconds):
    """The last line, and the exit status."""
    count = {outcome: sum(found == outcome for found, _ in outcomes)
             for outcome in (workshop.CAUGHT, workshop.EQUIVALENT, workshop.SURVIVED, workshop.STALE, workshop.BROKEN)}
    parts = [f"{number} {outcome}" for outcome, number in count.items() if number or outcome in (workshop.CAUGHT, workshop.SURVIVED)]
    good = len(outcomes) == count[workshop.CAUGHT] + count[workshop.EQUIVALENT]
    return f"mutate: {len(outcomes)} mutations in {seconds:.0f} s: {', '.join(parts)}", 0 if good and outcomes else 1


def main(argv):
    parsed = parser()
    arguments = parsed.parse_args(argv)
    try:
        mutations = choose(MUTATIONS, arguments.only)
    except ValueError as error:
        parsed.error(str(error))
    return command.run("mutate", lambda _: _mutate(mutations, arguments), arguments)


def _mutate(mutations, arguments):
    if arguments.list:
        _list(mutations)
        return 0
    started = time.monotonic()
    found = known(arguments.outcome, mutations)
    scratch = workshop.scratch_directory(arguments.scratch)

    def report(mutation, outcome, detail):
        found[mutation.name] = outcome, detail
        print(line(mutation, outcome, detail), file=sys.stderr, flush=True)
        if arguments.outcome:
            with open(arguments.outcome, "a") as kept:
                print(line(mutation, outcome, detail), file=kept)

    try:
        remaining = [mutation for mutation in mutations if mutation.name not in found]
        if remaining:
            examine(ROOT, remaining, arguments.jobs, scratch, report)
    except workshop.WorkshopError as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    width = max(len(mutation.name) for mutation in mutations)
    for mutation in mutations:
        print(f"{mutation.name:{width}}  {found[mutation.name][0]:10}  {found[mutation.name][1]}")
    text, status = summary([found[mutation.name] for mutation in mutations], time.monotonic() - started)
    print(text)
    return status
