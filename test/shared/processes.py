"""Programs that are ended from outside, and what they leave behind."""

import pathlib
import signal
import subprocess
import time

_PATIENCE_SECONDS = 30


def terminate_when_logged(command, environment, log, words, ending=signal.SIGTERM):
    """Starts a command, sends it the signal `ending` once the file `log` contains `words`, and returns the exit status."""
    # Who runs the tests may ignore the signal.
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(ending, signal.SIG_DFL))
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (log.exists() and words in log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(ending)
    return process.wait(2 * _PATIENCE_SECONDS)


def living_with(text):
    """The processes whose environment contains a text."""
    return [entry.parent.name for entry in pathlib.Path("/proc").glob("[0-9]*/environ") if _holds(entry, text)]


def _holds(environ, text):
    try:
        return text.encode() in environ.read_bytes()
    except OSError:
        return False
