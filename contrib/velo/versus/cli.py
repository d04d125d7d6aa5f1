"""velo-measure transports from the command line to its files."""

import os
import sys
import tempfile
from datetime import datetime
from types import SimpleNamespace

from .. import command, machine
from ..command import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, Trouble
from ..measuring import Compiler
from ..process import shell_line
from ..processors import cores
from ..programs import NotFound, plotter
from . import contestants, memory, patterns, regret, report, speed
from .options import parse_options


def main(arguments):
    return command.run("velo-measure transports", _run, parse_options(arguments))


def _run(options):
    write_plot = None if options.no_plot or options.memory or options.programs or options.regret or options.list else plotter(__package__)
    found, missing, open_mpi = contestants.find(options)
    if options.list:
        print(_list_text(found, missing, options.ranks[0]))
        return EXIT_OK
    if not found or found[0].name != "velo":
        print(f"velo-measure transports: {report.missing_text(missing)}", file=sys.stderr)
        return EXIT_USAGE
    if options.regret:
        found[1:1] = [each for each in regret.fixed(open_mpi) if isinstance(each, contestants.Contestant)]
    cases = [] if options.memory or options.regret else _cases(options)
    if not cases and not options.memory and not options.regret:
        raise NotFound("no size of --sizes fits a pattern: allreduce and reduce take multiples of 4, touched 1024 and more bytes, "
                       "streams and collectives 8 and more, Alltoall and Allgather at most 512 MiB in all buffers")
    options.output.mkdir(parents=True, exist_ok=True)
    if not os.access(options.output, os.W_OK):
        raise Trouble(f"--output: {options.output} cannot be written to")
    with tempfile.TemporaryDirectory(prefix="velo-transports-") as directory:
        how = SimpleNamespace(compiler=Compiler(directory), point_ms=options.point_ms, window=options.window,
                              timeout=options.timeout)
        taking_part = speed.try_out(found, missing, options.ranks[0], how)
        if not taking_part.velo_starts:
            return EXIT_FAILED
        head = _head(options, taking_part, open_mpi)
        how.probe, how.seen = taking_part.found[0], None
        if options.regret:
            return _regret(options, taking_part, how, head)
        if options.memory:
            return _memory(options, taking_part, how, head)
        return _speed(options, cases, taking_part, how, head, write_plot)


def _cases(options):
    if options.programs:
        return patterns.program_cases(options.ranks, options.programs)
    if options.collectives and options.between_nodes:
        return patterns.network_collective_cases(options.ranks, options.patterns, options.sizes, options.quick)
    if options.collectives:
        return patterns.collective_cases(options.ranks, options.patterns, options.sizes, options.quick)
    if options.between_nodes:
        return patterns.network_cases(options.patterns, options.sizes, options.quick)
    return patterns.cases(options.ranks, options.patterns, options.sizes, options.quick)


def _list_text(found, missing, ranks):
    lines = [f"{c.name}: {c.mpicc}; {shell_line(c.command(ranks, ['measure']))}" for c in found]
    return "\n".join(lines + ([report.missing_text(missing)] if missing else []))


def _head(options, taking_part, open_mpi):
    """What every file begins with."""
    return {
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "open_mpi": open_mpi.version,
        "velo": open_mpi.velo_version(),
        "settings": {"rounds": options.rounds, "point_ms": options.point_ms, "window": options.window,
                     "min_blocks": options.min_blocks, "ranks": options.ranks, "between_nodes": options.between_nodes,
                     "collectives": options.collectives,
                     "timeout_seconds": options.timeout, "quick": options.quick},
        "contestants": [{"name": c.name, "library": taking_part.libraries[c.name], "layer": c.layer, "mpi": c.mpi,
                         "command": shell_line(c.command(options.ranks[0], ["measure"]))} for c in taking_part.found],
        "missing": [vars(entry) for entry in taking_part.missing],
    }


def _head_text(head, taking_part, crowded):
    lines = [machine.text(head["machine"]), f"{head['date']}" + (f", Velo's tree at {head['commit']}" if head["commit"] else "")]
    for contestant, record in zip(taking_part.found, head["contestants"]):
        version = f", component {head['velo']}" if contestant.is_velo and head["velo"] else ""
        remark = f" [{contestant.remark}]" if crowded and contestant.remark else ""
        lines.append(f"{contestant.name}: {record['library']}{version}; {record['command']}{remark}")
    return "\n".join(lines + ([report.missing_text(taking_part.missing)] if taking_part.missing else []))


def _is_crowded(ranks):
    return max(ranks) > cores()


def _memory(options, taking_part, how, head):
    uses = memory.measure_all(taking_part.found, options.ranks, how)
    failures = [f"FAILED: {u.contestant.name}, {u.ranks} ranks: {u.failure}\n  {u.command}\n{u.output_tail}"
                for u in uses if u.failure]
    parts = [_head_text(head, taking_part, _is_crowded(options.ranks)), memory.table_text(uses)]
    text = "\n\n".join(part for part in parts + [memory.formulas_text(uses)] + failures if part)
    print(text)
    memory.write_files(options.output, text, head, uses)
    print(f"\nwrote {options.output}/memory.txt, .csv and .json", file=sys.stderr)
    return EXIT_FAILED if any(use.failure and use.contestant.is_velo for use in uses) else EXIT_OK


def _regret(options, taking_part, how, head):
    points, failures, complete = regret.measure(taking_part.found, options.rounds, how)
    parts = [_head_text(head, taking_part, False), f"{options.rounds} interleaved rounds, medians, microseconds of a message",
             regret.text(points, taking_part.found, failures)]
    text = "\n\n".join(parts + ([] if complete else ["INTERRUPTED: not all runs took place."]))
    print(text)
    path = options.output / "regret"
    path.with_suffix(".txt").write_text(text + "\n", encoding="utf-8")
    regret.write_json(path.with_suffix(".json"), head | {"complete": complete}, points)
    print(f"\nwrote {path}.txt and .json", file=sys.stderr)
    if not complete:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if any(name == "velo" for name, _ in failures) else EXIT_OK


def _speed(options, cases, taking_part, how, head, write_plot):
    results, complete = speed.run_all(cases, taking_part.found, options.rounds, how)
    tables = speed.tables(results, cases, taking_part.found, options.min_blocks)
    text = _speed_text(options, taking_part, head, tables, results)
    if not complete:
        text += "\n\nINTERRUPTED: not all runs took place."
    print(text)
    path = options.output / "transports"
    path.with_suffix(".txt").write_text(text + "\n", encoding="utf-8")
    report.write_csv(path.with_suffix(".csv"), tables.lines, taking_part.found)
    report.write_json(path.with_suffix(".json"), head | {"complete": complete}, tables.lines, tables.classes, results)
    if write_plot:
        title = (f"Velo's time / the others', {head['machine']['cpu']}, medians of {options.rounds} rounds\n{head['date']}, "
                 f"{head['commit'] or head['velo']}; " + ", ".join(sorted(set(taking_part.libraries.values()))))
        write_plot([path.with_suffix(".png"), path.with_suffix(".svg")], tables.lines, taking_part.found, title)
    print(f"\nwrote {path}.txt, .csv, .json" + (", .png and .svg" if write_plot else ""), file=sys.stderr)
    if not complete:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if any(r.failure and r.contestant.is_velo for r in results) else EXIT_OK


def _speed_text(options, taking_part, head, tables, results):
    method = (f"{options.rounds} interleaved rounds, each point about {options.point_ms} ms in a run; a time is the median "
              f"over the blocks of a block's median; window {options.window}; data checked")
    parts = [_head_text(head, taking_part, _is_crowded(options.ranks)), method,
             report.distances_text(results, tables.lines, options.min_blocks), report.sizes_text(tables.lines, taking_part.found)]
    firsts = {c.layer: c.name for c in reversed(taking_part.found)}
    parts += [report.changes_text(tables.lines, c.name) for c in taking_part.found if c.is_velo and firsts[c.layer] != c.name]
    for velo in (c.name for c in taking_part.found if c.is_velo):
        parts.append(report.classes_text([row for row in tables.classes if row.velo == velo], velo))
    parts.append(report.noise_text(tables.lines, options.rounds))
    return "\n\n".join([part for part in parts if part] + [report.failure_text(result) for result in results if result.failure])
