"""How messages to processes of this machine go: what the plugin says, and a calibration that it reads from then on."""

import ctypes
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path

from ..command import Trouble
from ..measuring import SHORT_RUNS, Compiler
from ..process import attempt, mca_words
from ..programs import beside
from .apart import Refused, apart

_TITLE = "velo routes 1"
_SECONDS, _ROUNDS = 60, 3
_EAGER = (512, 8192)
_LARGE = (16384, 4194304)
_NEVER = "never"
_COPIED = (4096, 262144)
# How the sender copies; then ways of short messages and of long ones: each as a table that knows no other.
_COPY = {"vectors": "copy vectors", "non-temporal": "copy non-temporal", "string": "copy string"}
_ALL_SHARED = "reference 4096 staged 67108864 both never"
_SHORT = {"packets": "reference never", "reference": "reference 512"}
_LONG = {"staged": "staged 67108864 both never", "reader": "staged 0 both never", "both": "staged 0 both 16384"}


def file_path():
    """Where the plugin looks for the calibration. Raises Trouble."""
    named = os.environ.get("VELO_ROUTES_FILE")
    if named:
        return Path(named)
    if named == "" or not os.environ.get("HOME"):
        raise Trouble("there is neither HOME nor VELO_ROUTES_FILE: name a file for the calibration with one of them")
    return Path(os.environ["HOME"]) / ".velo" / "routes"


def file_text():
    return "VELO_ROUTES_FILE, or ~/.velo/routes"


def _ask(plugin, choice, eager_limit=None):
    def ask():
        # What the component needs of Open MPI is loaded first, as mpirun's processes have it.
        for library in ("libopen-pal.so", "libopen-rte.so", "libmpi.so"):
            if found := next((path for name, path in plugin.libraries.items() if name.startswith(library)), None):
                ctypes.CDLL(found, mode=ctypes.RTLD_GLOBAL)
        told = ctypes.CDLL(str(plugin.file)).velo_routes_text
        told.restype = ctypes.c_size_t
        told.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        room = ctypes.create_string_buffer(65536)
        told(os.fsencode(choice), eager_limit and os.fsencode(eager_limit), room, len(room))
        return room.value.decode(errors="replace")

    try:
        return apart(ask)
    except Refused as refusal:
        raise Trouble(f"{plugin.file} does not tell its routes: {refusal}") from refusal


def told(plugin):
    """The table that a job would use now. Raises Trouble."""
    # Of a table in the environment ompi_info prints the first line; a file of parameters has one line for each.
    choice = os.environ.get("OMPI_MCA_btl_velo_routes", plugin.parameters.get("routes", "auto"))
    answer = _ask(plugin, choice, plugin.parameters["eager_limit"] if "eager_limit" in plugin.chosen else None)
    if "\n" not in answer:
        raise Trouble(answer if answer.startswith("btl_velo_eager_limit ") else
                      f"btl_velo_routes is {choice!r}: {answer}; set it to auto, safe, or what velo-info --routes prints")
    source, processor, rest = answer.split("\n", 2)
    ranges, table = rest.split("\n\n", 1)
    return {"processor": processor or None, "source": source, "ranges": ranges.splitlines(), "table": table.strip()}


def text(routes):
    return "\n".join([f"Routes on this machine ({routes['processor'] or 'processor unknown'}): {routes['source']}", "",
                      *(f"  {line}" for line in routes["ranges"]), "",
                      "As a value of btl_velo_routes", "", *(f"  {line}" for line in routes["table"].splitlines())])


def calibrate(mpi, plugin):
    """Measures between two cores and writes the file. Raises Trouble."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Trouble("--calibrate needs two processors: this process may use one")
    path = file_path()
    processor = _ask(plugin, "safe").split("\n", 2)[1]
    if not processor:
        raise Trouble("--calibrate: this processor has no name that a file could be told by; set btl_velo_routes instead")
    mpicc = beside(mpi.mpirun, "mpicc")
    if mpicc is None:
        raise Trouble(f"--calibrate needs mpicc beside {mpi.mpirun}; on Debian 12: apt-get install libopenmpi-dev")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + f".{os.getpid()}")
    # Whatever is in its way shows before three minutes have passed.
    if path.is_dir():
        raise Trouble(f"--calibrate: {path} is a directory")
    partial.touch()
    for name in [name for name in os.environ if name.startswith("OMPI_MCA_btl_velo_")]:
        del os.environ[name]
    try:
        with tempfile.TemporaryDirectory(prefix="velo-info-") as directory:
            run = _Runs(mpi.mpirun, Compiler(directory).built(mpicc, SHORT_RUNS))
            distance = "far" if run.is_far() else "near"
            both, row = _row(run)
            # Of the other distance, which is not measured, what is built in holds, but for who copies: a process that only receives
            # does not know the distance.
            partial.write_text(f"{_TITLE}\nprocessor {processor}\n{both}\n{distance} {row}\nend\n", encoding="ascii")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


class _Runs:
    def __init__(self, mpirun, program):
        self._start = [mpirun, "-n", "2", "--bind-to", "core", *mca_words({"pml": "ob1", "btl": "velo,self"})]
        self._program = str(program)
        self.settled = ""  # words before each table

    def is_far(self):
        """Whether the two cores share no cache, as the plugin sees it."""
        command = [*self._start, "--mca", "btl_velo_verbose", "20", self._program, "latency", "512", "8192"]
        finished, failure = attempt(command, _SECONDS)
        if failure:
            raise Trouble(f"--calibrate: a job of two processes failed, {failure}:\n{finished.tail()}")
        return " is far: " in finished.stderr

    def compare(self, pattern, sizes, ways):
        """Microseconds by way and by size, the ways in turn: each a table, the sender copying as settled."""
        print(f"velo-info: measuring {pattern}, {sizes[0]} to {sizes[1]} bytes, {' beside '.join(ways)}", file=sys.stderr)
        times = {way: {} for way in ways}
        for _ in range(_ROUNDS):
            for way, table in ways.items():
                command = [*self._start, "--mca", "btl_velo_routes", f"{self.settled} {table}", self._program, pattern, str(sizes[0]), str(sizes[1])]
                finished, failure = attempt(command, _SECONDS)
                if failure:
                    raise Trouble(f"--calibrate: a job of two processes failed, {failure}:\n{finished.tail()}")
                for line in finished.stdout.splitlines():
                    words = line.split()
                    if len(words) == 2 and words[0].isdecimal():
                        times[way].setdefault(int(words[0]), []).append(float(words[1]))
        return {way: {size: statistics.median(its) for size, its in found.items()} for way, found in times.items()}


def _added(*comparisons):
    """One comparison of several patterns: how many times the best each way takes, multiplied."""
    total = {}
    for times in comparisons:
        for size in next(iter(times.values())):
            best = min(its[size] for its in times.values())
            for way, its in times.items():
                total.setdefault(way, {}).setdefault(size, 1.0)
                total[way][size] *= its[size] / best
    return total


def limit(costs, first, rest):
    """The size from which on `rest` is to go instead of `first`, such that both together cost least: None for never."""
    sizes = sorted(costs[first])

    def cost(border):
        product = 1.0
        for size in sizes:
            product *= costs[rest if border is not None and size >= border else first][size]
        return product

    return min([*sizes, None], key=cost)


def _long(costs):
    """staged up to a size, then the reader, then both: the two borders that cost least."""
    sizes = sorted(costs["staged"])
    best = None
    for staged in [0, *sizes]:
        for both in [size for size in [*sizes, None] if size is None or size > staged]:
            product = 1.0
            for size in sizes:
                way = "staged" if size <= staged else "both" if both is not None and size >= both else "reader"
                product *= costs[way][size]
            if best is None or product < best[0]:
                best = (product, staged, both)
    return best[1], best[2] or _NEVER


def _row(run):
    ways = {way: f"{table} {_ALL_SHARED}" for way, table in _COPY.items()}
    copied = _added(run.compare("latency", _COPIED, ways), run.compare("bw", _COPIED, ways), run.compare("sendrecv", _COPIED, ways))
    run.settled = _COPY[min(copied, key=lambda way: math.prod(copied[way].values()))]
    short = _added(run.compare("latency", _EAGER, _SHORT), run.compare("bw", _EAGER, _SHORT), run.compare("sendrecv", _EAGER, _SHORT))
    one_way = _added(run.compare("latency", _LARGE, _LONG), run.compare("bw", _LARGE, _LONG))
    both_ways = _added(run.compare("bibw", _LARGE, _LONG), run.compare("sendrecv", _LARGE, _LONG))
    cold, _ = _long(run.compare("cold", _LARGE, _LONG))
    reference = limit(short, "packets", "reference") or _NEVER
    staged, both = _long(one_way)
    staged_both, both_both = _long(both_ways)
    # Where staging wins at every length nothing is known of what is not staged.
    known = [f"{column} both {least}" for column, border, least in (("one-way", staged, both), ("both-ways", staged_both, both_both))
             if border < _LARGE[1]]
    return (" ".join(known),
            f"{run.settled} reference {reference} one-way staged {staged} cold {cold} both-ways staged {staged_both} cold {staged_both}")
