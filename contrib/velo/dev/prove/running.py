"""Runs one phase: its output goes to a log, and a phase that does not end is ended with all that it started."""

import dataclasses
import subprocess

from ...process import environment, run_limited
from .phases import missing, what_ran

PASSED, FAILED, SKIPPED = "passed", "FAILED", "skipped"
# What a command of ours exits with when it finds nothing here that it could run; automake's number for the same.
NOTHING_TO_RUN = 77


@dataclasses.dataclass(frozen=True)
class Result:
    """`detail`: what ran, or why not. `seconds`: 0 for what did not run. `source`: the commit that was proved."""

    phase: str
    outcome: str
    detail: str
    seconds: float = 0
    source: str = ""


def source_of(root):
    """The commit in `root`, "-dirty" if files differ from it; empty outside of a repository."""
    found = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=root, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False)
    return found.stdout.strip()


def run(phase, root, log_path, limit_s=None):
    """The result of the phase. `limit_s` instead of the phase's own limit."""
    reason = missing(phase)
    if reason:
        return Result(phase.name, SKIPPED, reason)
    source = source_of(root)
    limit_s = limit_s or phase.limit_s
    with open(log_path, "wb") as log:
        ended = run_limited(phase.command, {**environment(), **phase.environment}, limit_s, root, log=log)
    outcome, detail = judge(phase, None if ended.timed_out else ended.status, log_path.read_text(errors="replace"), limit_s)
    if outcome == FAILED:
        detail += f"; see {log_path}"
    return Result(phase.name, outcome, detail, ended.seconds, source)


def judge(phase, status, text, limit_s):
    """Outcome and detail. `status`: exit status, None if the time was over."""
    ran = what_ran(phase, text)
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
    if status is None:
        return FAILED, f"still running after {limit_s} s: {ran or last}"
    if status == 0:
        return PASSED, ran or "exit status 0"
    if status == NOTHING_TO_RUN:
        return SKIPPED, last
    return FAILED, f"exit status {status}: {ran or last}"

