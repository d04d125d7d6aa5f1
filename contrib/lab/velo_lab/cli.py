"""velo-lab from the command line to its files."""

import os
import signal
import sys
import textwrap
from pathlib import Path

from velo_compare import plugin
from velo_compare.programs import NotFound, beside, find_bench, find_mpirun, find_program

from . import page
from .catalogue import BY_NAME, EXPERIMENTS
from .experiment import Context
from .laboratory import Laboratory
from .options import parse_options
from .runner import Runner, Tools

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130
_PATTERNS, _PHASES = "velo-lab-patterns", "velo-phases"


def main(arguments):
    options = parse_options(arguments)
    # A terminated run must not leave its mpirun behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return {"list": _list, "run": _run, "report": _report}[options.command](options)
    except (NotFound, page.NothingToReport, OSError) as error:
        print(f"velo-lab: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("\nvelo-lab: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def _list(_options):
    for experiment in EXPERIMENTS:
        print(f"{experiment.name:<10} {experiment.title}  [{experiment.source}]")
        print(textwrap.fill(experiment.statement, 100, initial_indent=" " * 11, subsequent_indent=" " * 11))
    return EXIT_OK


def _run(options):
    try:
        from .plot import write_plot
    except ImportError as error:
        raise NotFound(f"{error}; on Debian 12: apt-get install python3-matplotlib") from error
    tools, context = _tools(options), _context(options)
    options.output.mkdir(parents=True, exist_ok=True)
    with Runner(tools, options.timeout, map(tuple, options.mca)) as runner:
        laboratory = Laboratory(runner, context, options.rounds, options.output, write_plot)
        good = [laboratory.perform(BY_NAME[name]) for name in options.names]
    print(f"\nvelo-lab report {options.output}   collects everything into one page")
    return EXIT_OK if all(good) else EXIT_FAILED


def _tools(options):
    here = Path(sys.argv[0]).resolve().parent
    folders = (here, Path.cwd() / "contrib" / "lab")
    return Tools(find_mpirun(options.mpirun), find_program(_PATTERNS, "--patterns", options.patterns, folders),
                 find_bench(options.bench, here), find_program(_PHASES, "--phases", options.phases, folders))


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
    )


def _report(options):
    target = options.output or options.directory / "report.html"
    count = page.write_report(options.directory, target, options.simulated)
    print(f"wrote {target}: {count} experiments")
    return EXIT_OK
