"""From results to the lines of the table: medians over the rounds, overhead against the reference, averages."""

import statistics
from dataclasses import dataclass, field
from typing import Optional

from ..counters import medians
from .plan import Case, Setup


@dataclass
class Line:
    """One benchmark, size, policy and number of slots. What was not measured is None."""

    case: Case
    setup: Setup
    rounds: int  # that gave a time
    time_usec: Optional[float] = None
    time_min_usec: Optional[float] = None
    time_max_usec: Optional[float] = None
    overhead_percent: Optional[float] = None
    time_ratio: Optional[float] = None  # to the reference
    is_reference: bool = False
    repetitions: Optional[float] = None
    counters: dict = field(default_factory=dict)  # medians by name


@dataclass
class Average:
    """Overhead of a setup over the benchmarks of one size.

    The arithmetic mean is the thesis's. One benchmark that takes many times longer decides it; the geometric mean of
    the time ratios says what is typical.
    """

    size_bytes: Optional[int]
    setup: Setup
    overhead_percent: Optional[float]
    typical_percent: Optional[float]
    benchmarks: int  # that the mean is over
    worst: Optional[str] = None  # the benchmark with the largest overhead
    worst_percent: Optional[float] = None
    delayed_percent: Optional[float] = None
    by_reference_percent: Optional[float] = None
    credit_packets_per_1000_messages: Optional[float] = None
    mailbox_bytes_per_rank: Optional[float] = None


def summarise(results, all_cases, all_setups, reference):
    """The lines of the table, case by case."""
    lines = []
    for case in all_cases:
        of_case = [r for r in results if r.run.case == case]
        block = [_line(case, setup, of_case, setup == reference) for setup in all_setups]
        _add_overheads(block)
        lines += block
    return lines


def _line(case, setup, results, is_reference):
    good = [r for r in results if r.run.setup == setup and r.failure is None]
    line = Line(case, setup, len(good), is_reference=is_reference)
    if not good:
        return line
    times = [r.time_usec for r in good]
    line.time_usec = statistics.median(times)
    line.time_min_usec, line.time_max_usec = min(times), max(times)
    line.repetitions = statistics.median(r.repetitions for r in good)
    line.counters = medians([r.counters for r in good if r.counters is not None])
    return line


def _add_overheads(block):
    base = next((line.time_usec for line in block if line.is_reference), None)
    for line in block:
        line.overhead_percent = overhead_percent(line.time_usec, base)
        line.time_ratio = None if line.overhead_percent is None else 1.0 + line.overhead_percent / 100.0


def overhead_percent(time_usec, reference_usec):
    """How much longer than the reference, in percent; None where either is unknown."""
    if time_usec is None or not reference_usec:
        return None
    return 100.0 * (time_usec - reference_usec) / reference_usec


def typical_percent(overheads_percent):
    """The overhead whose time ratio is the geometric mean of all time ratios."""
    ratios = [1.0 + overhead / 100.0 for overhead in overheads_percent]
    return 100.0 * (statistics.geometric_mean(ratios) - 1.0) if min(ratios) > 0 else None


def reference_spreads(lines):
    """For each case how far its reference times lie apart, in percent of their median: the noise of the machine."""
    return {
        line.case: 100.0 * (line.time_max_usec - line.time_min_usec) / line.time_usec
        for line in lines
        if line.is_reference and line.rounds > 1
    }


def averages(lines):
    """An average for each size and setup, over all benchmarks that have an overhead there."""
    groups = {}
    for line in lines:
        groups.setdefault((line.case.size_bytes, line.setup), []).append(line)
    return [_average(size, setup, group) for (size, setup), group in groups.items()]


def _average(size_bytes, setup, lines):
    known = [line for line in lines if line.overhead_percent is not None]
    average = Average(size_bytes, setup, None, None, len(known))
    if known:
        worst = max(known, key=lambda line: line.overhead_percent)
        average.overhead_percent = statistics.fmean(line.overhead_percent for line in known)
        average.typical_percent = typical_percent([line.overhead_percent for line in known])
        average.worst, average.worst_percent = worst.case.benchmark, worst.overhead_percent
    for name in ("delayed_percent", "by_reference_percent", "credit_packets_per_1000_messages", "mailbox_bytes_per_rank"):
        values = [line.counters[name] for line in lines if name in line.counters]
        if values:
            setattr(average, name, statistics.fmean(values))
    return average
