"""Credits over time, between one process and groups of its peers."""

import dataclasses
import re

import numpy

from .errors import TraceError
from .reader import NONE, Kind


@dataclasses.dataclass(frozen=True)
class Group:
    """Ranks first..last of the job."""

    first: int
    last: int

    def __str__(self):
        return f"rank {self.first}" if self.first == self.last else f"ranks {self.first}-{self.last}"


@dataclasses.dataclass(frozen=True)
class Series:
    """Mean, least and most over the peers of a group, at each of the times."""

    group: Group
    peers: int
    mean: numpy.ndarray
    least: numpy.ndarray
    most: numpy.ndarray


def parse_groups(text):
    """Groups from a text such as 0-15,16-31,40."""
    groups = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise TraceError(f"--groups {text}: \"{part}\" is neither a rank nor a range of ranks such as 0-15")
        groups.append(Group(int(match[1]), int(match[2] or match[1])))
    return groups


def default_groups(ranks):
    """As in the thesis: the first quarter, the second, the second half."""
    borders = sorted({0, ranks // 4, ranks // 2, ranks})
    return [Group(first, last - 1) for first, last in zip(borders, borders[1:])]


def steps_of(trace, field):
    """{rank: (times, values)} of the peers of the same job: the value holds from its time on. `field`: credits or held."""
    records = trace.records[(trace.records["peer"] != NONE) & (trace.records[field] != NONE)]
    return {rank: _steps(records[records["peer"] == peer], field) for peer, rank in _peers_of_job(trace).items()
            if (records["peer"] == peer).any()}


def quotas_of(traces, trace):
    """As steps_of: the quota that each peer intends for the process of `trace`, which the peers' traces tell."""
    steps = {}
    for other in traces:
        for peer, rank in _peers_of_job(other).items():
            if rank != trace.rank or other.job != trace.job:
                continue
            records = other.records
            own = records[(records["peer"] == peer) & (records["kind"] == Kind.INTENDED)]
            if len(own):
                steps[other.rank] = _steps(own, "count")
    return steps


def _peers_of_job(trace):
    return {peer: rank for peer, (job, rank) in trace.peers().items() if job == trace.job}


def _steps(records, field):
    return records["time_ns"].astype(numpy.int64), records[field].astype(numpy.int64)


def series_of(steps, groups, borders):
    """A Series for each group that has peers. Between two of the ascending `borders` (CLOCK_MONOTONIC, pairs of begin and
    end) each peer's value is its mean over that time."""
    found = []
    for group in groups:
        values = [_means(borders, *steps[rank]) for rank in sorted(steps) if group.first <= rank <= group.last]
        if values:
            table = numpy.array(values)
            found.append(Series(group, len(values), table.mean(axis=0), table.min(axis=0), table.max(axis=0)))
    if not found:
        raise TraceError(f"no rank of {', '.join(map(str, groups))} has values; there are {', '.join(map(str, sorted(steps)))}")
    return found


def _means(borders, times, values):
    """The first value holds before its time as well."""
    area = numpy.concatenate([[0], numpy.cumsum(numpy.diff(times) * values[:-1])])

    def area_until(moments):
        place = numpy.clip(numpy.searchsorted(times, moments, side="right") - 1, 0, None)
        return area[place] + (moments - times[place]) * values[place]

    begins, ends = borders[:, 0], borders[:, 1]
    return (area_until(ends) - area_until(begins)) / numpy.maximum(ends - begins, 1)
