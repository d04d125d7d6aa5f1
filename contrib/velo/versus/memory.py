"""Memory of the ranks, when each has sent one message to each other."""

import csv
import json
from dataclasses import dataclass, field
from typing import Optional

from .. import measuring
from ..grid import grid_text
from ..process import attempt, shell_line
from ..progress import Progress
from .contestants import Contestant

_KIB = 1024
_WHEN = ("started", "connected", "used")
# What a rank has of its own or shares with ranks alone; the rest are files, shared with other programs too.
_OWN = ("Pss_Anon", "Pss_Shmem")


@dataclass
class Use:
    contestant: Contestant
    ranks: int
    command: str
    kib: dict = field(default_factory=dict)  # (mean, most) of a rank by (when, kind)
    failure: Optional[str] = None
    output_tail: str = ""

    def bytes_of(self, *kinds, when="connected"):
        """The mean over the ranks."""
        return round(sum(self.kib[when, kind][0] for kind in kinds) * _KIB)


def measure_all(contestants, ranks, how):
    """`how` has the compiler and the timeout."""
    uses = []
    progress = Progress(len(contestants) * len(ranks))
    for contestant in contestants:
        for count in ranks:
            progress.starting(f"{contestant.name}, {count} ranks")
            uses.append(_measure(contestant, count, how.compiler, how.timeout))
    progress.finish()
    return uses


def _measure(contestant, ranks, compiler, timeout):
    command = contestant.command(ranks, [compiler.program(contestant.mpicc), "memory"])
    use = Use(contestant, ranks, shell_line(command))
    finished, failure = attempt(command, timeout)
    output = measuring.parse(finished.stdout)
    use.kib = output.memory
    use.failure = failure or _flaw(output)
    if use.failure:
        use.output_tail = finished.tail()
    return use


def _flaw(output):
    if not output.complete or any((when, "Pss") not in output.memory for when in _WHEN):
        return "the output ends early"
    if any(mean < 0 for mean, _ in output.memory.values()):
        return "this kernel does not split the proportional set size (Linux 5.4 or newer does)"
    return None


def table_text(uses):
    headings = ["contestant", "ranks", "bytes/rank", "anonymous", "shared", "files", "own", "own, started", "own, used"]
    rows = [_row(use) for use in uses]
    title = ("Proportional set size of a rank in bytes, mean over the ranks, when each has sent a message to each other.\n"
             "own: anonymous + shared (the pages of a library are shared out among all that map it, so files shrink as "
             "ranks are added);\nstarted: before the messages; used: after 32 more of 2 KiB to each other rank")
    return title + "\n" + grid_text(headings, rows, ["<"] + [">"] * 8, [use.contestant for use in uses])


def _row(use):
    if use.failure:
        return [use.contestant.name, str(use.ranks), "FAILED"] + ["-"] * 6
    kinds = ("Pss", "Pss_Anon", "Pss_Shmem", "Pss_File")
    cells = [use.bytes_of(kind) for kind in kinds]
    cells += [use.bytes_of(*_OWN, when=when) for when in ("connected", "started", "used")]
    return [use.contestant.name, str(use.ranks)] + [str(cell) for cell in cells]


def formulas_text(uses):
    """What another rank costs, from the fewest to the most ranks that were measured."""
    lines = []
    for contestant in dict.fromkeys(use.contestant for use in uses):
        known = sorted((u for u in uses if u.contestant == contestant and not u.failure), key=lambda u: u.ranks)
        if len(known) < 2:
            continue
        few, many = known[0], known[-1]
        lines += [f"{contestant.name}, {when}: {_line(few, many, when)}" for when in ("connected", "used")]
    return "\n".join(lines)


def _line(few, many, when):
    least, most = few.bytes_of(*_OWN, when=when), many.bytes_of(*_OWN, when=when)
    slope = (most - least) / (many.ranks - few.ranks)
    return (f"own bytes of a rank = {least - slope * few.ranks:.0f} + {slope:.0f} x ranks (line through {few.ranks} and "
            f"{many.ranks} ranks)")


def write_files(output, text, head, uses):
    (output / "memory.txt").write_text(text + "\n", encoding="utf-8")
    keys = [(when, kind) for when in _WHEN for kind in ("Pss", "Pss_Anon", "Pss_File", "Pss_Shmem")]
    with open(output / "memory.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["contestant", "ranks"] + [f"{when}_{kind.lower()}_bytes" for when, kind in keys] + ["failure"])
        for use in uses:
            values = ["" if use.failure else use.bytes_of(kind, when=when) for when, kind in keys]
            writer.writerow([use.contestant.name, use.ranks] + values + [use.failure or ""])
    document = head | {"version": 1, "uses": [_record(use) for use in uses]}
    (output / "memory.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _record(use):
    kib = {f"{when}_{kind.lower()}": {"mean_kib": mean, "max_kib": most} for (when, kind), (mean, most) in use.kib.items()}
    return {"contestant": use.contestant.name, "ranks": use.ranks, "command": use.command, "failure": use.failure,
            "output_tail": use.output_tail} | kib
