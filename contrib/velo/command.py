"""What the commands have in common between the shell and what they do."""

import argparse
import signal
import sys

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


class Trouble(Exception):
    """Something that the user can do something about; the text says what."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Begins as the help of programs in C++ does, and as help2man looks for it."""

    def add_usage(self, usage, actions, groups, prefix=None):
        super().add_usage(usage, actions, groups, "Usage: " if prefix is None else prefix)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **words):
        super().__init__(formatter_class=_Formatter, **words)


def parser(name, description, epilog=None):
    return _Parser(prog=name, description=description, epilog=epilog)


def run(name, act, options):
    """The exit status of a command: that of `act`, or what an exception amounts to."""
    # Who is ended, or whose terminal goes, must not leave its mpirun or its files behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        return act(options)
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_OK
    except (Trouble, OSError) as error:
        print(f"{name}: {said(error)}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def said(error):
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)


def failure_text(name, run):
    """A run that failed (`failure`, `command`, `output_tail`), for people."""
    tail = "".join(f"\n  | {line}" for line in run.output_tail.splitlines())
    return f"{name}: FAILED, {run.failure}\n  {run.command}{tail}"
