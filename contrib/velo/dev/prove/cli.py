"""The command line."""

import datetime
import pathlib
import sys

from ... import command
from ...argument_types import positive, words
from . import table
from .phases import PHASES, choose, missing
from .running import PASSED, run, source_of

ROOT = pathlib.Path(__file__).resolve().parents[4]


def _parser():
    parser = command.parser(
        "velo-prove", "Runs the phases one after the other, each with a time limit and a log, whatever becomes of those before it,\n"
        "and ends with a table. The exit status is 0 only if something ran and nothing failed.")
    parser.add_argument("--list", action="store_true", help="the phases, and which of them cannot run here")
    parser.add_argument("--only", type=words, default=[], metavar="PHASE,...", help="these phases")
    parser.add_argument("--skip", type=words, default=[], metavar="PHASE,...", help="all but these")
    parser.add_argument("--limit", type=positive, metavar="SECONDS", help="for each phase, in place of its own limit")
    parser.add_argument("--logs", type=pathlib.Path, help="where logs and results.json go (default results/prove-DATE)")
    parser.add_argument("--resume", type=pathlib.Path, metavar="DIR",
                        help="go on where a run with these logs has ended: what has passed there is not run again; its results stay "
                             "in the table, which names their commit if it was another")
    return parser


def _results_of(directory):
    """Results of an earlier run by phase. Raises OSError, ValueError."""
    return {result.phase: result for result in table.from_json((directory / "results.json").read_text())}


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
    if arguments.resume and arguments.logs:
        parser.error("--resume names the directory of the logs, so there is nothing for --logs to say")
    try:
        phases = choose(arguments.only, arguments.skip)
        before = _results_of(arguments.resume) if arguments.resume else {}
    except (OSError, ValueError) as error:
        parser.error(str(error))
    logs = arguments.resume or arguments.logs or ROOT / "results" / f"prove-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    logs.mkdir(parents=True, exist_ok=True)
    results = dict(before)
    for phase in phases:
        if phase.name in before and before[phase.name].outcome == PASSED:
            continue
        print(f"{phase.name}: {phase.about} ...", file=sys.stderr, flush=True)
        results[phase.name] = run(phase, ROOT, logs / f"{phase.name}.log", arguments.limit)
        # After each phase: a machine that goes down takes one phase with it.
        (logs / "results.json").write_text(table.as_json(_in_order(results)))
    print(table.text(_in_order(results), source_of(ROOT)))
    return table.exit_status(results.values())


def _in_order(results):
    return [results[phase.name] for phase in PHASES if phase.name in results]
