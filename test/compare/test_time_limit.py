"""A command that does not end is killed with everything that it started."""

import os
import sys
import time

from velo.process import run_limited


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


# Like mpirun: starts a rank in a process group of its own, which does not listen to SIGTERM.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)
print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_command_that_ends_keeps_its_output_and_status():
    finished = run_limited(["sh", "-c", "echo out; echo err >&2; exit 3"], dict(os.environ), 10)
    assert (finished.status, finished.timed_out) == (3, False)
    assert (finished.stdout, finished.stderr) == ("out\n", "err\n")


def test_what_velo_said_is_kept_though_many_lines_follow():
    said = "[node:1] btl:velo: btl_velo_slots is wrong"
    finished = run_limited(["sh", "-c", f"echo '{said}' >&2; seq 100 >&2"], dict(os.environ), 10)
    assert finished.tail().splitlines() == [said, *map(str, range(89, 101))]
    few = run_limited(["sh", "-c", f"seq 3 >&2; echo 'VELO-REPORT {{}}'; echo '{said}' >&2"], dict(os.environ), 10)
    assert few.tail().splitlines() == ["1", "2", "3", said]


def test_hanging_command_is_killed_with_its_ranks():
    started = time.monotonic()
    finished = run_limited([sys.executable, "-c", STUBBORN], dict(os.environ), 5)
    assert finished.timed_out
    assert time.monotonic() - started < 100
    pids = [int(word) for word in finished.stdout.split()]
    assert len(pids) == 2
    assert not any(alive(pid) for pid in pids)


def test_rank_left_behind_by_a_finished_mpirun_is_killed():
    finished = run_limited(["sh", "-c", "sleep 600 & echo $!"], dict(os.environ), 30)
    assert not finished.timed_out
    assert not alive(int(finished.stdout))
