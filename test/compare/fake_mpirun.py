#!/usr/bin/python3 -S
"""Stands in for mpirun: prints what a benchmark on Velo would, by made-up rules that the tests know.

The time is 10 us, plus 64 / slots us for static and 8 / slots us for dynamic flow control, and a tenth of that by reference.
FAKE_HANG, FAKE_FAIL and FAKE_DEFECT name a policy, slots and a way by reference ("static:8:never") that hang, fail or find
wrong data; FAKE_NO_REPORT leaves the report out; FAKE_LOG names a file that gets a line for each call.
"""

import json
import os
import sys
import time


def parameters():
    words = sys.argv
    return {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "--mca"}


def is_meant(variable, setup):
    return os.environ.get(variable) == setup


def print_section(benchmark, size, time_usec, defects):
    print(f"# Benchmarking {benchmark}\n# #processes = 4")
    print("       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]      defects")
    print(f"{size} 1000 {time_usec} {time_usec} {time_usec} {defects}")
    print("\n# All processes entering MPI_Finalize")


def print_report(policy, slots, mode):
    names = ("messages_sent messages_delayed data_packets credit_packets credits_in_packets piggybacked_credits "
             "messages_by_reference batches batched_messages outbox_full requests responses steals stolen_slots").split()
    total = {name: 0 for name in names} | {"messages_sent": 1000}
    if policy != "none":
        total |= {"messages_delayed": 800 // max(slots, 1), "credit_packets": 160 // max(slots, 1), "piggybacked_credits": 5}
        if mode == "auto":
            total |= {"messages_delayed": 0, "messages_by_reference": 900, "outbox_full": 2}
    if policy == "dynamic":
        total["steals"] = 3
    ranks = [{"rank": rank, "mailbox_bytes": slots * 64 * 3,
              "outbox_high_water": 4096 * rank if total["messages_by_reference"] else 0} for rank in range(4)]
    print("VELO-REPORT " + json.dumps({"version": 1, "total": total, "per_rank": ranks}), file=sys.stderr)


def main():
    values = parameters()
    policy = values["btl_velo_flow_control"]
    slots = int(values.get("btl_velo_slots_per_peer", values.get("btl_velo_preposted_buffers", 0)))
    mode = values["btl_velo_by_reference"]
    setup = f"{policy}:{slots}:{mode}"
    if log := os.environ.get("FAKE_LOG"):
        with open(log, "a", encoding="utf-8") as file:
            file.write(setup + "\n")
    if is_meant("FAKE_HANG", setup):
        time.sleep(600)
    if is_meant("FAKE_FAIL", setup):
        sys.exit("rank 2: something went wrong")
    bench = sys.argv.index("-npmin") - 1
    with open(sys.argv[sys.argv.index("-msglen") + 1], encoding="ascii") as lengths:
        size = lengths.read().strip()
    cost = {"static": 64, "dynamic": 8}.get(policy, 0) / (10 if mode == "auto" else 1)
    print_section(sys.argv[bench], size, 10 + cost / max(slots, 1), 2 if is_meant("FAKE_DEFECT", setup) else 0)
    if "FAKE_NO_REPORT" not in os.environ:
        print_report(policy, slots, mode)


main()
