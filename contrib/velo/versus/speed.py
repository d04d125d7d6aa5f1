"""The series of runs: who starts at all, then everybody's turns."""

import sys
from dataclasses import dataclass

from ..measuring import CompileError
from ..rounds import Run, interleaved, perform_all
from . import report, runner, summary
from .contestants import Missing
from .patterns import BY_NAME, Case

_TRIAL_SIZE = 8
_HINT = ("velo-measure transports: Velo failed, so nothing else was started. Does Open MPI find the plugin? Try: ompi_info --param btl "
         "velo --level 9")


@dataclass
class TakingPart:
    found: list
    missing: list
    libraries: dict  # what MPI each says it is, by name

    @property
    def velo_starts(self):
        return bool(self.found) and self.found[0].name == "velo"


@dataclass
class Tables:
    lines: list
    classes: list


def try_out(found, missing, ranks, how):
    """One short run of each: whose compiler or start fails is missing for a stated reason, once and not at each point."""
    taking_part = TakingPart([], list(missing), {})
    case = Case(ranks, BY_NAME["pingpong"], (_TRIAL_SIZE,))
    for contestant in found:
        print(f"velo-measure transports: {contestant.name} is built and tried", file=sys.stderr, flush=True)
        library, reason = _trial(contestant, case, how)
        if reason is None:
            taking_part.found.append(contestant)
            taking_part.libraries[contestant.name] = library
            continue
        taking_part.missing.append(Missing(contestant.name, reason))
        print(f"velo-measure transports: {contestant.name} does not take part: {reason}", file=sys.stderr)
        if contestant.name == "velo":
            print(_HINT, file=sys.stderr)
            break
    return taking_part


def _trial(contestant, case, how):
    try:
        result = runner.execute(Run(case, contestant, 0), how)
    except CompileError as error:
        return None, str(error)
    return result.library, report.failure_text(result) if result.failure else None


def run_all(cases, contestants, rounds, how):
    """The results, and whether all runs took place: an interrupt keeps what there is."""
    runs = [run for run in interleaved(cases, contestants, rounds) if run.case.suits(run.setup)]
    return perform_all("velo-measure transports", runs, lambda run: runner.execute(run, how),
                       lambda run: f"{run.setup.name}, {run.case.title()}, round {run.round + 1}",
                       lambda failed: f"velo-measure transports: {report.failure_text(failed)}")


def tables(results, cases, contestants, min_blocks):
    lines = summary.summarise(results, cases, contestants, min_blocks)
    velos = [c.name for c in contestants if c.is_velo]
    return Tables(lines, [row for velo in velos for row in summary.size_classes(lines, velo)])
