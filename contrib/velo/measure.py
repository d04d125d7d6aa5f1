"""Measures: Velo's flow control policies, Velo beside other transports, what the papers state, memory under a flood."""

import importlib

from . import command

VERBS = {"policies": ("compare", "flow control policies on a benchmark suite"),
         "transports": ("versus", "Velo beside vader, UCX and MPICH: times, collectives, whole programs, memory"),
         "papers": ("lab", "the papers' experiments; checks each statement on this machine"),
         "flood": ("versus.flood", "memory of a receiver over time, under a flood of messages without receives")}

EPILOG = """examples:
  velo-measure policies --quick
                        a short look, with a plot
  velo-measure transports --list
                        which transports there are, and which are missing and why
  velo-measure papers list
                        the experiments

velo-measure COMMAND --help shows the options of a command."""


def main(arguments):
    if arguments and arguments[0] in VERBS:
        module = importlib.import_module(f"{__package__}.{VERBS[arguments[0]][0]}")
        return (getattr(module, "main", None) or importlib.import_module(f"{module.__name__}.cli").main)(arguments[1:])
    parser = command.parser("velo-measure", __doc__, EPILOG)
    verbs = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (_, help_text) in VERBS.items():
        verbs.add_parser(name, help=help_text, add_help=False)
    parser.parse_args(arguments)
    return command.EXIT_USAGE
