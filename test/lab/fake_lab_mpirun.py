#!/usr/bin/python3 -S
"""Stands in for mpirun: a machine that behaves as the papers say, by rules that the tests know.

An alltoall takes 1000 us. Under static flow control it takes 50 % longer, with all messages delayed, unless the data region
has room for the 37 packets of a message and the sender keeps 37 credits (equation 5.3); under dynamic flow control the
mailbox counts as many times as there are more ranks than active ones. By reference nothing is delayed. FAKE_FLAT=1: every run takes 1000 us. FAKE_HANG and
FAKE_FAIL name a policy and slots ("static:8"), FAKE_DEFECT too, FAKE_FAIL also a policy alone; FAKE_WITHOUT names a counter that no rank reports; FAKE_LOG names a file that gets a line for each call.

With schedules (--mca coll velo,...) collectives take 1 us and hide behind a computation; without them 4 us, and they do not.
A message takes 2 us, an addition 0.1 us and 0.1 ns a byte, and 0.2 us more as a schedule. By multicast a broadcast takes 1.25 us on any number of nodes. FAKE_FLAT: no difference.
"""

import json
import os
import struct
import sys
import time

WORDS = sys.argv
MCA = {WORDS[i + 1].removeprefix("btl_velo_"): WORDS[i + 2] for i, word in enumerate(WORDS) if word == "--mca"}
if "--version" in WORDS:
    print("mpirun (Open MPI) 4.1.4")
    sys.exit()
RANKS = int(WORDS[WORDS.index("-np" if "-np" in WORDS else "-n") + 1])
POLICY = MCA.get("flow_control", "dynamic")
SLOTS = int(MCA.get("slots_per_peer", MCA.get("preposted_buffers", 0)))
CREDIT_SLOTS = int(MCA.get("credit_slots", 2))
SETUP = f"{POLICY}:{SLOTS}"
PACKETS = 37
NOISE = float(os.environ.get("FAKE_NOISE", 1))  # slowest batch by fastest batch


def option(name, default=None):
    return WORDS[WORDS.index(name) + 1] if name in WORDS else default


def slowness(active):
    """(overhead, share of delayed messages)."""
    quota = SLOTS - CREDIT_SLOTS
    if MCA.get("by_reference") == "auto":
        return 0.01, 0.0
    if POLICY == "none" or "FAKE_FLAT" in os.environ:
        return 0.0, 0.0
    if POLICY == "dynamic":
        quota = SLOTS * RANKS // active - CREDIT_SLOTS
    if quota - quota // (CREDIT_SLOTS + 1) >= PACKETS:
        return 0.01, 0.0
    return (0.2, 0.5) if quota >= PACKETS else (0.5 + 1.0 / (1 + max(0, quota)), 1.0)


def report(delayed, credit_packets=None, share=0):
    names = ("messages_sent messages_delayed data_packets credit_packets credits_in_packets piggybacked_credits "
             "messages_by_reference batches batched_messages outbox_full requests responses steals stolen_slots").split()
    total = {name: 0 for name in names} | {"messages_sent": 1000, "messages_delayed": round(1000 * delayed), "refused": 7}
    if POLICY != "none":
        total["credit_packets"] = (6 if MCA.get("piggyback") == "0" else 3) * (1 if POLICY == "dynamic" else 2)
    if credit_packets is not None:
        total["credit_packets"] = credit_packets
    ranks = [{"rank": rank, "mailbox_bytes": SLOTS * 64 * RANKS, "mailbox_high_water": SLOTS, "largest_share": share} for rank in range(RANKS)]
    for of_rank in ranks:
        of_rank.pop(os.environ.get("FAKE_WITHOUT"), None)
    print("VELO-REPORT " + json.dumps({"version": 1, "total": total, "per_rank": ranks}), file=sys.stderr)


def trace_records(phases, repetitions):
    """Rank 0: the credits of the active ranks rise in each phase and those of the others fall."""
    for rank in range(1, RANKS):
        yield 1, 1, rank, rank, 30
    for phase, active in enumerate(phases):
        at_ns = 1000 * repetitions * phase + 10
        for rank in range(1, RANKS):
            yield at_ns, 4, rank, 1, 30 * RANKS // active if rank < active else 2


def write_trace(phases, repetitions):
    header = struct.pack("<8sIIIIQ", b"VELOTRAC", 1, 256, 32, 0x01020304, 0).ljust(256, b"\0")
    with open(os.path.join(MCA["trace"], "velo.1.0.vtrace"), "wb") as file:
        file.write(header)
        for at_ns, kind, peer, count, credits in trace_records(phases, repetitions):
            file.write(struct.pack("<QHHIIIII", at_ns, kind, 0, peer, count, credits, 0, 0))


def run_phases():
    words = WORDS[WORDS.index("phases") + 1:]
    repetitions, phases = int(words[0]), [RANKS // int(part) for part in words[2].split(",")]
    print("mark 0 0")
    for number, active in enumerate(phases):
        overhead, _ = slowness(active)
        print(f"phase {number} ranks {active} executions {repetitions} begin_ns 0 end_ns 0 slowest_us {1000 * (1 + overhead)} "
              "defects 0")
        print(f"mark {(number + 1) * repetitions} {1000 * repetitions * (number + 1)}")
    print("end")
    if "trace" in MCA:
        write_trace(phases, repetitions)


def run_pattern(defects):
    overhead, delayed = slowness(int(option("--active", RANKS)))
    usec = 1000 * (1 + overhead)
    window = int(option("--window", 0))
    size = int(option("--bytes", 2048))
    print(f"bench 1 {RANKS} Fake MPI\npoint name {size} {usec} {usec} {usec * NOISE} 20 5 {defects} 1000 {window * size / usec}\nend")
    if "--calls" in WORDS:
        print(f"counted {size} 2000 {round(2000 * delayed)}")
        delayed = 1.0  # the barriers between calls wait, too, and are nobody's
    report(delayed)


def run_bench(defects):
    name = WORDS[WORDS.index("/bin/true") + 1]
    name = f"Multi-{name}" if "-multi" in WORDS else name
    overhead, delayed = slowness(2 if name.startswith("Multi-") else RANKS)
    usec = 10 * (1 + overhead)
    print(f"# Benchmarking {name}\n# #processes = {RANKS}")
    print("       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]      defects")
    with open(option("-msglen"), encoding="ascii") as lengths:
        size = lengths.read().strip()
    print(f"{size} 1000 {usec} {usec} {usec} {defects}\n\n# All processes entering MPI_Finalize")
    report(delayed)


def run_nas(code):
    """Tables 1 and 2 of Liu and Panda. FAKE_DEFECT names a code whose results are wrong."""
    is_lu = code == "lu" and "FAKE_FLAT" not in os.environ
    print(f" Time in seconds =  1.00\n Verification    =  {'UN' * (os.environ.get('FAKE_DEFECT') == code)}SUCCESSFUL")
    report(0.0, 220 if is_lu else 0, 63 if is_lu else 4)


def run_with_schedules():
    is_schedule = MCA.get("coll", "").startswith("velo") and "FAKE_FLAT" not in os.environ
    is_goal = "measure" in WORDS or "run" in WORDS
    size = int(option("--bytes", 8))
    call = 1.0 if is_schedule or (is_goal and "FAKE_FLAT" not in os.environ) else 4.0
    if "run" in WORDS:
        joined = "alltoall:nodes" in WORDS and "FAKE_FLAT" not in os.environ
        if "verbose" in MCA:
            # Of 8 nodes with two ranks each; five runs.
            peers = [7 * (rank % 2 == 0) if joined else 14 for rank in range(RANKS)]
            print("".join(f"[node] schedules: to other nodes {5 * count} messages, to {count} processes\n" for count in peers), file=sys.stderr)
        # Start-ups count as much as 1000 bytes.
        call = (7 + size * 14e-3 if joined else 14 + size * 7e-3) if "alltoall" in " ".join(WORDS) else call
        print(json.dumps({"repetitions": 1, "ranks": [{"median_s": (call + rank) * 1e-6} for rank in range(RANKS)]}))
        return
    print(f"bench 1 {RANKS} Fake MPI")
    if "overlap" in WORDS:
        compute = 1e-3 * int(option("--matrix")) ** 2 if "--matrix" in WORDS else call
        hidden = is_schedule or option("--tests") == "1"
        wait, lost = (0.01 if hidden else call), (0.01 if is_schedule else 0.2)
        print(f"overlap X {size} 0 {call} {compute} {compute + wait + lost} {wait} {lost} 10 0")
    else:
        usec = {"pingpong": 2.0, "PingPong": 2.0, "local": 0.3 + 1e-4 * size, "loop": 0.1 + 1e-4 * size}
        usec = next((value for name, value in usec.items() if name in WORDS), call + (RANKS - 1) / 2)
        if "PingPong" in WORDS and "multicast" in " ".join(WORDS):
            usec = 1 + 1e-3 * size
        if MCA.get("coll_velo_multicast") == "always" and "FAKE_FLAT" not in os.environ:
            usec = 1.25 if MCA.get("coll_velo_multicast_scheme") != "basic" else 9.0
        if "coll_velo_multicast_scheme" in MCA:
            acks = {"basic": 7, "window": 6.9 if MCA["coll_velo_multicast_ack_every"] == "1" else 1, "tree": 0.5, "coroot": 0.5}
            count = 7 if "FAKE_FLAT" in os.environ else acks[MCA["coll_velo_multicast_scheme"]]
            for sent in (0, 100):
                print(f"[node] multicast: multicasts_sent {sent} multicast_datagrams {sent} multicast_acks {int(sent * count)}", file=sys.stderr)
        print(f"point X {size} {usec} {usec} {usec} 1 5 0 0 0")
    print("end")


def main():
    with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as file:
        file.write(" ".join(WORDS[1:]) + "\n")
    if os.environ.get("FAKE_HANG") == SETUP:
        time.sleep(600)
    if os.environ.get("FAKE_FAIL") in (SETUP, POLICY):
        sys.exit("rank 2: something went wrong")
    defects = 2 if os.environ.get("FAKE_DEFECT") == SETUP else 0
    if "flow_control" not in MCA:
        run_with_schedules()
        return
    if "npb" in WORDS[-1]:
        run_nas(os.path.basename(WORDS[-1]).split(".")[0])
    elif "phases" in WORDS:
        run_phases()
        report(0.0)
    elif "-msglen" in WORDS:
        run_bench(defects)
    else:
        run_pattern(defects)


main()
