"""Runs a command with a hard time limit, and leaves none of its processes behind."""

import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

# mpirun needs a moment to take its ranks down and to clean up after them.
_GRACE_SECONDS = 3.0
_POLL_SECONDS = 0.02
_TAIL_LINES = 12
_REPORT = "VELO-REPORT "  # a page of numbers
# What Velo has said, which Open MPI's own words about the end may follow by the page.
_OF_VELO = re.compile(r"^(\[[^]]*\] )?(btl|mtl|coll):velo\b")


@dataclass
class Finished:
    status: int  # as of subprocess: negative for a signal
    timed_out: bool
    seconds: float
    stdout: str
    stderr: str

    def failure(self, timeout_seconds):
        """Why it failed, or None."""
        if self.timed_out:
            return f"no end after {timeout_seconds:g} s, killed"
        if self.status != 0:
            return f"exit status {self.status}"
        return None

    def tail(self):
        """What it said last, below the first that Velo had said."""
        lines = [line for line in (self.stdout + "\n" + self.stderr).splitlines() if line.strip() and not line.startswith(_REPORT)]
        earlier = [line for line in lines[:-_TAIL_LINES] if _OF_VELO.match(line)]
        return "\n".join(earlier[:_TAIL_LINES] + lines[-_TAIL_LINES:])


def environment():
    """The environment of a run. Open MPI refuses root unless told; containers often have no one else."""
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    return {**os.environ, **root}


def shell_line(command):
    """The command as a user can repeat it."""
    return shlex.join(command)


def mca_words(parameters):
    """Of parameters that are there twice the last counts: mpirun would join their values with a comma."""
    return [word for name, value in dict(parameters).items() for word in ("--mca", name, str(value))]


def attempt(command, timeout_seconds):
    """How `command` has ended, and why it has failed, if it has; one that cannot be started has failed too."""
    try:
        finished = run_limited(command, environment(), timeout_seconds)
    except OSError as error:
        return Finished(127, False, 0.0, "", ""), f"cannot start: {error}"
    return finished, finished.failure(timeout_seconds)


def run_limited(command, env, timeout_seconds, directory=None, stdin=subprocess.DEVNULL, merged=False, log=None):
    """Runs `command` in a session of its own; past the time limit the whole session is ended.

    Files rather than pipes take the output: nothing blocks on a process that outlives mpirun. `merged`: standard error goes
    where standard output goes; `log`: a file of the caller's that takes both.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, cwd=directory, env=env, stdin=stdin, stdout=log or out,
                                   stderr=subprocess.STDOUT if merged or log else err, start_new_session=True)
        timed_out = True
        try:
            timed_out = not _ends_within(process, timeout_seconds)
        finally:
            end_session(process)
        return Finished(process.returncode, timed_out, time.monotonic() - started, _text_of(out), _text_of(err))


def _ends_within(process, seconds):
    """A wait with a time limit only looks every 50 ms."""
    waiting = threading.Thread(target=process.wait, daemon=True)
    waiting.start()
    waiting.join(seconds)
    return not waiting.is_alive()


def end_session(leader):
    """Ends what is left of the session of `leader`, politely first, and returns when all of it is gone.

    Open MPI puts each rank into a process group of its own, so a signal to one group would miss them; the session
    holds them all. A rank that mpirun left behind is no child of ours: only /proc tells when a signal has taken effect.
    """
    if leader.poll() is None:
        leader.terminate()
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline and (leader.poll() is None or _members(leader.pid)):
        time.sleep(_POLL_SECONDS)
    while members := _members(leader.pid):
        for pid in members:
            _kill(pid)
        leader.poll()
        time.sleep(_POLL_SECONDS)
    leader.wait()


def _members(session):
    """The living processes of a session."""
    members = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        state, session_of_entry = fields[0], int(fields[3])
        if session_of_entry == session and state not in "ZX":
            members.append(int(entry.name))
    return members


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _text_of(file):
    file.seek(0)
    return file.read().decode(errors="replace")
