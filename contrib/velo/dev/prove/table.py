"""The summary: one line for each phase, and what it comes to."""

import dataclasses
import json
import textwrap

from .running import FAILED, PASSED, SKIPPED, Result

_DETAIL_WIDTH = 84


def text(results, source=""):
    """The table as text; long details go on in the lines below. Phases of another commit than `source` are named."""
    width = max([len("phase"), *(len(result.phase) for result in results)])
    lines = [f"{'phase':{width}}  {'outcome':7}  {'seconds':>7}  what ran, or why not"]
    for result in results:
        first, *rest = textwrap.wrap(result.detail, _DETAIL_WIDTH, break_long_words=False) or [""]
        seconds = f"{result.seconds:.0f}" if result.outcome != SKIPPED else "-"
        lines.append(f"{result.phase:{width}}  {result.outcome:7}  {seconds:>7}  {first}".rstrip())
        lines += [" " * (width + 20) + line for line in rest]
    earlier = [f"{result.phase} ({result.source})" for result in results if result.source not in ("", source)]
    if earlier:
        lines += ["", *textwrap.wrap(f"Proved for another commit than {source}: {', '.join(earlier)}", _DETAIL_WIDTH + width + 20)]
    return "\n".join([*lines, "", verdict(results)])


def verdict(results):
    """One line for all."""
    count = {outcome: sum(result.outcome == outcome for result in results) for outcome in (PASSED, FAILED, SKIPPED)}
    line = f"{count[PASSED]} passed, {count[FAILED]} failed, {count[SKIPPED]} skipped"
    if not count[PASSED] and not count[FAILED]:
        return f"{line}: nothing has been proved"
    return line


def exit_status(results):
    """0 only if something ran and nothing failed."""
    outcomes = {result.outcome for result in results}
    return 0 if PASSED in outcomes and FAILED not in outcomes else 1


def as_json(results):
    """For other programs, and for from_json."""
    return json.dumps([{**dataclasses.asdict(result), "seconds": round(result.seconds, 1)} for result in results], indent=2) + "\n"


def from_json(words):
    """The results that as_json has written. Raises ValueError for anything else."""
    try:
        return [Result(**entry) for entry in json.loads(words)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"these are no results of velo-prove: {error}") from error
