"""Velo's measuring program (contrib/benchmark): compiled for any MPI, and what its modes print (modes.h)."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from .command import Trouble
from .process import attempt, shell_line

# Beside this package, in contrib/ as in share/velo.
SOURCES = Path(__file__).resolve().parents[1] / "benchmark"
# Messages as common benchmarks send them: few of each size.
SHORT_RUNS = SOURCES.parent / "versus" / "short_runs.c"
# -O3: loops that touch a message should cost what they cost in a tuned application. C++ through mpicc, which every MPI has.
FLAGS = ("-x", "c++", "-std=c++20", "-O3", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", f"-I{SOURCES}")
LIBRARIES = ("-lstdc++",)
_COMPILE_SECONDS = 180


class CompileError(Trouble):
    pass


class Compiler:
    """Compiles once for each mpicc, into a directory that the caller removes."""

    def __init__(self, directory):
        self._directory = Path(directory)
        self._programs = {}

    def program(self, mpicc):
        if mpicc not in self._programs:
            source = self._directory / "measure.cpp"
            source.write_text("".join(f'#include "{path.name}"\n' for path in sorted(SOURCES.glob("*.cpp"))))
            self._programs[mpicc] = self._compile(self._directory / f"measure-{len(self._programs)}", [mpicc, *FLAGS, str(source)], LIBRARIES)
        return self._programs[mpicc]

    def built(self, mpicc, source):
        """A program in C of one file."""
        if (mpicc, source) not in self._programs:
            target = self._directory / f"{source.stem}-{len(self._programs)}"
            self._programs[mpicc, source] = self._compile(target, [mpicc, "-O2", str(source)], [])
        return self._programs[mpicc, source]

    def preloaded(self, mpicc, source):
        """A library for any MPI, out of a source in C."""
        if source not in self._programs:
            self._programs[source] = self._compile(self._directory / f"{source.stem}.so", [mpicc, "-O2", "-shared", "-fPIC", str(source)], ["-ldl"])
        return self._programs[source]

    def _compile(self, target, words, libraries):
        command = [*words, "-o", str(target), *libraries]
        finished, failure = attempt(command, _COMPILE_SECONDS)
        if failure is None and not target.exists():
            failure = "it wrote no program"
        if failure:
            raise CompileError(f"the compiler failed, {failure}: {shell_line(command)}\n{finished.tail()}")
        return target


@dataclass(frozen=True)
class Point:
    usec: float  # median of the batches
    min_usec: float
    max_usec: float
    iterations: int
    repetitions: int
    defects: int
    messages: int  # of the whole run, those of the barriers not among them
    mbytes_per_second: float


@dataclass(frozen=True)
class Overlap:
    """A call that is under way while a matrix is multiplied; medians of the slowest rank."""

    pure_usec: float  # of the call alone
    compute_usec: float  # of the multiplication alone
    overlapped_usec: float
    wait_usec: float  # for the end of the call, after the multiplication
    lost_usec: float  # by the multiplication
    defects: int


@dataclass
class Output:
    library: Optional[str] = None
    points: dict = field(default_factory=dict)  # by size
    lines: dict = field(default_factory=dict)  # before and after a size, (microseconds of the cache line, slowdown of a computing rank)
    memory: dict = field(default_factory=dict)  # (mean, most) KiB of a rank by (when, kind)
    overlap: Optional[Overlap] = None
    counted: dict = field(default_factory=dict)  # by size: (messages within counted calls, those that waited), where Velo counts them
    complete: bool = False

    @property
    def defects(self):
        return sum(point.defects for point in self.points.values())


def parse(text):
    """What a run printed in the modes points, calls, overlap and memory; other lines (warnings of an MPI) are passed over."""
    output = Output()
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["bench", "1"]:
            output.library = _library(line)
        elif words[:1] == ["point"] and len(words) == 11:
            output.points[int(words[2])] = Point(*map(float, words[3:6]), *map(int, words[6:10]), float(words[10]))
        elif words[:1] == ["counted"] and len(words) == 4:
            output.counted[int(words[1])] = int(words[2]), int(words[3])
        elif words[:1] == ["line"] and len(words) == 6:
            output.lines[int(words[1])] = (tuple(map(float, words[2:4])), tuple(map(float, words[4:6])))
        elif words[:1] == ["memory"] and len(words) == 5:
            output.memory[words[1], words[2]] = (float(words[3]), float(words[4]))
        elif words[:1] == ["overlap"] and len(words) == 11:
            output.overlap = Overlap(*map(float, words[4:9]), int(words[10]))
        elif words == ["end"]:
            output.complete = True
    return output


def _library(line):
    text = line.split(maxsplit=3)[3] if len(line.split()) > 3 else "unknown"
    if mpich := re.match(r"MPICH Version:\s*(\S+)(?:.*MPICH Device:\s*(\S+))?", text):
        return f"MPICH {mpich[1]}" + (f" ({mpich[2]})" if mpich[2] else "")
    return text.partition(",")[0][:60]
