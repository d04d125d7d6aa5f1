"""What velo-lab-patterns prints (contrib/lab/patterns/main.cpp)."""

from dataclasses import dataclass
from typing import Optional

VERSION = "1"


@dataclass
class Output:
    time_usec: Optional[float] = None
    min_usec: Optional[float] = None
    max_usec: Optional[float] = None
    defects: int = 0
    bytes_counted: float = 0.0
    messages: int = 0  # of the whole run, those of the barriers not among them
    complete: bool = False


def parse(text):
    output = Output()
    started = False
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["lab", VERSION]:
            started = True
        elif started and words:
            _read(words, output)
    return output


def _read(words, output):
    kind, values = words[0], words[1:]
    if kind == "point" and len(values) == 7:
        output.time_usec, output.min_usec, output.max_usec = (float(value) for value in values[:3])
        output.defects += int(values[4])
        output.bytes_counted, output.messages = float(values[5]), int(values[6])
    elif words == ["end"]:
        output.complete = True
