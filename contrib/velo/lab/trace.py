"""Credits of one process over time, from the trace that btl_velo_trace writes."""

from pathlib import Path

from ..trace.errors import TraceError

__all__ = ["TraceError", "at_marks", "credits", "file_of_rank"]


def file_of_rank(directory, rank):
    """The newest trace of a rank in a directory."""
    files = sorted(Path(directory).glob(f"*.{rank}.vtrace"), key=lambda path: path.stat().st_mtime)
    if not files:
        raise TraceError(f"no trace of rank {rank} in {directory}")
    return files[-1]


def credits(path):
    """(time in ns, rank of the peer, credits towards it) whenever these are stated."""
    from ..trace import reader  # the other experiments do without numpy

    return list(_credits(reader, reader.read_trace(path).records))


def _credits(reader, records):
    rank_of = {}
    stated = records[(records["kind"] == reader.Kind.PEER) | (records["credits"] != reader.NONE)]
    for time_ns, kind, peer, count, now in zip(*(stated[name].tolist() for name in ("time_ns", "kind", "peer", "count", "credits"))):
        if kind == reader.Kind.PEER:
            rank_of[peer] = count
        if now != reader.NONE and peer in rank_of:
            yield time_ns, rank_of[peer], now


def at_marks(events, marks, groups):
    """Credits towards groups of ranks at moments: for each mark (median, least, most) by the name of the group.

    `marks`: (repetitions, time in ns); `groups`: ranks by name. A mark before the first event of a group has none.
    """
    state, result, position = {}, [], 0
    for done, at_ns in sorted(marks):
        while position < len(events) and events[position][0] <= at_ns:
            _, rank, now = events[position]
            state[rank] = now
            position += 1
        result.append((done, {name: _summary([state[r] for r in ranks if r in state]) for name, ranks in groups.items()}))
    return result


def _summary(values):
    if not values:
        return None
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[0], ordered[-1]
