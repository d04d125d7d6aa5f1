"""The command line."""

from pathlib import Path

from .. import command
from ..argument_types import choices, numbers, positive, positive_float, words
from .catalogue import BY_NAME, GROUPS
from .contestants import NAMES

_DESCRIPTION = "Repeats the experiments of the papers on flow control and schedules on this machine, and checks their statements."
_EPILOG = """\
examples:
  velo-measure papers list                names the experiments
  velo-measure papers run goal            those on schedules, E1 to E5
  contrib/nodes run -n 8 --slots 2 -- velo-measure papers run multicast   those between nodes, S1 to S9
  velo-measure papers run 5.3 6.8         runs two of them; each gets a directory with data.csv, plot.png, plot.svg, result.json
  velo-measure papers report results/lab  collects all that was run into results/lab/report.html

velo-measure papers COMMAND --help shows the options of a command.

Exit status: 0, 1 when a run failed or hung (or nothing could be run), 2 for a wrong command line or a missing
program, 130 when interrupted. A statement that is not shown here is a result, not a failure."""


def parse_options(arguments):
    parser = command.parser("velo-measure papers", _DESCRIPTION, _EPILOG)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="name the experiments, with sections and statements")
    run = commands.add_parser("run", help="run experiments", description=_DESCRIPTION)
    _add_run(run)
    report = commands.add_parser("report", help="collect what was run into one HTML file")
    report.add_argument("directory", type=Path, nargs="?", default=Path("results/lab"), help="default results/lab")
    report.add_argument("--output", type=Path, metavar="FILE", help="default DIR/report.html")
    report.add_argument("--simulated", type=Path, metavar="DIR", help="take in what velo-sim experiment has written there")
    options = parser.parse_args(arguments)
    if options.command == "run":
        _settle(options, run)
    return options


def _add_run(run):
    run.add_argument("names", nargs="+", type=_name, metavar="NAME", help="of velo-measure papers list, goal, multicast, or all")
    run.add_argument("--np", "--ranks", dest="ranks", type=positive, default=64, metavar="N", help="default 64; bandwidth and E1 to E5 have numbers of their own")
    run.add_argument("--quick", action="store_true", help="fewer sizes, one round, shorter measurements")
    run.add_argument("--policies", type=words, metavar="A,B,...", help="instead of those of the paper")
    run.add_argument("--slots", type=numbers, metavar="A,B,...", help="slots per peer instead of those of the experiment")
    run.add_argument("--reference-slots", type=positive, default=512, metavar="N",
                     help="slots per peer of the reference, none (default 512)")
    run.add_argument("--rounds", type=positive, metavar="N", help="times that everything runs (default 3, quick 1; paired 15)")
    run.add_argument("--time", type=positive_float, metavar="SECONDS",
                     help="of measurement in a run (default 0.5, quick 0.4)")
    run.add_argument("--timeout", type=positive_float, default=180.0, metavar="SECONDS",
                     help="a run that takes longer is killed and counts as a hang (default 180)")
    run.add_argument("--mpirun", metavar="PATH", help="default: mpirun.openmpi or mpirun on PATH")
    run.add_argument("--ompi-info", metavar="PATH", help="default: the one beside mpirun")
    run.add_argument("--measure", "--patterns", "--phases", metavar="PATH",
                     help="velo-mpi-bench, for what IMB-MPI1 does not have (default: on PATH or beside this program)")
    run.add_argument("--goal", metavar="PATH", help="velo-goal (default: on PATH or beside this program)")
    run.add_argument("--sim", metavar="PATH", help="velo-sim, of overview (default: on PATH or beside this program)")
    run.add_argument("--npb", metavar="DIR", help="where lu.A.8 or lu.A.x and the like are, of nas (default: $NPB_BIN)")
    run.add_argument("--contestants", type=lambda text: choices(text, NAMES), default=list(NAMES), metavar="A,B,...",
                     help=f"of E1 to E5 (default: {', '.join(NAMES)}; what is not there is skipped by name)")
    run.add_argument("--processors", type=words, default=(), metavar="A,B",
                     help="for the two pinned ranks of E1 to E5, in their order (default: as mpirun chooses)")
    run.add_argument("--bench", metavar="PATH", help="default: $IMB_MPI1, IMB-MPI1 on PATH, or velo-mpi-bench")
    run.add_argument("--mca", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                     help="a further MCA parameter; may be repeated")
    run.add_argument("--no-plot", action="store_true", help="data and verdicts only; needs no matplotlib")
    run.add_argument("--output", type=Path, default=Path("results/lab"), metavar="DIR", help="default results/lab")


def _settle(options, parser):
    options.names = list(dict.fromkeys(name for given in options.names for name in GROUPS.get(given, (given,))))
    options.time = options.time or (0.4 if options.quick else 0.5)
    if options.ranks < 4 or options.ranks % 2:
        parser.error("--ranks: the experiments need an even number of ranks, at least 4")
    smallest = min(options.slots or [8])
    if smallest < 4:
        parser.error(f"--slots {smallest}: a mailbox with 2 credit slots needs at least 4 slots per peer")


def _name(text):
    return text if text in GROUPS else choices(text, tuple(BY_NAME))[0]
