"""Reads trace files. Their format is described in mca_btl_velo/design/trace.md."""

import dataclasses
import enum
import pathlib

import numpy

from .errors import TraceError

NONE = 0xFFFFFFFF
VERSION = 1
_MAGIC = b"VELOTRAC"
_BYTE_ORDER = 0x01020304
SUFFIX = ".vtrace"
# Far more than any version will need: longer ones are no records.
_LONGEST_RECORD = 4096

_HEADER = numpy.dtype([
    ("magic", "S8"), ("version", "<u4"), ("header_bytes", "<u4"), ("record_bytes", "<u4"), ("byte_order", "<u4"),
    ("process_name", "<u8"), ("realtime_ns", "<u8"), ("monotonic_ns", "<u8"), ("pid", "<u4"), ("peers", "<u4"),
    ("spare_peers", "<u4"), ("slots_per_peer", "<u4"), ("credit_slots", "<u4"), ("mailbox_slots", "<u4"),
    ("piggyback", "<u4"), ("zero", "<u4"), ("policy", "S32"), ("host", "S64"), ("reserved", "V80")])
_RECORD = numpy.dtype([("time_ns", "<u8"), ("kind", "<u2"), ("zero", "<u2"), ("peer", "<u4"), ("count", "<u4"),
                       ("credits", "<u4"), ("held", "<u4"), ("extra", "<u4")])


class Kind(enum.IntEnum):
    """Kinds of records."""

    PEER = 1
    SEND = 2
    CREDIT_SENT = 3
    CREDIT_RECEIVED = 4
    PIGGYBACK_RECEIVED = 5
    REQUEST_SENT = 6
    REQUEST_RECEIVED = 7
    RESPONSE_SENT = 8
    RESPONSE_RECEIVED = 9
    CONTACT_SENT = 10
    CONTACT_RECEIVED = 11
    STALL_BEGIN = 12
    STALL_END = 13
    STEAL = 14
    INTENDED = 15
    REFUSED = 16
    GROWN = 17
    MAILBOX = 18
    STALL_WARNING = 19
    LIMIT = 20
    END = 21
    BOARD_BEGIN = 22
    BOARD_WAIT = 23
    BOARD_GO_ON = 24
    BOARD_END = 25


def sizing_of(header):
    """What the mailbox of a trace's process goes by, for people."""
    slots = f"mailbox of {header['mailbox_slots']} slots"
    if header["slots_per_peer"] == 0:
        return slots
    return f"{header['slots_per_peer']} slots per peer, {header['credit_slots']} of them for credit packets, {slots}"


KINDS = {int(kind): kind.name.lower() for kind in Kind}


@dataclasses.dataclass(frozen=True)
class Trace:
    """One process. `records` is a numpy array with the fields of the format."""

    path: str
    header: dict
    records: numpy.ndarray
    cut_off_bytes: int

    @property
    def job(self):
        return self.header["process_name"] >> 32

    @property
    def rank(self):
        return self.header["process_name"] & 0xFFFFFFFF

    @property
    def complete(self):
        """The process closed its engine, and the file has no limit that it reached."""
        return len(self.records) > 0 and int(self.records["kind"][-1]) == Kind.END

    def peers(self):
        """(job, rank) by peer index, of the peers that were connected."""
        found = self.records[self.records["kind"] == Kind.PEER]
        return {int(record["peer"]): (int(record["extra"]), int(record["count"])) for record in found}


def read_trace(path):
    """The trace in a file."""
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    header = _read_header(path, data)
    step, body = header["record_bytes"], data[header["header_bytes"]:]
    count = len(body) // step
    # Records of a later minor version may be longer than those that are known here.
    layout = numpy.dtype({"names": _RECORD.names, "formats": [_RECORD[name] for name in _RECORD.names],
                          "offsets": [_RECORD.fields[name][1] for name in _RECORD.names], "itemsize": step})
    records = numpy.frombuffer(body, dtype=layout, count=count)
    if count and (numpy.diff(records["time_ns"].astype(numpy.int64)) < 0).any():
        raise TraceError(f"{path}: is damaged: its times run backwards")
    return Trace(str(path), header, records, len(body) - count * step)


def _read_header(path, data):
    if not data:
        raise TraceError(f"{path}: is empty")
    if data[:8] != _MAGIC[:len(data)]:
        raise TraceError(f"{path}: is not a trace of Velo (it does not begin with {_MAGIC.decode()})")
    if len(data) < _HEADER.itemsize:
        raise TraceError(f"{path}: is cut off: {len(data)} bytes, the header alone takes {_HEADER.itemsize}")
    raw = numpy.frombuffer(data, dtype=_HEADER, count=1)[0]
    header = {name: _plain(raw[name]) for name in _HEADER.names if name not in ("magic", "zero", "reserved")}
    if header["byte_order"] != _BYTE_ORDER:
        raise TraceError(f"{path}: was written on a machine with another byte order, or is damaged")
    if header["version"] != VERSION:
        raise TraceError(f"{path}: has version {header['version']} of the trace format; version {VERSION} is what can be read here: "
                         "use the tools that came with the Velo that wrote it")
    if header["header_bytes"] < _HEADER.itemsize or not _RECORD.itemsize <= header["record_bytes"] <= _LONGEST_RECORD:
        raise TraceError(f"{path}: is damaged: its header claims {header['header_bytes']} bytes for itself and "
                         f"{header['record_bytes']} for a record")
    if len(data) < header["header_bytes"]:
        raise TraceError(f"{path}: is cut off within its header")
    return header


def _plain(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else int(value)


def find_files(arguments):
    """The trace files among files and directories."""
    found = []
    for argument in arguments:
        path = pathlib.Path(argument)
        if path.is_dir():
            inside = sorted(path.glob("*" + SUFFIX))
            if not inside:
                raise TraceError(f"{path}: no file in it ends with {SUFFIX}; --mca btl_velo_trace {path} makes them")
            found += inside
        else:
            found.append(path)
    return found


def read_job(arguments, job=None):
    """The traces of one job, by rank. `job`: its number, needed if there are several; "all" takes all."""
    traces = [read_trace(path) for path in find_files(arguments)]
    jobs = sorted({trace.job for trace in traces})
    if job is None and len(jobs) > 1:
        raise TraceError(f"these are traces of {len(jobs)} jobs, {', '.join(map(str, jobs))}: choose one with --job, or "
                         "--job all")
    if job not in (None, "all"):
        traces = [trace for trace in traces if str(trace.job) == str(job)]
        if not traces:
            raise TraceError(f"no trace is of job {job}; there are {', '.join(map(str, jobs))}")
    seen = {}
    for trace in traces:
        name = (trace.job, trace.rank)
        if name in seen:
            raise TraceError(f"{trace.path}: is of the same process as {seen[name]}")
        seen[name] = trace.path
    return sorted(traces, key=lambda trace: (trace.job, trace.rank))


class Clock:
    """Puts the times of all processes on one axis, in nanoseconds from the first trace's beginning.

    CLOCK_MONOTONIC is common to the processes of a host. Hosts are brought together by CLOCK_REALTIME, and are as far
    apart as these are.
    """

    def __init__(self, traces):
        self._offsets = {}
        for trace in traces:
            offset = trace.header["realtime_ns"] - trace.header["monotonic_ns"]
            self._offsets.setdefault(trace.header["host"], offset)
        self._begin = min((trace.header["monotonic_ns"] + self._offsets[trace.header["host"]] for trace in traces), default=0)

    def shift_ns(self, trace):
        """What to add to a time of this trace."""
        return self._offsets[trace.header["host"]] - self._begin
