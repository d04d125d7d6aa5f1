"""velo-measure policies from the command line to its files."""

import statistics
import sys

from .. import command, machine, plugin
from ..command import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK
from ..programs import NotFound, beside, find_bench, find_mpirun, plotter
from ..rounds import Run, interleaved, perform_all
from . import plan, report, story, summary
from .launch import Launch
from .options import parse_options
from .runner import Runner

_NAME = "velo-measure policies"


def main(arguments):
    return command.run(_NAME, _run, parse_options(arguments))


def _run(options):
    write_plot = None if options.no_plot else plotter(__package__)
    launch = _launch(options)
    chosen = plan.Chosen(tuple(_policies(options, launch)), tuple(options.slots), tuple(options.by_reference))
    options.output.mkdir(parents=True, exist_ok=True)
    return _compare(options, chosen, launch, write_plot)


def _launch(options):
    return Launch(
        mpirun=find_mpirun(options.mpirun),
        bench=find_bench(options.bench),
        processes=options.np,
        transport=options.transport,
        iterations=options.iterations,
        sample_seconds=options.time,
        mca=options.mca,
    )


def _policies(options, launch):
    """The chosen policies, checked against those of the plugin. Without ompi_info they are taken as they are."""
    info = beside(launch.mpirun, "ompi_info", options.ompi_info)
    if info is None or not launch.uses_velo:
        if options.policies == [plan.ALL]:
            raise NotFound("--policies all: no ompi_info that tells which there are; name it with --ompi-info")
        return options.policies
    offered = plugin.ask(info)
    if options.policies == [plan.ALL]:
        options.policies = list(offered.policies)
    if unknown := offered.missing_policies(options.policies):
        raise NotFound(f"--policies: {unknown[0]!r} is not one of {', '.join(offered.policies)}")
    if not offered.offers("by_reference"):
        # Open MPI says nothing about a parameter that no component has.
        raise NotFound("the plugin that this Open MPI finds has no parameter btl_velo_by_reference; run make install")
    return options.policies


def _compare(options, chosen, launch, write_plot):
    reference = plan.reference(options.reference_slots)
    all_setups = plan.setups(chosen, reference)
    all_cases = plan.cases(options.benchmarks, options.sizes)
    where = machine.describe()  # before there is load of its own
    with Runner(launch, options.timeout) as runner:
        if not _starts(runner, all_cases[0], reference, launch):
            return EXIT_FAILED
        results, complete = perform_all(_NAME, interleaved(all_cases, all_setups, options.rounds), runner.execute, _label,
                                        lambda failed: command.failure_text(_NAME, failed))
    lines = summary.summarise(results, all_cases, all_setups, reference)
    averages = summary.averages(lines)
    text = _text(options, chosen, launch, lines, averages, results, reference, where)
    if not complete:
        text += "\n\nINTERRUPTED: not all runs took place."
    print(text)
    _write_files(options, chosen, launch, text, lines, averages, results)
    if write_plot:
        _write_plots(options, chosen, write_plot, lines, averages, reference)
    if not complete:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if any(result.failure for result in results) else EXIT_OK


def _starts(runner, case, setup, launch):
    """One run before the long series: a missing plugin should not fail some hundred times."""
    print(f"{_NAME}: a first run, whether Velo starts", file=sys.stderr, flush=True)
    result = runner.execute(Run(case, setup, 0))
    if result.failure is None:
        return True
    print(command.failure_text(_NAME, result), file=sys.stderr)
    print(f"velo-measure policies: the first run failed, so none of the others was started. Does Open MPI find the plugin? "
          f"Try: ompi_info --param btl velo --level 9; --transport was {launch.transport}", file=sys.stderr)
    return False


def _label(run):
    size = "" if run.case.size_bytes is None else f" {run.case.size_bytes} bytes"
    return f"{run.case.benchmark}{size}, {run.setup.policy}, {run.setup.slots} slots, by reference {run.setup.by_reference}"


def _text(options, chosen, launch, lines, averages, results, reference, where):
    noise = summary.reference_spreads(lines)
    parts = [
        "\n".join([machine.text(where),
                   f"{launch.bench}, {options.np} processes, btl {launch.transport}; medians of {options.rounds} round(s)", _noise(noise)]),
        report.table_text(lines),
        "Counters are sums over all ranks and the whole run, warm-up included; --time cuts slow runs short, so compare "
        "credit packets by 1000 messages. Mailbox and outbox bytes are per rank, of the outbox the most that were in use.",
        report.ratios_text(lines, chosen, reference),
        report.averages_text(averages, chosen, reference),
    ]
    parts += _remarks(results) + [story.text(averages, chosen, reference, noise)]
    return "\n\n".join(parts)


def _noise(spreads):
    if not spreads:
        return "Noise: unknown, there was one round."
    worst, typical = max(spreads, key=spreads.get), statistics.median(spreads.values())
    return (f"Noise: the reference times of a benchmark lie {typical:.0f} % apart (median), {spreads[worst]:.0f} % at worst "
            f"({worst.benchmark}); smaller overheads than that mean little. {machine.noise_text(typical)}").rstrip()


def _remarks(results):
    remarks = []
    without = sum(1 for result in results if not result.failure and result.counters is None)
    if without:
        remarks.append(f"n/a: {without} of {len(results)} runs printed no VELO-REPORT line, so their counters are unknown.")
    failures = [result for result in results if result.failure]
    if failures:
        listed = "\n".join(f"  {result.failure}: {result.command}" for result in failures)
        remarks.append(f"{len(failures)} run(s) FAILED and are missing above:\n{listed}")
    return remarks


def _write_files(options, chosen, launch, text, lines, averages, results):
    settings = {
        "processes": options.np,
        "bench": launch.bench,
        "mpirun": launch.mpirun,
        "transport": launch.transport,
        "mca": options.mca,
        "slots_per_peer": chosen.slots,
        "policies": chosen.policies,
        "by_reference": chosen.by_reference,
        "reference": {"policy": "none", "slots_per_peer": options.reference_slots, "by_reference": "never"},
        "rounds": options.rounds,
        "iterations": launch.iterations,
        "sample_seconds": launch.sample_seconds,
    }
    (options.output / "policies.txt").write_text(text + "\n", encoding="utf-8")
    report.write_csv(options.output / "policies.csv", lines)
    report.write_json(options.output / "policies.json", settings, lines, averages, results)
    print(f"\nwrote {options.output}/policies.txt, .csv and .json", file=sys.stderr)


def _write_plots(options, chosen, write_plot, lines, averages, reference):
    for size in dict.fromkeys(line.case.size_bytes for line in lines):
        what = "barrier" if size is None else str(size)
        path = options.output / f"policies-{what}.png"
        title = f"What flow control costs: {options.np} processes, overhead against {report.against(reference, size)}"
        of_size = [line for line in lines if line.case.size_bytes == size]
        averages_of_size = [average for average in averages if average.size_bytes == size]
        write_plot(path, of_size, averages_of_size, chosen, title)
        print(f"wrote {path}", file=sys.stderr)
