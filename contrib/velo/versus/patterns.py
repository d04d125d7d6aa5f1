"""What is measured, at which sizes, and which ratio (Velo's time / the best other's) is aimed at."""

from dataclasses import dataclass, replace
from typing import Optional

from .distance import FAR

KIB, MIB = 1 << 10, 1 << 20
_LARGEST = 4 * MIB
MPI = "{mpi}"
# The send and receive buffers of all ranks of an Alltoall together may take so much.
_ALLTOALL_BYTES = 512 * MIB

# Open MPI's transport in shared memory: vader, which 5.0 calls sm.
OWN_OF_OPEN_MPI = ("vader", "sm")
_BOTH_WAYS = (1.0, 0.95, 1.0, 0.95)


@dataclass(frozen=True)
class Goal:
    """Sizes from `first` to `last`, both included."""

    first: int
    last: int
    ratios: tuple  # of the BTL near, the MTL near, the BTL far, the MTL far; or one for all
    near_opponents: tuple = ()  # whom the BTL is compared with near; else with the best

    def ratio(self, layer, distance):
        return self.ratios[self._place(layer, distance)]

    def opponents(self, layer, distance):
        """Empty: all."""
        return () if self._place(layer, distance) else self.near_opponents

    def _place(self, layer, distance):
        return 0 if len(self.ratios) == 1 else 2 * (distance == FAR) + (layer == "mtl")

    def label(self):
        return size_text(self.first) + ("" if self.first == self.last else f" to {size_text(self.last)}")


@dataclass(frozen=True)
class Pattern:
    name: str  # as the measuring program knows it
    title: str
    unit: str  # what one time is
    smallest: int
    goals: tuple  # for two pinned ranks
    crowded: bool = False  # also measured with more ranks than that
    crowded_goals: tuple = ()  # for them; empty: to lose to nobody
    program: tuple = ()  # words of a whole program that is timed; {mpi} stands for the MPI that it is built with
    benchmark: str = ""  # of the measuring program, if it has another name there
    words: tuple = ()  # its options

    def arguments(self):
        return ["points", self.benchmark or self.name, *self.words]


PATTERNS = (
    Pattern("pingpong", "ping-pong", "half a round trip", 0, crowded=True, goals=(
        Goal(0, 8, (1.00, 0.95, 1.00, 0.90), OWN_OF_OPEN_MPI),
        Goal(64, 100, (1.10, 1.00, 0.90, 0.85)),
        Goal(256, 1 * KIB, (1.00, 0.90, 0.90, 0.85)),
        Goal(2 * KIB, 8 * KIB, (0.92, 0.90, 0.80, 0.75)),
        Goal(16 * KIB, 64 * KIB, (0.92, 0.90, 0.70, 0.65)),
        Goal(128 * KIB, 512 * KIB, (0.75,)),
        Goal(1 * MIB, _LARGEST, (0.60,)),
    )),
    Pattern("touched", "ping-pong, buffers written and read", "half a round trip", KIB, goals=(
        Goal(8 * KIB, 64 * KIB, (1.00, 1.00, 0.80, 0.75)),
        Goal(128 * KIB, _LARGEST, (0.80,)),
    )),
    Pattern("uniband", "streaming", "a message", 8, goals=(
        Goal(8, 64, (1.05, 1.00, 0.95, 0.90), OWN_OF_OPEN_MPI),
        Goal(128, 2 * KIB, (0.85, 0.80, 0.75, 0.70)),
        Goal(4 * KIB, 64 * KIB, (0.60, 0.55, 0.60, 0.60)),
    )),
    Pattern("biband", "bidirectional streaming", "a message each way", 8, goals=(Goal(8, _LARGEST, _BOTH_WAYS),)),
    Pattern("exchange", "Exchange", "an iteration", 1, crowded=True, goals=(Goal(1, _LARGEST, _BOTH_WAYS),)),
    Pattern("alltoall", "Alltoall", "a call", 1, crowded=True, goals=(Goal(1, _LARGEST, _BOTH_WAYS),)),
    Pattern("allreduce", "Allreduce", "a call", 4, crowded=True, goals=(Goal(4, _LARGEST, _BOTH_WAYS),)),
)


def _collective(name, title, goals, crowded_goals=(), smallest=8):
    """The call, as a request, and of a rooted one also with a root that moves on; buffers are written and read each time."""
    def pattern(own_name, own_title, *words):
        return Pattern(own_name, own_title, "a call", smallest, goals, crowded=True, crowded_goals=crowded_goals or goals,
                       benchmark=name, words=("--touch", 1, *words))

    yield pattern(name, title)
    if name in _ROOTED:
        yield pattern(name + _ROTATING, f"{title}, root rotating", "--hold", 1)
    yield pattern(f"i{name}", f"I{title.lower()}", "--request", 1)


_ROTATING = "-rotating"
_ROOTED = ("bcast", "reduce", "gather", "scatter")
_COLLECTIVE_LARGEST = 1 * MIB
_TO_ALL = (Goal(64, 4 * KIB, (0.75,)), Goal(8 * KIB, _LARGEST, (0.85,)))
_BLOCKS = (Goal(1, 4 * KIB, (0.80,)), Goal(8 * KIB, _LARGEST, (0.95,)))
COLLECTIVES = (
    *_collective("barrier", "Barrier", (Goal(0, 0, (0.70,)),), (Goal(0, 0, (0.50,)),), smallest=0),
    *_collective("bcast", "Bcast", (Goal(1, 56, (0.70,)), *_TO_ALL), (Goal(1, 56, (0.50,)), *_TO_ALL)),
    *_collective("allreduce", "Allreduce", (Goal(4, 56, (0.70,)), *_TO_ALL), (Goal(4, 56, (0.50,)), *_TO_ALL)),
    *_collective("reduce", "Reduce", (Goal(4, 4 * KIB, (0.75,)), Goal(8 * KIB, _LARGEST, (0.85,)))),
    *_collective("gather", "Gather", _BLOCKS),
    *_collective("scatter", "Scatter", _BLOCKS),
    *_collective("allgather", "Allgather", _BLOCKS),
    *_collective("alltoall", "Alltoall", _BLOCKS),
)
_NETWORK_GOALS = {
    "pingpong": (Goal(0, 4 * KIB, (0.90,)), Goal(8 * KIB, _LARGEST, (1.0,))),
    "uniband": (Goal(8, 4 * KIB, (0.90,)), Goal(8 * KIB, _LARGEST, (1.0,))),
}
_MULTICAST_GOALS = (Goal(1, 1 * KIB, (0.80,)), Goal(2 * KIB, 64 * KIB, (0.60,)))
BY_NAME = {pattern.name: pattern for pattern in PATTERNS}
NAMES = tuple(BY_NAME)
COLLECTIVE_NAMES = tuple(pattern.name for pattern in COLLECTIVES)


@dataclass(frozen=True)
class Case:
    """A pattern on a number of ranks: one run measures all its sizes."""

    ranks: int
    pattern: Pattern
    sizes: tuple

    def goals(self):
        """More ranks than two share the cores; the aim is then to lose to nobody, unless there is another one."""
        if self.ranks == 2:
            return self.pattern.goals
        return self.pattern.crowded_goals or (Goal(self.sizes[0], self.sizes[-1], (1.0,)),)

    def suits(self, contestant):
        """A program that does not say for which MPI it is built is one for Open MPI."""
        if contestant.serves and self.pattern.name.removesuffix(_ROTATING) not in contestant.serves:
            return False
        words = self.pattern.program
        return not words or contestant.mpi == "openmpi" or any(MPI in word for word in words)

    def title(self):
        return self.pattern.title + ("" if self.ranks == 2 else f", {self.ranks} ranks")


def cases(ranks, names, sizes, quick):
    """Everything to measure. `names` None: what is sensible for a number of ranks; `sizes` None: powers of two."""
    result = []
    for count in ranks:
        for pattern in PATTERNS:
            if pattern.name in names if names else (count == 2 or pattern.crowded):
                chosen = _sizes(pattern, count, sizes, quick)
                if chosen:
                    result.append(Case(count, pattern, chosen))
    return result


def collective_cases(ranks, names, sizes, quick):
    chosen = [pattern for pattern in COLLECTIVES if not names or pattern.name in names]
    found = [(count, pattern, _collective_sizes(pattern, count, sizes, quick)) for count in ranks for pattern in chosen]
    return [Case(*case) for case in found if case[-1]]


def program_cases(ranks, programs):
    return [Case(count, program(name, words), (0,)) for count in ranks for name, words in programs]


def program(name, words):
    return Pattern(name, name, "a run", 0, (), program=tuple(words))


def network_cases(names, sizes, quick):
    """Between two nodes, one rank on each: what there are goals for."""
    found = cases([2], names or tuple(_NETWORK_GOALS), sizes, quick)
    return [replace(case, pattern=_on_network(case.pattern)) for case in found]


def network_collective_cases(ranks, names, sizes, quick):
    """Between nodes: broadcasts, unless others are named."""
    return [replace(case, pattern=_on_network(case.pattern))
            for case in collective_cases(ranks, names or ("bcast", "bcast" + _ROTATING), sizes, quick)]


def _on_network(pattern):
    """With the goals that it has between nodes."""
    if pattern.benchmark == "bcast":
        return replace(pattern, goals=_MULTICAST_GOALS, crowded_goals=_MULTICAST_GOALS)
    return replace(pattern, goals=_NETWORK_GOALS.get(pattern.name, pattern.goals))


def known(collectives, between_nodes):
    """The patterns of a kind of series, by name and in their order."""
    patterns = COLLECTIVES if collectives else PATTERNS
    return {pattern.name: _on_network(pattern) if between_nodes else pattern for pattern in patterns}


def _collective_sizes(pattern, ranks, given, quick):
    if pattern.smallest == 0:
        return (0,)
    # 56 bytes are the payload of a line that has a word of its own.
    return _sizes(pattern, ranks, given, quick, _COLLECTIVE_LARGEST, (56,))


def _sizes(pattern, ranks, given, quick, largest=_LARGEST, beside=(0, 100)):
    name = pattern.arguments()[1]
    if name in ("alltoall", "allgather"):
        largest = min(largest, _ALLTOALL_BYTES // (2 * ranks * ranks))
    if given:
        return tuple(size for size in sorted(given) if _fits(pattern, size) and size <= largest)
    # Crowded cores are slow: every second power of two, up to what mailboxes and pipelines decide.
    step = 2 if quick or ranks > 2 else 1
    if ranks > 2:
        largest = min(largest, 64 * KIB)
    powers = [1 << exponent for exponent in range(0, 23, step)]
    # 100 bytes and a header of MPI's need two cache lines.
    return tuple(size for size in sorted([*beside, *powers]) if _fits(pattern, size) and size <= largest)


def _fits(pattern, size):
    return size >= pattern.smallest and (pattern.arguments()[1] not in ("allreduce", "reduce") or size % 4 == 0)


def goal_at(case, size) -> Optional[Goal]:
    return next((goal for goal in case.goals() if goal.first <= size <= goal.last), None)


def size_text(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"
