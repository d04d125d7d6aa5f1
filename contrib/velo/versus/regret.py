"""velo-measure transports --regret: Velo's default beside each fixed way of its own, and beside the others, as common benchmarks measure."""

import json
import re
import shutil
import statistics
from dataclasses import dataclass, field

from ..grid import grid_text
from ..measuring import SHORT_RUNS
from ..process import attempt
from ..progress import Progress
from ..rounds import interleaved
from . import distance as distances
from .runner import beside_the_line

_SMALLEST, _LARGEST = 8, 1 << 22
# Settings that send each message of a length the same way. --regret holds the default against the best of them.
FIXED = {
    "packets-reader": "reference never staged 0 both never",
    "packets-both": "reference never staged 0 both 16384",
    "reference-staged": "reference 1024 staged 67108864 both never",
    "packets-staged": "reference never staged 67108864 both never",
}
_OWN = ("latency", "bw", "bibw", "sendrecv", "exchange", "touched", "cold", "mixed")
_OSU = ("osu_latency", "osu_bw", "osu_bibw")
_IMB = ("PingPong", "Sendrecv", "Exchange")
_COLUMN = {"PingPong": 2, "Sendrecv": 4, "Exchange": 4}
REGRET_GOAL, REGRET_MEAN_GOAL, LEAD_GOAL, LEAD_MEAN_GOAL = 1.05, 1.02, 1.00, 0.75


@dataclass(frozen=True)
class Bench:
    name: str
    words: tuple  # of the program; empty: of short_runs
    of_open_mpi: bool  # a program of the user's, which is built for one MPI

    def command(self, contestant, program):
        words = self.words or (program, self.name, str(_SMALLEST), str(_LARGEST))
        return contestant.command(2, words)

    def times(self, text):
        """Microseconds of a message by its bytes."""
        rows = [list(map(float, line.split())) for line in text.splitlines() if re.fullmatch(r"[\d.\s]+", line) and line.strip()]
        column = _COLUMN.get(self.name, 1)
        found = {int(row[0]): row[column] for row in rows if len(row) > column and row[0] > 0 and row[column] > 0}
        return {size: size / value for size, value in found.items()} if self.name in ("osu_bw", "osu_bibw") else found


@dataclass
class Point:
    bench: str
    size: int
    distance: str  # only what was equally far apart is compared
    times: dict = field(default_factory=dict)  # lists by contestant

    def median(self, name):
        return statistics.median(self.times[name]) if name in self.times else None

    def ratio(self, name, others):
        best = min((median for other in others if (median := self.median(other)) is not None), default=None)
        return None if best is None or self.median(name) is None else self.median(name) / best

    def stands_out(self, name, others, most):
        """More than `most` times the best of the others in the fastest round, too: noise is no regret."""
        ratio = self.ratio(name, others)
        return ratio is not None and ratio * min(self.times[name]) / self.median(name) > most


def benches():
    found = [Bench(name, (), False) for name in _OWN]
    found += [Bench(name, (path, "-m", f"{_SMALLEST}:{_LARGEST}"), True) for name in _OSU if (path := shutil.which(name))]
    imb = shutil.which("IMB-MPI1")
    return found + [Bench(name, (imb, name), True) for name in _IMB if imb]


def fixed(open_mpi):
    made = [open_mpi.variant(name, f"--mca btl_velo_routes '{text}'") for name, text in FIXED.items()]
    return [*made, open_mpi.variant("never", "--mca btl_velo_by_reference never")]


def measure(contestants, rounds, how):
    """Points, what failed, and whether all runs took place."""
    runs = [run for run in interleaved(benches(), contestants, rounds) if not run.case.of_open_mpi or run.setup.mpi == "openmpi"]
    points, failures, progress = {}, {}, Progress(len(runs))
    complete = False
    try:
        for run in runs:
            progress.starting(f"{run.setup.name}, {run.case.name}, round {run.round + 1}")
            if (run.setup.name, run.case.name) in failures:
                continue
            command = run.case.command(run.setup, how.compiler.built(run.setup.mpicc, SHORT_RUNS))
            finished, failure, ends = beside_the_line(lambda: attempt(command, how.timeout), how)
            if failure:
                failures[run.setup.name, run.case.name] = f"{failure}\n{finished.tail()}"
                continue
            distance = distances.of_block(ends)
            for size, usec in run.case.times(finished.stdout).items():
                point = points.setdefault((run.case.name, size, distance), Point(run.case.name, size, distance))
                point.times.setdefault(run.setup.name, []).append(usec)
        complete = True
        progress.finish()
    except KeyboardInterrupt:
        progress.message("velo-measure transports: interrupted")
    ordered = sorted(points.values(), key=lambda point: distances.order(point.distance))
    return [point for point in ordered if point.distance != distances.CHANGED], failures, complete


def text(points, contestants, failures):
    own = [c.name for c in contestants if c.layer == "btl" and c.name != "velo"]
    others = [c.name for c in contestants if not c.is_velo]
    names = ["velo", *(c.name for c in contestants if c.layer == "mtl"), *own, *others]
    rows, ratios = [], {"regret": [], "lead": []}
    measured = {}  # at any distance: where one of them is missing there is no ratio
    for point in points:
        measured.setdefault((point.bench, point.size), set()).update(point.times)
    for point in points:
        cells = [point.distance or "-", point.bench, str(point.size)]
        cells += ["" if point.median(name) is None else f"{point.median(name):.2f}" for name in names]
        for kind, whom in (("regret", ["velo", *own]), ("lead", others)):
            ratio = point.ratio("velo", whom) if measured[point.bench, point.size] & {*whom} <= point.times.keys() else None
            if ratio is not None:
                ratios[kind].append((ratio, point))
            cells.append("" if ratio is None else f"{ratio:.2f}")
        rows.append(cells)
    parts = [grid_text(["distance", "pattern", "bytes", *names, "regret", "lead"], rows, "<<" + ">" * (len(names) + 3), [row[:2] for row in rows])]
    for kind, whom, meaning, most, mean in (("regret", ["velo", *own], "the default / the best fixed way", REGRET_GOAL, REGRET_MEAN_GOAL),
                                            ("lead", others, "the default / the best of the others", LEAD_GOAL, LEAD_MEAN_GOAL)):
        if ratios[kind]:
            found = [ratio for ratio, _ in ratios[kind]]
            out = [f"{point.bench} {point.size}" for _, point in ratios[kind] if point.stands_out("velo", whom, most)]
            parts.append(f"{kind} ({meaning}): mean {statistics.geometric_mean(found):.3f} (goal {mean}), worst {max(found):.2f}, "
                         f"above {most:.2f} at {sum(ratio > most for ratio in found)} of {len(found)} points, in the fastest round, too, "
                         f"at {len(out)}" + (f": {', '.join(out)}" if out else ""))
    parts += [f"FAILED: {name}, {bench}: {failure}" for (name, bench), failure in failures.items()]
    return "\n\n".join(parts)


def write_json(path, head, points):
    path.write_text(json.dumps(head | {"points": [{"distance": p.distance, "pattern": p.bench, "bytes": p.size, "usec": p.times} for p in points]}, indent=1) + "\n",
                    encoding="utf-8")
