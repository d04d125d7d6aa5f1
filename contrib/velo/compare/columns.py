"""The columns of the table: name in files, heading on screen, value, format. One list serves text, CSV and JSON."""

from dataclasses import dataclass
from typing import Callable

NOT_AVAILABLE = "n/a"


@dataclass(frozen=True)
class Column:
    key: str
    heading: str
    value: Callable  # of a Line
    format: str = "{}"
    on_screen: bool = True
    align: str = ">"

    def text(self, line):
        value = self.value(line)
        return NOT_AVAILABLE if value is None else self.format.format(value)


def _counter(key, heading="", format="{:.0f}", on_screen=True, scale=1):
    def value(line):
        raw = line.counters.get(key)
        return None if raw is None else raw / scale

    return Column(key, heading, value, format, on_screen)


def _size(line):
    return line.case.size_bytes


COLUMNS = (
    Column("benchmark", "benchmark", lambda line: line.case.benchmark, align="<"),
    Column("bytes", "bytes", _size),
    Column("slots_per_peer", "slots", lambda line: line.setup.slots),
    Column("policy", "policy", lambda line: line.setup.policy, align="<"),
    Column("by_reference", "by ref.", lambda line: line.setup.by_reference, align="<"),
    Column("time_usec", "t_avg us", lambda line: line.time_usec, "{:.2f}"),
    Column("time_min_usec", "", lambda line: line.time_min_usec, "{:.2f}", on_screen=False),
    Column("time_max_usec", "", lambda line: line.time_max_usec, "{:.2f}", on_screen=False),
    Column("overhead_percent", "overhead %", lambda line: line.overhead_percent, "{:+.1f}"),
    Column("time_ratio", "", lambda line: line.time_ratio, "{:.3f}", on_screen=False),
    Column("is_reference", "", lambda line: line.is_reference, on_screen=False),
    Column("rounds", "", lambda line: line.rounds, on_screen=False),
    Column("repetitions", "", lambda line: line.repetitions, "{:.0f}", on_screen=False),
    _counter("messages_sent", "messages"),
    _counter("delayed_percent", "delayed %", "{:.2f}"),
    _counter("data_packets", on_screen=False),
    _counter("messages_by_reference", on_screen=False),
    _counter("batches", on_screen=False),
    _counter("batched_messages", on_screen=False),
    _counter("by_reference_percent", "by ref. %", "{:.2f}"),
    _counter("outbox_high_water", "outbox B"),
    _counter("outbox_full", "full"),
    _counter("credit_packets", "credit pkts"),
    _counter("credit_packets_per_1000_messages", "/1000 msgs", "{:.1f}"),
    _counter("credits_in_packets", on_screen=False),
    _counter("piggybacked_credits", "piggybacked"),
    _counter("requests", on_screen=False),
    _counter("responses", on_screen=False),
    _counter("steals", "steals"),
    _counter("stolen_slots", on_screen=False),
    _counter("mailbox_bytes_per_rank", "mailbox B", "{:.0f}"),
)
