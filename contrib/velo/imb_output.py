"""Parser for the output of IMB-MPI1 (2018 to 2021) and of velo-mpi-bench.

Both print, for each benchmark and number of processes, a section such as

    #-----------------------------------------------------------------------------
    # Benchmarking Sendrecv
    # #processes = 4
    #-----------------------------------------------------------------------------
           #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
             2048         1000         3.19         3.23         3.21      1268.11

With -multi the name gets the prefix "Multi-", and "# ( 2 groups of 2 processes each running simultaneous )"
replaces the number of processes. A sample that could not be taken has a word (out-of-mem., time-out.,
int-overflow.) in place of its numbers.
"""

import re
from dataclasses import dataclass, field

_BENCHMARK = re.compile(r"^# Benchmarking (\S+)\s*$")
_PROCESSES = re.compile(r"^# #processes = (\d+)\s*$")
_GROUPS = re.compile(r"^# \( (\d+) groups of (\d+) processes each running simultaneous \)")
_COLUMNS = re.compile(r"^\s*(?:Group\s+)?#(?:bytes|repetitions)\b")
_END = "# All processes entering MPI_Finalize"


@dataclass
class Row:
    """A line of a table: its values by the names of the columns."""

    values: dict

    @property
    def size_bytes(self):
        """Message size; None for Barrier."""
        size = self.values.get("#bytes")
        return None if size is None else int(size)

    @property
    def repetitions(self):
        return int(self.values["#repetitions"])

    @property
    def defects(self):
        """What a data check found; None when there was none."""
        defects = self.values.get("defects")
        return None if defects is None else int(defects)

    @property
    def time_usec(self):
        """The average time of a repetition, or of a message where the table gives only a message rate."""
        for column in ("t_avg[usec]", "t[usec]"):
            if column in self.values:
                return self.values[column]
        rate = self.values.get("Msg/sec")
        return 1e6 / rate if rate else None


@dataclass
class Section:
    """One benchmark on one number of processes."""

    benchmark: str
    processes: int = 0
    groups: int = 1
    columns: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    notices: list = field(default_factory=list)

    def row(self, size_bytes):
        """The first row of that size (None for Barrier), or None."""
        return next((row for row in self.rows if row.size_bytes == size_bytes), None)


@dataclass
class Output:
    sections: list
    finished: bool  # the program reached its end

    def section(self, benchmark, processes=None):
        """The section of a benchmark, the one with the most processes unless told; None if missing. Of a single pair IMB
        calls Multi-PingPong PingPong."""
        name = benchmark.lower()
        found = [s for s in self.sections if s.benchmark.lower() == name] or [
            s for s in self.sections if name == f"multi-{s.benchmark.lower()}"]
        if processes is not None:
            found = [s for s in found if s.processes * s.groups == processes]
        return max(found, key=lambda s: s.processes * s.groups, default=None)


def parse(text):
    """The sections in the output of IMB-MPI1 or velo-mpi-bench."""
    sections = []
    finished = False
    for line in text.splitlines():
        started = _BENCHMARK.match(line)
        if started:
            sections.append(Section(started.group(1)))
        elif line.startswith(_END):
            finished = True
        elif sections:
            _read_line(sections[-1], line)
    return Output(sections, finished)


def read_row(text, benchmark, size_bytes):
    """The row that was asked for, and why there is none or it does not count."""
    output = parse(text)
    section = output.section(benchmark)
    if section is None:
        return None, f"no section for {benchmark} in the output"
    row = section.row(size_bytes)
    if row is None or row.time_usec is None:
        return None, "no time in the output" + (f": {section.notices[0]}" if section.notices else "")
    if not output.finished:
        return None, "the output ends early"
    return row, f"data check: {row.defects} defects" if row.defects else None


def _read_line(section, line):
    if processes := _PROCESSES.match(line):
        section.processes = int(processes.group(1))
    elif groups := _GROUPS.match(line):
        section.groups, section.processes = (int(number) for number in groups.groups())
    elif _COLUMNS.match(line):
        section.columns = line.split()
    elif section.columns and line.strip() and not line.startswith("#"):
        _read_row(section, line)


def _read_row(section, line):
    try:
        numbers = [float(word) for word in line.split()]
    except ValueError:
        section.notices.append(line.strip())
        return
    if len(numbers) == len(section.columns):
        section.rows.append(Row(dict(zip(section.columns, numbers))))
    else:
        section.notices.append(line.strip())
