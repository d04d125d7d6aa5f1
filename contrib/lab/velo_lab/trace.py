"""Reads the trace that btl_velo_trace writes: mca_btl_velo/design/trace.md."""

import struct
from pathlib import Path

VERSION = 1
_HEADER = struct.Struct("<8sIIIIQ")
_RECORD = struct.Struct("<QHHIIIII")
_MAGIC, _BYTE_ORDER = b"VELOTRAC", 0x01020304
_KIND_PEER = 1
_NONE = 0xFFFFFFFF


class TraceError(ValueError):
    pass


def file_of_rank(directory, rank):
    """The newest trace of a rank in a directory."""
    files = sorted(Path(directory).glob(f"*.{rank}.vtrace"), key=lambda path: path.stat().st_mtime)
    if not files:
        raise TraceError(f"no trace of rank {rank} in {directory}")
    return files[-1]


def credits(path):
    """(time in ns, rank of the peer, credits towards it) whenever these are stated."""
    data = Path(path).read_bytes()
    if len(data) < _HEADER.size:
        raise TraceError(f"{path} is too short for a trace")
    magic, version, header_bytes, record_bytes, byte_order, _ = _HEADER.unpack_from(data)
    if magic != _MAGIC or byte_order != _BYTE_ORDER:
        raise TraceError(f"{path} is no trace of Velo")
    if version != VERSION or record_bytes < _RECORD.size:
        raise TraceError(f"{path} has version {version} of the trace format, this program reads version {VERSION}")
    return list(_credits(data, header_bytes, record_bytes))


def _credits(data, header_bytes, record_bytes):
    rank_of = {}
    for offset in range(header_bytes, len(data) - record_bytes + 1, record_bytes):
        time_ns, kind, _, peer, count, now, _, _ = _RECORD.unpack_from(data, offset)
        if kind == _KIND_PEER:
            rank_of[peer] = count
        if now != _NONE and peer in rank_of:
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
