"""Runs an MPI program and shows Velo's performance variables; velo-pvars --help says how."""

import argparse
import os
import sys
from pathlib import Path

from . import command
from .command import EXIT_USAGE

LIBRARY = "libvelo-pvars.so"
EXIT_NOT_FOUND = 127
EPILOG = """examples:
  velo-pvars mpirun --mca pml ob1 --mca btl velo -np 2 ./program
                        a table at the end
  velo-pvars --every 5 --peers -o pvars.txt mpirun --mca pml ob1 --mca btl velo -np 2 ./program
                        every five seconds as well, each peer, into a file

It preloads a library into the command and all that it starts. In each MPI process the library reads the variables
btl_velo_* through MPI_T; it is no PMPI tool and can be used together with one. The program is not changed. What it
cannot do: see programs that link Open MPI statically or that take no LD_PRELOAD (set-user-id); show the end of a
program that never comes to MPI_Finalize (--every shows it up to there); count what MPI_Init itself sends. Programs in
Fortran must call MPI_INIT or MPI_INIT_THREAD of the library's C, mpif.h, mpi or mpi_f08 interface. With processes on
other nodes give mpirun -x LD_PRELOAD -x VELO_PVARS_EVERY -x VELO_PVARS_PEERS
-x VELO_PVARS_ALL -x VELO_PVARS_OUTPUT as well.
"""


def find_library():
    """As installed, or, in a build tree, where $VELO_PVARS_LIBRARY says."""
    named = os.environ.get("VELO_PVARS_LIBRARY")
    prefix = Path(sys.argv[0]).resolve().parents[1]
    places = ["lib", "lib64", *(f"lib/{path.name}" for path in (prefix / "lib").glob("*-linux-gnu"))]
    candidates = [Path(named)] if named else [prefix / place / "velo" / LIBRARY for place in places]
    return next((path for path in candidates if path.is_file()), None), candidates


def seconds(text):
    value = float(text)
    if not 0.01 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.01 and 1000000 seconds")
    return value


def parse(arguments):
    parser = command.parser("velo-pvars", "Runs an MPI program and shows Velo's performance variables.", EPILOG)
    parser.add_argument("--every", type=seconds, metavar="SECONDS", help="show what has changed in each process that often, too")
    parser.add_argument("--peers", action="store_true", help="show the values of each peer as well")
    parser.add_argument("--all", action="store_true", help="show what is 0 in all processes as well")
    parser.add_argument("-o", "--output", metavar="FILE", help="append to FILE in place of standard error")
    parser.add_argument("command", help="mpirun, or an MPI program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    library, candidates = find_library()
    if library is None:
        print(f"velo-pvars: {LIBRARY} is not there: looked for {', '.join(map(str, candidates))}; make install puts it there, "
              "VELO_PVARS_LIBRARY names another place", file=sys.stderr)
        return EXIT_USAGE
    environment = dict(os.environ)
    environment["LD_PRELOAD"] = " ".join(filter(None, [str(library), environment.get("LD_PRELOAD")]))
    for name, value in (("EVERY", options.every), ("PEERS", 1 if options.peers else None), ("ALL", 1 if options.all else None),
                        ("OUTPUT", os.path.abspath(options.output) if options.output else None)):
        environment.pop(f"VELO_PVARS_{name}", None)
        if value is not None:
            environment[f"VELO_PVARS_{name}"] = str(value)
    if options.output:
        try:
            with open(options.output, "a", encoding="utf-8"):
                pass
        except OSError as error:
            print(f"velo-pvars: {options.output}: {error.strerror}", file=sys.stderr)
            return EXIT_USAGE
    try:
        os.execvpe(options.command, [options.command, *options.arguments], environment)
    except OSError as error:
        print(f"velo-pvars: {options.command}: {error.strerror}", file=sys.stderr)
        return EXIT_NOT_FOUND

