"""From results to times, ratios and size classes."""

import statistics
from dataclasses import dataclass, field
from typing import Optional

from .patterns import Case, goal_at


@dataclass
class Line:
    """A size of a case: medians over the rounds by the contestant's name. Who failed is not in there."""

    case: Case
    size: int
    usec: dict = field(default_factory=dict)
    spread_percent: dict = field(default_factory=dict)  # (most - least) / median over the rounds
    failed: set = field(default_factory=set)
    best_other: Optional[str] = None
    ratios: dict = field(default_factory=dict)  # by Velo and each of its variants

    @property
    def goal(self):
        return goal_at(self.case, self.size)


@dataclass
class SizeClass:
    """A row of the table of goals."""

    case: Case
    label: str
    goal: float
    velo: str
    sizes: int
    ratios: list  # (ratio, size, best other)
    failed: int  # sizes at which Velo failed

    @property
    def worst(self):
        return max(self.ratios, default=None)

    @property
    def best(self):
        return min(self.ratios, default=None)

    @property
    def median(self):
        return statistics.median(ratio for ratio, *_ in self.ratios) if self.ratios else None

    @property
    def met(self):
        """The goal holds at every size; None: nobody to compare with."""
        if self.failed:
            return False
        if len(self.ratios) < self.sizes:
            return None
        return self.worst[0] <= self.goal

    def verdict(self):
        if self.failed:
            return f"FAILED at {self.failed} of {self.sizes}"
        if self.met is None:
            return "no peer" if not self.ratios else f"no peer at {self.sizes - len(self.ratios)} of {self.sizes}"
        within = sum(1 for ratio, *_ in self.ratios if ratio <= self.goal)
        return "met" if self.met else f"missed, {within} of {self.sizes} within"


def summarise(results, cases, contestants):
    grouped = {}
    for result in results:
        grouped.setdefault((result.case, result.contestant.name), []).append(result)
    return [_line(case, size, grouped, contestants) for case in cases for size in case.sizes]


def _line(case, size, grouped, contestants):
    line = Line(case, size)
    for contestant in contestants:
        results = grouped.get((case, contestant.name), [])
        times = [result.times[size].usec for result in results if size in result.times]
        if any(_failed_at(result, size) for result in results):
            line.failed.add(contestant.name)
        elif times:
            line.usec[contestant.name] = statistics.median(times)
            line.spread_percent[contestant.name] = 100.0 * (max(times) - min(times)) / statistics.median(times)
    _compare(line, contestants)
    return line


def _failed_at(result, size):
    return result.failure is not None and size not in result.times


def _compare(line, contestants):
    others = {c.name: line.usec[c.name] for c in contestants if not c.is_velo and c.name in line.usec}
    if not others:
        return
    line.best_other = min(others, key=others.get)
    for contestant in contestants:
        if contestant.is_velo and contestant.name in line.usec:
            line.ratios[contestant.name] = line.usec[contestant.name] / others[line.best_other]


def size_classes(lines, velo):
    """The rows of the table of goals for Velo or one of its variants."""
    rows = []
    for case in dict.fromkeys(line.case for line in lines):
        for goal in case.goals():
            members = [line for line in lines if line.case == case and goal.first <= line.size <= goal.last]
            if members:
                label = "all sizes" if len(case.goals()) == 1 else goal.label()
                ratios = [(line.ratios[velo], line.size, line.best_other) for line in members if velo in line.ratios]
                failed = sum(1 for line in members if velo in line.failed)
                rows.append(SizeClass(case, label, goal.ratio, velo, len(members), ratios, failed))
    return rows


def noise(lines):
    """Median over the points of how far the rounds of a contestant lie apart, in percent."""
    spreads = {}
    for line in lines:
        for name, spread in line.spread_percent.items():
            spreads.setdefault(name, []).append(spread)
    return {name: statistics.median(values) for name, values in spreads.items()}
