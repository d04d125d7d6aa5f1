"""velo-trace from the command line to its files."""

import contextlib
import pathlib
import sys

from .. import command
from ..programs import plotter
from . import chrome, table
from .phases import read_phases
from .reader import KINDS, Kind, TraceError, read_job, sizing_of
from .series import default_groups, parse_groups

_EPILOG = """examples:
  mkdir traces
                        for one file of each process
  mpirun --oversubscribe --mca pml ob1 --mca btl velo --mca btl_velo_trace traces -np 16 velo-mpi-bench phases > phases.txt
                        any program will do; this one says when its pattern changes
  velo-trace info traces
                        the processes, and how many records of each kind
  velo-trace json traces -o trace.json
                        open it in https://ui.perfetto.dev or chrome://tracing
  velo-trace csv traces -o trace.csv
                        for everything else
  velo-trace plot traces --phases phases.txt -o credits
                        writes credits.png and credits.svg

velo-trace COMMAND --help shows the options of a command. The format of the trace files is described in mca_btl_velo/design/trace.md.
"""


def main(arguments):
    return command.run("velo-trace", _run, _parser().parse_args(arguments))


def _run(options):
    traces = read_job(options.traces, options.job)
    _remark(traces)
    options.action(traces, options)
    return command.EXIT_OK


def _parser():
    parser = command.parser("velo-trace", "Reads traces of Velo's flow control (--mca btl_velo_trace).", _EPILOG)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def subcommand(name, action, help_text):
        sub = commands.add_parser(name, help=help_text, description=help_text)
        sub.add_argument("traces", nargs="+", metavar="TRACE", help="trace files (.vtrace), or directories with them")
        sub.add_argument("--job", metavar="NUMBER", help="take this job, or \"all\", where there are several")
        sub.set_defaults(action=action)
        return sub

    subcommand("info", _info, "what is in the traces")
    for name, action, text in (("json", _json, "convert to Chrome's and Perfetto's trace format"),
                               ("csv", _csv, "convert to CSV, a line for each record")):
        subcommand(name, action, text).add_argument("-o", "--output", metavar="FILE", help="instead of standard output")
    plot = subcommand("plot", _plot, "draw the credits over time of one rank towards groups of ranks (PNG and SVG)")
    plot.add_argument("-o", "--output", metavar="NAME", default="velo-credits",
                      help="NAME.png and NAME.svg are written (default velo-credits)")
    plot.add_argument("--rank", type=int, default=0, help="whose credits (default 0)")
    plot.add_argument("--groups", metavar="RANGES",
                      help="groups of ranks, such as 0-15,16-31,32-63 (default: first quarter, second quarter, second half)")
    plot.add_argument("--phases", metavar="FILE", help="what velo-mpi-bench phases printed: draw over executions and mark the phases")
    plot.add_argument("--of", choices=["credits", "held", "quota"], default="credits",
                      help="credits: packets that the rank may send to the others (default); held: credits of the others for the "
                           "rank's own mailbox; quota: what the others intend for the rank in the long run (needs their traces)")
    return parser


def _remark(traces):
    """Says on standard error what is missing; a crash is no reason to show nothing."""
    for trace in traces:
        last = int(trace.records["kind"][-1]) if len(trace.records) else None
        if trace.cut_off_bytes:
            print(f"velo-trace: {trace.path}: the last record is cut off ({trace.cut_off_bytes} bytes ignored)", file=sys.stderr)
        if last == Kind.LIMIT:
            print(f"velo-trace: {trace.path}: ends at the limit of its size (btl_velo_trace_limit)", file=sys.stderr)
        elif not trace.complete:
            print(f"velo-trace: {trace.path}: has no end: the process runs or did not finalize; what it had buffered is missing",
                  file=sys.stderr)


@contextlib.contextmanager
def _output(options):
    if options.output is None:
        yield sys.stdout
    else:
        with open(options.output, "w", encoding="utf-8", newline="") as file:
            yield file


def _info(traces, _options):
    for trace in traces:
        header = trace.header
        times = trace.records["time_ns"]
        seconds = (int(times[-1]) - header["monotonic_ns"]) / 1e9 if len(times) else 0.0
        print(f"{trace.path}: job {trace.job} rank {trace.rank}, process {header['pid']} on {header['host']}, {header['policy']}, "
              f"{sizing_of(header)}, {len(trace.records)} records, "
              f"{seconds:.3f} s, {'complete' if trace.complete else 'no end'}")
        for number, name in KINDS.items():
            count = int((trace.records["kind"] == number).sum())
            if count:
                print(f"    {name:20} {count}")


def _json(traces, options):
    with _output(options) as file:
        chrome.write_chrome(traces, file)


def _csv(traces, options):
    with _output(options) as file:
        table.write_csv(traces, file)


def _plot(traces, options):
    write_plot = plotter(__package__, "")
    trace = next((trace for trace in traces if trace.rank == options.rank), None)
    if trace is None:
        raise TraceError(f"--rank {options.rank}: there are traces of rank {', '.join(str(trace.rank) for trace in traces)}")
    ranks = max([trace.rank] + [rank for job, rank in trace.peers().values() if job == trace.job]) + 1
    groups = parse_groups(options.groups) if options.groups else default_groups(ranks)
    phases = read_phases(options.phases) if options.phases else None
    name = pathlib.Path(options.output)
    paths = [name.with_name(name.name + ending) for ending in (".png", ".svg")]
    write_plot(paths, traces, trace, groups, phases, options.of)
    print(f"wrote {paths[0]} and {paths[1]}", file=sys.stderr)
