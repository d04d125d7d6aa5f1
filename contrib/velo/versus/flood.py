"""Memory of a receiver over time while messages that no receive matches flood it: Velo's MTL beside other transports.

Compiles the measuring program with the mpicc of each MPI that it finds, runs it with two ranks, and writes CSV (contestant,
phase, seconds, resident KiB of the receiver) and a plot. A million messages of 1 KB take up to 2 GB of memory of the machine.
"""

import csv
import sys
import tempfile

from .. import command
from ..command import Trouble
from ..measuring import Compiler
from ..process import attempt, shell_line
from .contestants import Missing, OpenMpi, find_mpich

HEADING = ("contestant", "phase", "seconds", "kib")


def contestants(options):
    open_mpi = OpenMpi(options.mpirun, options.mpicc)
    pool = f"--mca mtl_velo_unexpected_pool {options.pool}"
    found = [open_mpi.matching(f"velo MTL, pool {options.pool}", pool),
             open_mpi.shared_memory(), open_mpi.ucx(), find_mpich()]
    for each in found:
        if isinstance(each, Missing):
            print(f"{each.name}: left out, {each.reason}", file=sys.stderr)
    return [each for each in found if not isinstance(each, Missing)]


def measure(contestant, options, compiler):
    words = contestant.command(2, [compiler.program(contestant.mpicc), "flood", options.messages, options.bytes, options.seconds])
    finished, failure = attempt(words, options.limit)
    if failure:
        raise Trouble(f"{contestant.name} failed, {failure}: {shell_line(words)}\n{finished.tail()}")
    rows = [line.split() for line in finished.stdout.splitlines() if line.startswith(("flood ", "receive "))]
    first, most = int(rows[0][2]), max(int(row[2]) for row in rows)
    print(f"{contestant.name}: {first / 1024:.0f} MB at first, {most / 1024:.0f} MB at most, {rows[-1][1]} s")
    return [[contestant.name, *row] for row in rows]


def plot(rows, options):
    from ..plotting import dress, pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == name]
        line, = axes.plot([float(row[2]) for row in own], [int(row[3]) / 1024 for row in own], label=name)
        turn = next(row for row in own if row[1] == "receive")
        axes.plot(float(turn[2]), int(turn[3]) / 1024, "o", color=line.get_color(), markersize=4)
    axes.set_yscale("log")
    dress(axes, f"{options.messages:,} messages of {options.bytes} bytes that no receive matches",
          "seconds (dot: the receiver begins to receive)", "resident memory of the receiver, MB")
    axes.legend()
    figure.tight_layout()
    figure.savefig(options.plot)


def main(arguments):
    parser = command.parser("velo-measure flood", __doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--bytes", type=int, default=1024, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=6,
                        help="after which the receiver receives, unless all has been sent (default: %(default)s)")
    parser.add_argument("--pool", default="16m", help="mtl_velo_unexpected_pool (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=280, help="seconds for one run (default: %(default)s)")
    parser.add_argument("--csv", default="flood.csv", help="default: %(default)s")
    parser.add_argument("--plot", default="flood.svg", help="its ending chooses the format (default: %(default)s)")
    parser.add_argument("--from", dest="source", help="only plot this CSV")
    parser.add_argument("--mpirun", help="of Open MPI")
    parser.add_argument("--mpicc", help="of Open MPI")
    return command.run("velo-measure flood", _run, parser.parse_args(arguments))


def _run(options):
    if options.source:
        with open(options.source, newline="", encoding="ascii") as file:
            rows = list(csv.reader(file))[1:]
    else:
        rows = []
        with tempfile.TemporaryDirectory() as folder, open(options.csv, "w", newline="", encoding="ascii") as file:
            compiler, writer = Compiler(folder), csv.writer(file)
            writer.writerow(HEADING)
            for contestant in contestants(options):
                print(f"{contestant.name}: at most {options.limit:.0f} s", file=sys.stderr, flush=True)
                rows += measure(contestant, options, compiler)
                # What is there stays, whatever comes of the next one.
                writer.writerows(row for row in rows if row[0] == contestant.name)
                file.flush()
    plot(rows, options)
    return command.EXIT_OK
