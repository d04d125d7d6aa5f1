"""Arithmetic of verdicts."""

import statistics

from .experiment import NOT_SHOWN, OPEN, PREDICTED, SHOWN, Verdict

# Overheads apart by less than this are not told apart; in points of a percent.
_LEAST_TOLERANCE = 3.0
# With more noise than that overheads are not judged.
_MOST_TOLERANCE = 30.0
# The median of the five batches of a run varies by less than the batches themselves.
_OF_A_MEDIAN = 0.5


def verdict(statement, is_shown, because, kind=PREDICTED):
    """`is_shown` None: the runs do not tell."""
    return Verdict(statement, OPEN if is_shown is None else SHOWN if is_shown else NOT_SHOWN, because, kind)


def count_text(verdicts):
    """How many of each kind are shown."""
    kinds = {kind: [v.status for v in verdicts if v.kind == kind] for kind in sorted({v.kind for v in verdicts}, reverse=True)}
    return "; ".join(f"{kind}: {found.count(SHOWN)} of {len(found)} shown, {found.count(NOT_SHOWN)} not, {found.count(OPEN)} "
                     "cannot be judged" for kind, found in kinds.items())


def tolerance(results, workload):
    """How far apart overheads of a workload must be to mean something: the spread of its reference."""
    line = results.reference(workload)
    if line is None or line.time_usec is None:
        return _LEAST_TOLERANCE
    spreads = [_LEAST_TOLERANCE]
    if line.rounds > 1:
        spreads.append(100.0 * (line.time_max_usec - line.time_min_usec) / line.time_usec)
    elif line.spread_percent is not None:
        spreads.append(line.spread_percent * _OF_A_MEDIAN)
    return max(spreads)


def too_noisy(results, *workloads):
    """Why overheads of these workloads tell nothing; empty if they do."""
    noise = {workload: tolerance(results, workload) for workload in workloads if results.reference(workload)}
    worst = max(noise, key=noise.get, default=None)
    if worst is None or noise[worst] <= _MOST_TOLERANCE:
        return ""
    return f"the reference varies by {noise[worst]:.0f} % ({worst}), which is too much to judge overheads; more rounds may help"


def noise_text(results):
    """How much the references vary, in words; empty if nobody can tell."""
    workloads = [line.workload for line in results.lines if line.is_reference and _is_spread_known(line)]
    if not workloads:
        return ""
    spreads = {workload: tolerance(results, workload) for workload in workloads}
    worst = max(spreads, key=spreads.get)
    return (f"Noise: the times of a reference lie {statistics.median(spreads.values()):.0f} % apart (median), "
            f"{spreads[worst]:.0f} % at worst ({worst}); smaller overheads than that mean little")


def _is_spread_known(line):
    return line.time_usec is not None and (line.rounds > 1 or line.spread_percent is not None)


def settles_at(curve, limit):
    """The first x from which on the curve stays at or below the limit; None if its end is above it."""
    settled = None
    for x in sorted(curve, reverse=True):
        if curve[x] > limit:
            break
        settled = x
    return settled


def steepest(curve):
    """The neighbouring x between which the curve falls most, as a ratio for each unit of x."""
    xs = sorted(curve)
    if len(xs) < 2:
        return None
    falls = {(a, b): (max(curve[a], 1.0) / max(curve[b], 1.0)) ** (1.0 / (b - a)) for a, b in zip(xs, xs[1:])}
    return max(falls, key=falls.get)


def mean(curve):
    return statistics.fmean(curve.values()) if curve else None


def common(*curves):
    """The curves at the x that all of them have."""
    xs = set(curves[0]).intersection(*curves[1:])
    return [{x: curve[x] for x in sorted(xs)} for curve in curves]


def numbers(curve, unit=" %", digits=0):
    """A curve in words."""
    return ", ".join(f"{x:g}: {value:.{digits}f}{unit}" for x, value in curve.items())


def because(*parts):
    return "; ".join(part for part in parts if part) + "."
