"""From results to times, ratios and size classes, each within a distance."""

import statistics
from dataclasses import dataclass, field
from typing import Optional

from . import distance as distances
from .patterns import Case, goal_at


@dataclass
class Line:
    """A size of a case at one distance: medians over the blocks by the contestant's name. Who failed is not in there."""

    case: Case
    size: int
    distance: str
    layers: dict  # of Velo and its variants, by name
    usec: dict = field(default_factory=dict)
    blocks: dict = field(default_factory=dict)
    spread_percent: dict = field(default_factory=dict)  # (most - least) / median over the blocks
    share_percent: dict = field(default_factory=dict)  # of a program's time: in MPI
    failed: set = field(default_factory=set)
    few: set = field(default_factory=set)  # who has fewer blocks than a comparison takes
    changes: dict = field(default_factory=dict)  # time of Velo / of another Velo of its layer: median over the rounds, by the other

    def best_other(self, names=()):
        """The fastest that is not Velo, of `names` if there are any; None: there is none, or one has too few blocks."""
        if self.few - self.layers.keys():
            return None
        others = [name for name in self.usec if name not in self.layers and (not names or name in names)]
        return min(others, key=self.usec.get, default=None)

    def ratio(self, velo, names=()):
        best = self.best_other(names)
        return self.usec[velo] / self.usec[best] if best and velo in self.usec and velo not in self.few else None

    def goal(self, velo):
        """The ratio that is aimed at, and the one that there is, to whom the goal names; None: there is no goal."""
        if (goal := goal_at(self.case, self.size)) is None:
            return None
        layer = self.layers[velo]
        return goal.ratio(layer, self.distance), self.ratio(velo, goal.opponents(layer, self.distance))


@dataclass
class SizeClass:
    """A row of the table of goals."""

    case: Case
    distance: str
    label: str
    goal: float
    velo: str
    sizes: int
    ratios: list  # (ratio, size, opponent)
    failed: int  # sizes at which Velo failed
    few: int  # sizes at which somebody has too few blocks

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
            what = "too few blocks" if self.few else "no peer"
            return what if not self.ratios else f"{what} at {self.sizes - len(self.ratios)} of {self.sizes}"
        within = sum(1 for ratio, *_ in self.ratios if ratio <= self.goal)
        return "met" if self.met else f"missed, {within} of {self.sizes} within"


def summarise(results, cases, contestants, min_blocks):
    """Lines by distance, then case and size. Blocks during which the distance changed are left out."""
    lines = []
    for case in cases:
        own = [result for result in results if result.case == case]
        found = {result.distance(size) for result in own for size in result.times} - {distances.CHANGED}
        lines += [_line(Line(case, size, distance, {c.name: c.layer for c in contestants if c.is_velo}), own, contestants, min_blocks)
                  for distance in found or {distances.UNKNOWN} for size in case.sizes]
    return sorted(lines, key=lambda line: (distances.order(line.distance), cases.index(line.case), line.size))


def _line(line, results, contestants, min_blocks):
    times = {}
    broken = {result.contestant.name for result in results if result.failure}
    for contestant in contestants:
        own = [result for result in results if result.contestant.name == contestant.name]
        if not own:
            continue  # it does not serve the pattern
        if any(result.failure and line.size not in result.times for result in own):
            line.failed.add(contestant.name)
            continue
        own = [result for result in own if line.size in result.times and result.distance(line.size) == line.distance]
        # By round: each contestant has one block in it.
        known = times[contestant.name] = {result.round: result.times[line.size].usec for result in own}
        line.blocks[contestant.name] = len(known)
        if len(known) < min_blocks and contestant.name in broken:
            continue  # it had no further turns
        if len(known) < min_blocks:
            line.few.add(contestant.name)
        if known:
            line.usec[contestant.name] = statistics.median(known.values())
            line.spread_percent[contestant.name] = (100.0 * (max(known.values()) - min(known.values()))
                                                    / line.usec[contestant.name])
            shares = [result.share_percent for result in own if result.share_percent is not None]
            if shares:
                line.share_percent[contestant.name] = statistics.median(shares)
    _compare_builds(line, times, min_blocks)
    return line


def _compare_builds(line, times, min_blocks):
    """Blocks of the same round alone: what the machine does meets both."""
    first = {}
    for velo, layer in line.layers.items():
        now = times.get(first.setdefault(layer, velo), {})
        pairs = [now[number] / usec for number, usec in times.get(velo, {}).items() if number in now]
        if velo != first[layer] and len(pairs) >= min_blocks:
            line.changes[velo] = statistics.median(pairs)


def parts(lines):
    """The lines of each (distance, case)."""
    found = {}
    for line in lines:
        found.setdefault((line.distance, line.case), []).append(line)
    return found


def size_classes(lines, velo):
    """The rows of the table of goals for Velo or one of its variants."""
    rows = []
    for (distance, case), own in parts(lines).items():
        for goal in case.goals():
            members = [line for line in own if goal.first <= line.size <= goal.last]
            if not members:
                continue
            opponents = goal.opponents(members[0].layers[velo], distance)
            ratios = [(line.ratio(velo, opponents), line.size, line.best_other(opponents)) for line in members]
            rows.append(SizeClass(case, distance, "all sizes" if len(case.goals()) == 1 else goal.label(),
                                  goal.ratio(members[0].layers[velo], distance), velo, len(members),
                                  [entry for entry in ratios if entry[0] is not None],
                                  sum(1 for line in members if velo in line.failed), sum(1 for line in members if line.few)))
    return rows


def noise(lines):
    """Median over the points of how far the blocks of a contestant lie apart, in percent."""
    spreads = {}
    for line in lines:
        for name, spread in line.spread_percent.items():
            spreads.setdefault(name, []).append(spread)
    return {name: statistics.median(values) for name, values in spreads.items()}
