"""Progress on stderr: one line that changes in place on a terminal, a line now and then elsewhere."""

import sys
import time

_LINE_INTERVAL_SECONDS = 10.0


def clock(seconds):
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    return f"{minutes}:{seconds:02d}"


class Progress:
    def __init__(self, total, stream=None, now=time.monotonic):
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._now = now
        self._started = now()
        self._last_line = None
        self._done = 0
        self._shown_width = 0

    def starting(self, label):
        """A run begins; all runs before it are over."""
        elapsed = self._now() - self._started
        left = elapsed / self._done * (self._total - self._done) if self._done else None
        eta = "" if left is None else f", about {clock(left)} left"
        self._show(f"[{self._done + 1} of {self._total}] {clock(elapsed)} elapsed{eta}  {label}")
        self._done += 1

    def message(self, text):
        """A line that stays."""
        self._clear()
        print(text, file=self._stream, flush=True)

    def finish(self):
        self._clear()
        print(f"{self._done} runs in {clock(self._now() - self._started)}", file=self._stream, flush=True)

    def _show(self, text):
        if self._stream.isatty():
            self._clear()
            self._stream.write(text)
            self._shown_width = len(text)
            self._stream.flush()
        elif self._last_line is None or self._now() - self._last_line >= _LINE_INTERVAL_SECONDS:
            print(text, file=self._stream, flush=True)
            self._last_line = self._now()

    def _clear(self):
        if self._shown_width:
            self._stream.write("\r" + " " * self._shown_width + "\r")
            self._shown_width = 0
