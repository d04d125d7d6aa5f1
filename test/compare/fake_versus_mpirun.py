#!/usr/bin/python3 -S
"""Stands in for the mpirun of Open MPI under velo-measure transports: answers --version and prints what the measuring program would.

Without an environment a message takes 10 us with btl velo, 8 us with mtl velo, 12 us with tcp, 20 us with vader, 40 us with pml ucx, 16 us with coll sm, 11 us without multicast, and 5 us with a
parameter btl_velo_fast or the components of a directory older; FAKE_TIMES, a JSON object "contestant:pattern:bytes" to microseconds, changes that for some.
FAKE_HANG, FAKE_FAIL and FAKE_DEFECT name such a point at which the contestant hangs, fails, or finds wrong data.
FAKE_SLOWS_DOWN names a contestant whose times grow by half of the first with each call after its second.
A cache line takes 0.05 us and nobody slows down, before and after each size; FAKE_LINES, a JSON object "contestant:round" to
the four numbers, changes that.
FAKE_VERSION is the version of Open MPI, 4.1.4 unless set.
FAKE_LOG names a file that gets "contestant:pattern:ranks" for each call.
"""

import json
import os
import sys
import time

USUAL = {"velo": 10.0, "mtl": 8.0, "vader": 20.0, "sm": 20.0, "ucx": 40.0, "tcp": 12.0, "fast": 5.0, "before": 5.0, "given": 30.0, "coll-sm": 16.0, "tree": 11.0}


def contestant(words):
    if any(word.endswith("/older:usual") for word in words):
        return "before"
    if "btl_velo_fast" in words:
        return "fast"
    if "coll_velo_multicast" in words and words[words.index("coll_velo_multicast") + 1] == "off":
        return "tree"
    if "coll_sm_priority" in words:
        return "coll-sm"
    if "ucx" in words:
        return "ucx"
    if "mtl" in words:
        return "mtl"
    return words[words.index("btl") + 1].partition(",")[0] if "btl" in words else "given"


def calls_so_far(name):
    with open(os.environ["FAKE_LOG"], encoding="utf-8") as log:
        return sum(1 for line in log if line.startswith(name + ":"))


def print_point(name, pattern, size):
    point = f"{name}:{pattern}:{size}"
    if os.environ.get("FAKE_HANG") == point:
        sys.stdout.flush()
        time.sleep(600)
    if os.environ.get("FAKE_FAIL") == point:
        sys.stdout.flush()
        sys.exit("rank 1: something went wrong")
    usec = json.loads(os.environ.get("FAKE_TIMES", "{}")).get(point, USUAL[name])
    if os.environ.get("FAKE_SLOWS_DOWN") == name:
        usec *= 1 + 0.5 * max(0, calls_so_far(name) - 2)
    print(f"point {pattern} {size} {usec} {usec / 2} {usec} 100 5 {3 if os.environ.get('FAKE_DEFECT') == point else 0} 1 1.0")


def print_memory(name, ranks):
    own = {"velo": 1000, "vader": 2000}[name]
    for when, more in (("started", 0), ("connected", ranks), ("used", 4 * ranks)):
        for kind, kib in (("Pss", own + more + 700), ("Pss_Anon", own), ("Pss_File", 700), ("Pss_Shmem", more)):
            print(f"memory {when} {kind} {kib} {kib + 1}")


def run_program(words, ranks):
    """A program that takes as many seconds as a message takes microseconds; in MPI it is a tenth of that on rank 0, and more on others."""
    at = words.index("env")
    name = contestant(words[:at])
    print(" ".join(words[at + 1:]))
    for rank in range(ranks):
        print(f"velo-time {USUAL[name] - rank} {USUAL[name] * (rank + 1) / 10}", file=sys.stderr)


def pattern_of(arguments):
    """As velo-measure transports calls it."""
    has = dict(zip(arguments[2::2], arguments[3::2]))
    return ("i" if has.get("--request") == "1" else "") + arguments[1] + ("-rotating" if has.get("--hold") == "1" else "")


def main():
    words = sys.argv[1:]
    if words == ["--version"]:
        print(f"mpirun (Open MPI) {os.environ.get('FAKE_VERSION', '4.1.4')}")
        return
    ranks = words[words.index("-n") + 1]
    if "env" in words:
        return run_program(words, int(ranks))
    program = next(i for i, word in enumerate(words) if "/measure-" in word)
    name, arguments = contestant(words[:program]), words[program + 1:]
    pattern = "memory" if arguments == ["memory"] else pattern_of(arguments)
    with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{name}:{pattern}:{ranks}\n")
    print(f"bench 1 {ranks} Fake MPI 9, of the tests")
    if arguments == ["memory"]:
        print_memory(name, int(ranks))
    else:
        for size in arguments[arguments.index("--bytes") + 1].split(","):
            if "--line" in arguments:
                lines = json.loads(os.environ.get("FAKE_LINES", "{}")).get(f"{name}:{calls_so_far(name) - 1}", [0.05, 1.0, 0.05, 1.0])
                print("line", size, *lines)
            print_point(name, pattern, size)
    print("end")


main()
