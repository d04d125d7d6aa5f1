"""The measuring program: compiled for each MPI, and what it prints."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from velo_compare.command import environment, shell_line
from velo_compare.process import run_limited

SOURCE = Path(__file__).resolve().with_name("measure.c")
# -O3: loops that touch a message should cost what they cost in a tuned application.
_FLAGS = ("-std=c11", "-O3")
_COMPILE_SECONDS = 120


class CompileError(RuntimeError):
    pass


class Compiler:
    """Compiles once for each mpicc, into a directory that the caller removes."""

    def __init__(self, directory):
        self._directory = Path(directory)
        self._programs = {}

    def program(self, mpicc):
        if mpicc not in self._programs:
            self._programs[mpicc] = self._compile(mpicc, self._directory / f"measure-{len(self._programs)}")
        return self._programs[mpicc]

    def _compile(self, mpicc, target):
        command = [mpicc, *_FLAGS, str(SOURCE), "-o", str(target)]
        try:
            finished = run_limited(command, environment(), _COMPILE_SECONDS)
        except OSError as error:
            raise CompileError(f"cannot start the compiler {mpicc}: {error}") from error
        failure = finished.failure(_COMPILE_SECONDS)
        if failure is None and not target.exists():
            failure = "it wrote no program"
        if failure:
            raise CompileError(f"the compiler failed, {failure}: {shell_line(command)}\n{finished.tail()}")
        return target


@dataclass(frozen=True)
class Time:
    usec: float  # median of the repetitions
    min_usec: float
    iterations: int
    repetitions: int
    defects: int


@dataclass
class Output:
    library: Optional[str] = None
    times: dict = field(default_factory=dict)  # Time by size
    memory: dict = field(default_factory=dict)  # (mean, most) KiB of a rank by (when, kind)
    complete: bool = False


def parse(text):
    """What a run printed; other lines (warnings of an MPI) are passed over."""
    output = Output()
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["versus", "1"]:
            output.library = _library(line)
        elif words[:1] == ["point"] and len(words) == 8:
            numbers = [int(word) for word in words[5:]]
            output.times[int(words[2])] = Time(float(words[3]), float(words[4]), *numbers)
        elif words[:1] == ["memory"] and len(words) == 5:
            output.memory[words[1], words[2]] = (float(words[3]), float(words[4]))
        elif words == ["end"]:
            output.complete = True
    return output


def _library(line):
    text = line.split(maxsplit=3)[3] if len(line.split()) > 3 else "unknown"
    if mpich := re.match(r"MPICH Version:\s*(\S+)(?:.*MPICH Device:\s*(\S+))?", text):
        return f"MPICH {mpich[1]}" + (f" ({mpich[2]})" if mpich[2] else "")
    return text.partition(",")[0][:60]
