"""Chrome's trace event format, which Perfetto (https://ui.perfetto.dev) and chrome://tracing show.

One process for each rank: counters of the credits of each peer and of the mailbox, a thread for each peer with its
stalls as slices, marks for what happens seldom, a thread for each communicator with a board with its operations and waits.
"""

import json

from .boards import Boards
from .reader import NONE, Clock, Kind

_MARKS = {Kind.REQUEST_SENT: "REQ sent", Kind.REQUEST_RECEIVED: "REQ received", Kind.RESPONSE_SENT: "RESP sent",
          Kind.RESPONSE_RECEIVED: "RESP received", Kind.STEAL: "steal", Kind.REFUSED: "refused", Kind.GROWN: "grown",
          Kind.STALL_WARNING: "stall warning", Kind.LIMIT: "limit of the file", Kind.CONTACT_SENT: "sent",
          Kind.CONTACT_RECEIVED: "received"}
_CONTACTS = {5: "HELLO", 6: "BYE", 7: "RELEASE", 8: "LEAVE"}
_GENERAL_THREAD = 0


def write_chrome(traces, file):
    """Writes all events; returns their number."""
    clock, count = Clock(traces), 0
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    for process, trace in enumerate(traces):
        for event in _events(trace, process, clock.shift_ns(trace)):
            file.write((",\n" if count else "") + json.dumps(event, separators=(",", ":")))
            count += 1
    file.write("\n]}\n")
    return count


def _events(trace, process, shift):
    names = {index: f"rank {rank}" if job == trace.job else f"rank {rank} of job {job}"
             for index, (job, rank) in trace.peers().items()}
    yield from _titles(trace, process, names)
    open_stalls, last, boards = {}, {}, Boards(process)
    end_us = 0.0
    for time, kind, _, peer, number, credits, held, extra in trace.records.tolist():
        time_us = end_us = (time + shift) / 1000
        common = {"pid": process, "ts": time_us}
        name = names.get(peer, f"peer {peer}")
        for track, value in (("credits to", credits), ("credits held by", held)):
            if value != NONE and last.get((track, peer)) != value and peer != NONE:
                last[track, peer] = value
                yield {**common, "ph": "C", "name": f"{track} {name}", "args": {"credits": value}}
        if kind == Kind.MAILBOX:
            yield {**common, "ph": "C", "name": "mailbox", "args": {"packets": number}}
        elif kind == Kind.INTENDED:
            yield {**common, "ph": "C", "name": f"quota of {name}", "args": {"slots": number}}
        elif kind == Kind.STALL_BEGIN:
            open_stalls[peer] = (time_us, number, extra)
        elif kind == Kind.STALL_END and peer in open_stalls:
            yield _stall(process, peer, name, open_stalls.pop(peer), time_us)
        elif kind in boards.KINDS:
            yield from boards.events(time_us, kind, number, extra)
        elif kind in _MARKS:
            yield _mark(common, kind, peer, name, number, extra)
    for peer, begin in open_stalls.items():
        yield _stall(process, peer, names.get(peer, f"peer {peer}"), begin, end_us)
    yield from boards.unfinished(end_us)


def _titles(trace, process, names):
    header = trace.header
    title = f"rank {trace.rank} ({header['host']}, process {header['pid']}, {header['policy']})"
    yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}
    yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}
    yield {"ph": "M", "pid": process, "tid": _GENERAL_THREAD, "name": "thread_name", "args": {"name": "flow control"}}
    for peer, name in names.items():
        yield {"ph": "M", "pid": process, "tid": _thread(peer), "name": "thread_name", "args": {"name": f"to {name}"}}


def _thread(peer):
    return _GENERAL_THREAD if peer == NONE else peer + 1


def _stall(process, peer, name, begin, end_us):
    begin_us, waiting, reason = begin
    why = "no credit" if reason == 0 else "no free slot"
    return {"ph": "X", "pid": process, "tid": _thread(peer), "name": f"stall: {why}", "ts": begin_us,
            "dur": end_us - begin_us, "args": {"peer": name, "bytes_at_begin": waiting}}


def _mark(common, kind, peer, name, number, extra):
    title = _MARKS[kind]
    if kind in (Kind.CONTACT_SENT, Kind.CONTACT_RECEIVED):
        title = f"{_CONTACTS.get(extra, extra)} {title}"
    arguments = {"count": number} if peer == NONE else {"peer": name, "count": number}
    return {**common, "ph": "i", "s": "t", "tid": _thread(peer), "name": title, "args": arguments}
