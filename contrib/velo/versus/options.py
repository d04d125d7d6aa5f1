"""The command line."""

import argparse
import os
import re
import shlex
from pathlib import Path

from .. import command
from ..argument_types import choices, numbers, positive, positive_float
from .contestants import BEFORE, FOUND_BY_ITSELF
from .patterns import COLLECTIVE_NAMES, NAMES

_DESCRIPTION = """\
Measures Velo side by side with the other ways to run MPI inside a node: Open MPI with ob1 and vader (sm in 5.0),
Open MPI with UCX, and MPICH, as far as they are there. One MPI program is compiled for each of them; its runs take
turns, pinned to cores; it checks its data. How far apart the two processors are is measured beside each size: only times
of one distance (threads of a core, shared cache, far) are compared. Prints the ratio of Velo's time to the best of the
others' for each class of sizes with its goal, all sizes, and what is missing and why. Writes txt, csv, json, png and svg.
A time is the median over the blocks of a distance of the median of 5 repetitions in a block, which is a size in one run."""

_EPILOG = """\
Exit status: 0 when Velo completed everything (goals met or not), 1 when Velo failed, 2 for a wrong command line or
a missing program, 130 when interrupted."""


def parse_options(arguments):
    parser = command.parser("velo-measure transports", _DESCRIPTION, _EPILOG)
    _add_who(parser)
    _add_what(parser)
    _add_how(parser)
    options = parser.parse_args(arguments)
    _settle(options, parser)
    return options


def _add_who(parser):
    who = parser.add_argument_group("who takes part")
    who.add_argument("--variant", dest="variants", type=_variant, action="append", default=[], metavar="'NAME=WORDS'",
                     help="Velo once more with further words for mpirun, such as 'static=--mca btl_velo_flow_control "
                     "static'; may be repeated")
    who.add_argument("--mtl-variant", dest="mtl_variants", type=_variant, action="append", default=[], metavar="'NAME=WORDS'",
                     help="the same of Velo's MTL")
    who.add_argument("--before", type=Path, metavar="DIR",
                     help="Velo once more, as built in DIR (mca_btl_velo.so and mca_mtl_velo.so): the change from there to the "
                     "installed one, block by block")
    who.add_argument("--contestant", dest="contestants", type=_contestant, action="append", default=[],
                     metavar="'NAME|MPICC|MPIRUN WORDS'",
                     help="another MPI; {np} in the words is the number of ranks, appended as -n {np} if absent")
    who.add_argument("--only", type=_names, metavar="A,B,...",
                     help="of " + ", ".join(FOUND_BY_ITSELF) + "; velo (its BTL) is always there, mtl is its MTL")
    who.add_argument("--without", type=_names, default=[], metavar="A,B,...", help="leave these out")
    who.add_argument("--mpirun", metavar="PATH", help="of Open MPI (default: mpirun.openmpi or mpirun on PATH)")
    who.add_argument("--mpicc", metavar="PATH", help="of the same Open MPI (default: the one beside mpirun)")
    who.add_argument("--list", action="store_true", help="print who is there and who is missing, and end")


def _add_what(parser):
    what = parser.add_argument_group("what to measure")
    what.add_argument("--patterns", type=_patterns, metavar="A,B,...", help="of " + ", ".join(NAMES) + " (default: all; "
                      "with more than 2 ranks those that are not for a pair alone)")
    what.add_argument("--collectives", action="store_true",
                      help="collective operations instead, Velo with its component coll/velo: " + ", ".join(COLLECTIVE_NAMES)
                      + "; i... as a request that is waited for")
    what.add_argument("--sizes", type=_sizes, metavar="A,B,...", help="bytes (default: 0, 100 and powers of two to 4194304)")
    what.add_argument("--np", "--ranks", dest="ranks", type=_ranks, metavar="A,B,...",
                      help="numbers of ranks (default 2; 2,16,64 with --memory); more than there are cores: not pinned, "
                      "told to yield when idle")
    what.add_argument("--program", dest="programs", type=_program, action="append", default=[], metavar="'NAME=WORDS'",
                      help="a whole program instead of patterns, its seconds from MPI_Init to MPI_Finalize and how much of them is in MPI; {mpi} "
                      "in the words is openmpi, mpich or the name of a contestant, for which it is built; without, it is one of Open MPI's. "
                      "May be repeated")
    what.add_argument("--memory", action="store_true",
                      help="memory of the ranks instead of times; velo and vader, others if --only names them")
    what.add_argument("--between-nodes", action="store_true",
                      help="two ranks on two nodes, one on each: ping-pong and streaming against tcp and ucx; run it where mpirun "
                      "has the hosts, such as in contrib/nodes run --slots 1, with TMPDIR on a disk that both have")
    what.add_argument("--regret", action="store_true",
                      help="the default beside each fixed way of Velo's own and the others, with the few repetitions and the warm-up of "
                      "OSU's and IMB's benchmarks; runs osu_latency, osu_bw, osu_bibw and IMB-MPI1, too, if they are on PATH")
    what.add_argument("--quick", action="store_true", help="a short look: 2 rounds, 5 ms, every second power of two")


def _add_how(parser):
    how = parser.add_argument_group("how to measure")
    how.add_argument("--rounds", type=positive, metavar="N", help="times that everything runs (default 10)")
    how.add_argument("--min-blocks", type=positive, metavar="N",
                     help="of each contestant at one distance, below which there is no ratio (default 8; with --quick 1). A block "
                     "is a size in one run")
    how.add_argument("--processors", type=_processors, default=(), metavar="A,B",
                     help="where the two ranks run, to measure a certain distance (default: the first two cores)")
    how.add_argument("--point-ms", type=positive, metavar="MS",
                     help="time for a size in a run, in milliseconds (default 20); iterations follow from it")
    how.add_argument("--window", type=positive, default=64, metavar="N", help="messages at once in a stream (default 64)")
    how.add_argument("--timeout", type=positive_float, metavar="SECONDS",
                     help="a run that takes longer is killed and has failed (default 60; more than 2 ranks 180, or 3 a rank)")
    how.add_argument("--output", type=Path, default=Path("results"), metavar="DIR", help="default ./results")
    how.add_argument("--no-plot", action="store_true", help="tables only; needs no matplotlib")


def _settle(options, parser):
    """Defaults that depend on other options."""
    options.rounds = options.rounds or (2 if options.quick else 5 if options.regret else 10)
    options.min_blocks = options.min_blocks or (1 if options.quick else 8)
    options.point_ms = options.point_ms or (5 if options.quick else 20)
    options.ranks = options.ranks or ([2, 16, 64] if options.memory else [8] if options.collectives and options.between_nodes else [2])
    if options.programs and (options.between_nodes or options.memory or options.patterns):
        parser.error("--program: not with --patterns, --between-nodes or --memory")
    options.timeout = options.timeout or (600.0 if options.programs else 60.0 if max(options.ranks) == 2 else max(180.0, 3.0 * max(options.ranks)))
    if options.between_nodes and (options.memory or (options.ranks != [2] and not options.collectives)):
        parser.error("--between-nodes: two ranks, unless with --collectives, and not with --memory")
    if options.collectives and (options.memory or options.programs):
        parser.error("--collectives: not with --memory or --program")
    if wrong := [name for name in options.patterns or [] if name not in (COLLECTIVE_NAMES if options.collectives else NAMES)]:
        parser.error(f"--patterns: {wrong[0]} is " + ("none of --collectives" if options.collectives else "one of --collectives"))
    if options.regret and (options.between_nodes or options.memory or options.programs or options.collectives or options.patterns):
        parser.error("--regret: not with --patterns, --collectives, --between-nodes, --memory or --program")
    if options.processors and (options.between_nodes or options.memory or options.ranks != [2]):
        parser.error("--processors: two ranks on one node, and not with --memory")
    if options.memory and not options.only:
        options.only = ["velo", "vader", "sm"]
    options.given = [name for name, *_ in options.variants + options.mtl_variants + options.contestants]
    names = [*FOUND_BY_ITSELF, *options.given]
    names += BEFORE.values() if options.before else []
    if options.before and not any((options.before / f"mca_{layer}_velo.so").exists() for layer in BEFORE):
        parser.error(f"--before: {options.before} has neither mca_btl_velo.so nor mca_mtl_velo.so")
    if twice := [name for name in names if names.count(name) > 1]:
        parser.error(f"--variant, --mtl-variant, --contestant: there are two called {twice[0]!r}; give each a name of its own")
    if options.window > 1024:
        parser.error("--window: at most 1024 messages")
    if "velo" in options.without:
        parser.error("--without: velo cannot be left out, it is what the others are compared with")


def _variant(text):
    name, equals, extra = text.partition("=")
    if not equals or not _is_name(name) or not extra.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=WORDS")
    _check_quotes(extra)
    return name, extra


def _program(text):
    name, words = _variant(text)
    return name, tuple(shlex.split(words))


def _contestant(text):
    parts = [part.strip() for part in text.split("|", 2)]
    if len(parts) < 3 or not _is_name(parts[0]) or not all(parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME|MPICC|MPIRUN WORDS, such as "
                                         "'impi|mpiicc|mpirun -genv I_MPI_PIN 1 -n {np}'")
    _check_quotes(parts[2])
    return tuple(parts)


def _check_quotes(text):
    try:
        shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def _is_name(name):
    return re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name) is not None


def _names(text):
    return choices(text, FOUND_BY_ITSELF)


def _patterns(text):
    return choices(text, dict.fromkeys(NAMES + COLLECTIVE_NAMES))


def _sizes(text):
    return numbers(text, _size)


def _size(text):
    if not text.isdecimal() or int(text) > 1 << 30:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes from 0 to 1073741824")
    return int(text)


def _processors(text):
    listed = text.split(",")
    if len(set(listed)) != 2 or not all(word.isdecimal() for word in listed):
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers of processors, such as 0,1")
    usable = sorted(os.sched_getaffinity(0))
    if unusable := [word for word in listed if int(word) not in usable]:
        raise argparse.ArgumentTypeError(f"processor {unusable[0]} cannot be used here: there are {', '.join(map(str, usable))}")
    return tuple(map(int, listed))


def _ranks(text):
    ranks = numbers(text)
    if odd := [count for count in ranks if count % 2]:
        raise argparse.ArgumentTypeError(f"{odd[0]} is odd: ranks work in pairs")
    return ranks
