"""Operations on boards as events of Chrome's format: calls and their waits as slices, requests, which overlap, as asynchronous ones."""

import collections

from .reader import NONE, Kind

# In the order of velo_board_operation.
OPERATIONS = ("", "Barrier", "Bcast", "Reduce", "Allreduce", "Scan", "Exscan", "Gather", "Scatter", "Allgather", "Alltoall", "Reduce_scatter",
              "Reduce_scatter_block")
_FIRST_THREAD = 1 << 20  # above those of the peers


class Boards:
    """Of one process. A call, and a wait within it, end with what comes next of their kind; a request with the first end of one like it."""

    KINDS = (Kind.BOARD_BEGIN, Kind.BOARD_WAIT, Kind.BOARD_GO_ON, Kind.BOARD_END)

    def __init__(self, process):
        self._process = process
        self._calls, self._waits = {}, {}  # by communicator
        self._requests = collections.defaultdict(list)
        self._started = 0
        self._named = set()

    def events(self, time_us, kind, number, extra):
        communicator, is_request, operation = extra >> 16, bool(extra >> 8 & 1), extra & 0xFF
        name = OPERATIONS[operation] if 0 < operation < len(OPERATIONS) else f"operation {operation}"
        if communicator not in self._named:
            self._named.add(communicator)
            yield self._event(communicator, ph="M", name="thread_name", args={"name": f"board of communicator {communicator}"})
        if kind == Kind.BOARD_WAIT:
            self._waits[communicator] = (time_us, "waits" if number == NONE else f"waits for rank {number}", {})
        elif kind == Kind.BOARD_GO_ON:
            yield from self._slice(self._waits, communicator, time_us)
        elif kind == Kind.BOARD_BEGIN and is_request:
            self._started += 1
            self._requests[communicator].append((f"I{name.lower()}", self._started, number))
            yield self._request("b", communicator, f"I{name.lower()}", self._started, time_us, bytes=number)
        elif kind == Kind.BOARD_BEGIN:
            self._calls[communicator] = (time_us, name, {"bytes": number})
        elif not is_request:
            yield from self._slice(self._calls, communicator, time_us)
        else:
            # Persistent ones may end in another order; those that are alike are one as good as the other.
            begun = self._requests[communicator]
            ended = next((one for one in begun if (one[0], one[2]) == (f"I{name.lower()}", number)), None)
            if ended:
                begun.remove(ended)
                yield self._request("e", communicator, *ended[:2], time_us)

    def unfinished(self, time_us):
        """What has not ended when the trace does."""
        for begun in (self._waits, self._calls):
            for communicator in list(begun):
                yield from self._slice(begun, communicator, time_us)
        for communicator, requests in self._requests.items():
            for name, number, _ in requests:
                yield self._request("e", communicator, name, number, time_us)

    def _slice(self, begun, communicator, end_us):
        if communicator in begun:
            begin_us, name, arguments = begun.pop(communicator)
            yield self._event(communicator, ph="X", name=name, ts=begin_us, dur=end_us - begin_us, args=arguments)

    def _request(self, phase, communicator, name, number, time_us, **arguments):
        return self._event(communicator, ph=phase, cat="board", id=f"{self._process}.{number}", name=name, ts=time_us, args=arguments)

    def _event(self, communicator, **fields):
        return {"pid": self._process, "tid": _FIRST_THREAD + communicator, **fields}
