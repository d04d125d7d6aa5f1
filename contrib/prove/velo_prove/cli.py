"""The command line."""

import argparse
import datetime
import os
import pathlib
import sys

from . import table
from .phases import PHASES, choose, missing
from .running import run

ROOT = pathlib.Path(__file__).resolve().parents[3]


def _names(text):
    return [name for name in text.split(",") if name]


def _parser():
    parser = argparse.ArgumentParser(
        prog="velo-prove",
        description="Runs the phases one after the other, each with a time limit and a log, whatever becomes of those before "
                    "it, and ends with a table. The exit status is 0 only if something ran and nothing failed.")
    parser.add_argument("--list", action="store_true", help="the phases, and which of them cannot run here")
    parser.add_argument("--only", type=_names, default=[], metavar="PHASE,...", help="these phases")
    parser.add_argument("--skip", type=_names, default=[], metavar="PHASE,...", help="all but these")
    parser.add_argument("--limit", type=int, metavar="SECONDS", help="for each phase, in place of its own limit")
    parser.add_argument("--logs", type=pathlib.Path, help="where logs and results.json go (default results/prove-DATE)")
    return parser


def _list():
    width = max(len(phase.name) for phase in PHASES)
    for phase in PHASES:
        reason = missing(phase)
        print(f"{phase.name:{width}}  {phase.about}, at most {phase.limit_s // 60} min" + (f" (not here: {reason})" if reason else ""))


def main(argv):
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.list:
        _list()
        return 0
    try:
        phases = choose(arguments.only, arguments.skip)
    except ValueError as error:
        parser.error(str(error))
    logs = arguments.logs or ROOT / "results" / f"prove-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    logs.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    results = []
    for phase in phases:
        print(f"{phase.name}: {phase.about} ...", file=sys.stderr, flush=True)
        results.append(run(phase, ROOT, logs / f"{phase.name}.log", arguments.limit))
        # After each phase: a machine that goes down takes one phase with it.
        (logs / "results.json").write_text(table.as_json(results))
    print(table.text(results))
    return table.exit_status(results)
