"""CSV: one line for each record, in the order of the ranks and then of time."""

import csv

from .reader import KINDS, NONE, Clock

COLUMNS = ["time_ns", "job", "rank", "kind", "peer", "peer_job", "peer_rank", "count", "credits", "held", "extra"]


def write_csv(traces, file):
    """Times are nanoseconds from the beginning of the first trace; what a record has not is empty."""
    clock, lines = Clock(traces), 0
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trace in traces:
        shift, names = clock.shift_ns(trace), trace.peers()
        for time, kind, _, peer, number, credits, held, extra in trace.records.tolist():
            peer_job, peer_rank = names.get(peer, ("", ""))
            writer.writerow([time + shift, trace.job, trace.rank, KINDS.get(kind, kind), _known(peer), peer_job, peer_rank,
                             number, _known(credits), _known(held), extra])
            lines += 1
    return lines


def _known(value):
    return "" if value == NONE else value
