"""The command line."""

from pathlib import Path

from .. import command
from ..argument_types import choices, numbers, positive, positive_float, words
from ..processors import cores
from . import thesis
from .plan import ALL, BY_REFERENCE, DEFAULT_BY_REFERENCE, DEFAULT_POLICIES, KNOWN, QUICK_SUITE, SUITE

_DESCRIPTION = """\
Runs IMB benchmarks under Open MPI with Velo's flow-control policies and numbers of mailbox slots per peer, with
all data in packets and by reference where credits are short, taking turns, and
compares them: time, overhead, delayed sends, messages by reference, credit packets, piggybacked credits, steals and
memory of mailbox and outbox. Overheads are against `none` with --reference-slots in packets, measured in the same
run. All numbers are medians over the rounds. Writes a table (txt, csv, json) and a plot (png) for each message size.
"""

_EPILOG = """\
Exit status: 0, 1 when a run failed or hung, 2 for a wrong command line or a missing program."""


def parse_options(arguments):
    parser = command.parser("velo-measure policies", _DESCRIPTION, _EPILOG)
    _add_what(parser)
    _add_how(parser)
    options = parser.parse_args(arguments)
    _settle(options, parser)
    return options


def _add_what(parser):
    what = parser.add_argument_group("what to compare")
    what.add_argument("--np", "--ranks", dest="np", type=positive, default=max(2, cores()), metavar="N",
                      help="processes (default: as many as cores, at least 2)")
    what.add_argument("--slots", type=numbers, metavar="A,B,...", help="mailbox slots per peer (default 8,16,64); rnr, "
                      "mvapich_static and lazy get mailboxes of that size by their own parameters")
    what.add_argument("--policies", type=words, default=list(DEFAULT_POLICIES), metavar="A,B,...",
                      help="flow control, of those that the plugin offers, or " + ALL + " (default " + ",".join(DEFAULT_POLICIES) + ")")
    what.add_argument("--by-reference", type=_by_reference, metavar="A,B,...",
                      help="values of btl_velo_by_reference, of " + ", ".join(BY_REFERENCE) + " (default " + ",".join(DEFAULT_BY_REFERENCE) + ")")
    what.add_argument("--reference-slots", type=positive, metavar="N",
                      help="slots per peer of the reference, none (default: the largest of --slots)")
    what.add_argument("--benchmarks", type=_benchmarks, metavar="A,B,...",
                      help="of " + ", ".join(KNOWN) + f" (default: {len(SUITE)} of them)")
    what.add_argument("--sizes", "--size", type=numbers, default=[2048], metavar="A,B,...",
                      help="message sizes in bytes (default 2048)")
    what.add_argument("--thesis", action="store_true",
                      help="the thesis's protocol: all data in packets with a header each, credit packets at once, rendezvous above 2 KB of "
                      f"payload, a reference with {thesis.REFERENCE_SLOTS} slots per peer; the parameters are those of {thesis.FILE.name}")
    what.add_argument("--quick", action="store_true",
                      help="a short look: " + ", ".join(QUICK_SUITE) + "; 8 and 64 slots; fewer repetitions")


def _add_how(parser):
    how = parser.add_argument_group("how to run")
    how.add_argument("--rounds", type=positive, default=3, metavar="N", help="times that everything runs (default 3)")
    how.add_argument("--iterations", type=positive, metavar="N",
                     help="most repetitions in a run (default 10000, quick 2000)")
    how.add_argument("--time", type=positive_float, default=0.25, metavar="SECONDS",
                     help="longest measurement in a run (default 0.25): fewer repetitions above it")
    how.add_argument("--timeout", type=positive_float, default=60.0, metavar="SECONDS",
                     help="a run that takes longer is killed and counts as a hang (default 60)")
    how.add_argument("--mpirun", metavar="PATH", help="default: mpirun.openmpi or mpirun on PATH")
    how.add_argument("--ompi-info", metavar="PATH", help="default: the one beside mpirun")
    how.add_argument("--bench", metavar="PATH",
                     help="default: $IMB_MPI1, IMB-MPI1 on PATH, or velo-mpi-bench")
    how.add_argument("--transport", default="velo", metavar="BTLS",
                     help="value of --mca btl (default velo); another one shows how much the machine varies")
    how.add_argument("--mca", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                     help="a further MCA parameter; may be repeated")
    how.add_argument("--output", type=Path, default=Path("results"), metavar="DIR", help="default ./results")
    how.add_argument("--no-plot", action="store_true", help="tables only; needs no matplotlib")


def _settle(options, parser):
    """Defaults that depend on other options."""
    quick = options.quick
    options.slots = sorted(options.slots or ([8, 64] if quick else [8, 16, 64]))
    options.benchmarks = options.benchmarks or list(QUICK_SUITE if quick else SUITE)
    options.iterations = options.iterations or (2000 if quick else 10000)
    if options.thesis and options.by_reference not in (None, ["never"]):
        parser.error("--thesis: nothing goes by reference in it; leave --by-reference out")
    options.by_reference = ["never"] if options.thesis else options.by_reference or list(DEFAULT_BY_REFERENCE)
    options.reference_slots = options.reference_slots or (thesis.REFERENCE_SLOTS if options.thesis else options.slots[-1])
    given = thesis.parameters() if options.thesis else []
    options.mca = [pair for pair in given if pair[0] != "btl_velo_by_reference"] + [tuple(pair) for pair in options.mca]
    if not options.policies:
        parser.error("--policies: an empty list")
    if options.np < 2:
        parser.error("--np: a comparison needs at least 2 processes")


def _by_reference(text):
    return choices(text, BY_REFERENCE)


def _benchmarks(text):
    return choices(text, KNOWN)
