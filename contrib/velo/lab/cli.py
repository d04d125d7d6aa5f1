"""velo-measure papers from the command line to its files."""

import functools
import os
import textwrap

from .. import command, plugin
from ..command import EXIT_FAILED, EXIT_OK
from ..programs import NotFound, beside, find_bench, find_mpirun, find_own, plotter
from . import contestants, page
from .catalogue import BY_NAME, EXPERIMENTS, GROUPS
from .experiment import Context
from .experiments import overview
from .laboratory import Laboratory
from .options import parse_options
from .runner import Runner, Tools


def main(arguments):
    options = parse_options(arguments)
    return command.run("velo-measure papers", {"list": _list, "run": _run, "report": _report}[options.command], options)


def _list(_options):
    for experiment in EXPERIMENTS:
        print(f"{experiment.name:<10} {experiment.title}  [{experiment.source}]")
        print(textwrap.fill(experiment.statement, 100, initial_indent=" " * 11, subsequent_indent=" " * 11))
    return EXIT_OK


def _run(options):
    write_plot = None if options.no_plot else plotter(__package__)
    tools, context = _tools(options), _context(options)
    options.output.mkdir(parents=True, exist_ok=True)
    with Runner(tools, options.timeout, map(tuple, options.mca)) as runner:
        laboratory = Laboratory(runner, context, options.rounds, options.output, write_plot)
        good = [laboratory.perform(BY_NAME[name]) for name in options.names]
    print(f"\nvelo-measure papers report {options.output}   collects everything into one page")
    return EXIT_OK if all(good) else EXIT_FAILED


def _tools(options):
    goal = find_own("--goal", options.goal, "velo-goal", "goal") if set(options.names) & {*GROUPS["goal"], *GROUPS["multicast"]} else ""
    sim = find_own("--sim", options.sim, "velo-sim", "sim") if overview.EXPERIMENT.name in options.names else ""
    return Tools(find_mpirun(options.mpirun), find_own("--measure", options.measure), find_bench(options.bench), goal, sim)


def _context(options):
    mpirun = find_mpirun(options.mpirun)
    info = options.ompi_info or beside(mpirun, "ompi_info")
    if info is None:
        raise NotFound(f"no ompi_info beside {mpirun}; name it with --ompi-info")
    return Context(
        plugin=plugin.ask(info),
        ranks=options.ranks,
        cores=len(os.sched_getaffinity(0)),
        quick=options.quick,
        policies=tuple(options.policies) if options.policies else None,
        slots=tuple(sorted(options.slots)) if options.slots else None,
        reference_slots=options.reference_slots,
        seconds=options.time,
        npb=options.npb,
        network=functools.cache(lambda: contestants.find_network(mpirun, info)),
        by_node=functools.cache(lambda: contestants.find_by_node(mpirun, info)),
        contestants=functools.cache(lambda: contestants.find(mpirun, info, options.processors, options.contestants)),
    )


def _report(options):
    target = options.output or options.directory / "report.html"
    count = page.write_report(options.directory, target, options.simulated)
    print(f"wrote {target}: {count} experiments")
    return EXIT_OK
