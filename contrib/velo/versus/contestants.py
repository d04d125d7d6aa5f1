"""Who takes part: found on the machine, or given by the user."""

import functools
import os
import re
import shlex
import shutil
from dataclasses import dataclass, replace

from ..process import environment, run_limited
from ..processors import cores
from ..programs import NotFound, beside, find_mpirun

_ASK_SECONDS = 30
_UCX = "--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any -x UCX_TLS=posix,cma,self"
RANKS = "{np}"
_VELO_COLLECTIVES = "--mca coll velo,basic,libnbc,inter,self"
_MULTICAST = "--mca coll_velo_multicast"
_SMALL = ("barrier", "bcast", "reduce", "allreduce")
# Components of Open MPI for collectives that it does not choose by itself on one node, and what they serve (nothing: all).
_ASKED_FOR = {"sm": _SMALL, "adapt": ("bcast", "ibcast", "reduce", "ireduce"), "xhc": _SMALL, "acoll": ()}
_RELEASE_GATHER = tuple(word for name in map(str.upper, _SMALL)
                        for word in ("-genv", f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM", "release_gather"))
COLLECTIVES_BY_THEMSELVES = tuple(f"coll-{name}" for name in _ASKED_FOR) + ("mpich-rg",)
FOUND_BY_ITSELF = ("velo", "mtl", "vader", "sm", "tcp", "ucx", "mpich", "tree") + COLLECTIVES_BY_THEMSELVES
_UCX_NETWORK = "--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any -x UCX_TLS=^sm"
BEFORE = {"btl": "before", "mtl": "mtl-before"}  # names of another build of Velo, by layer
# The nodes of contrib/nodes share the processors of one machine.
_ONE_MACHINE = ("sh", "-c", 'exec taskset -c "$OMPI_COMM_WORLD_RANK" "$0" "$@"')


@dataclass(frozen=True)
class Contestant:
    name: str
    mpicc: str
    pinned: tuple  # words of the command that starts a program, {np} for the ranks; a core for each rank
    crowded: tuple  # the same for more ranks than cores
    layer: str = ""  # of Velo: btl or mtl
    remark: str = ""
    mpi: str = "openmpi"  # for {mpi} in the words of a program
    serves: tuple = ()  # names of patterns, with fixed root and rotating; empty: all

    @property
    def is_velo(self):
        return bool(self.layer)

    def command(self, ranks, program):
        words = self.pinned if ranks <= cores() else self.crowded
        return [word.replace(RANKS, str(ranks)) for word in words] + [str(word) for word in program]


@dataclass(frozen=True)
class Missing:
    name: str
    reason: str


def find(options):
    """The contestants, Velo and its variants first, and who is missing. Raises NotFound without Open MPI."""
    open_mpi = OpenMpi(options.mpirun, options.mpicc, options.between_nodes, options.processors, collectives=options.collectives)
    candidates = [open_mpi.velo()] + [open_mpi.variant(name, words) for name, words in options.variants]
    candidates += [open_mpi.matching("mtl")] + [open_mpi.matching(*variant) for variant in options.mtl_variants]
    candidates += (open_mpi.before(options.before) if options.before else [])
    candidates += ([open_mpi.tcp(), open_mpi.ucx()] if options.between_nodes else
                   [open_mpi.shared_memory(), open_mpi.ucx(), find_mpich(options.processors)])
    if options.collectives and options.between_nodes:
        candidates.append(open_mpi.tree())
    elif options.collectives:
        candidates += [open_mpi.asked_for(name) for name in _ASKED_FOR] + [find_mpich(options.processors, release_gather=True)]
    candidates += [_given(*given) for given in options.contestants]
    wanted = [c for c in candidates if _is_wanted(c, options)]
    contestants = [c for c in wanted if isinstance(c, Contestant)]
    return contestants, [c for c in wanted if isinstance(c, Missing)], open_mpi


def _is_wanted(candidate, options):
    """Velo itself cannot be left out: it is what the others are compared with."""
    if candidate.name in ("velo", BEFORE["btl"]) or candidate.name in options.given:
        return True
    name = "mtl" if candidate.name == BEFORE["mtl"] else candidate.name
    return name not in options.without and (not options.only or name in options.only)


class OpenMpi:
    def __init__(self, mpirun, mpicc, between_nodes=False, processors=(), info=None, collectives=False):
        self._collectives = collectives
        self._between_nodes = between_nodes
        self._processors = processors
        self.mpirun = find_mpirun(mpirun)
        first_line = _ask(self.mpirun, "--version").strip().partition("\n")[0]
        if "Open MPI" not in first_line and "OpenRTE" not in first_line:
            raise NotFound(f"{self.mpirun} is not the mpirun of an Open MPI that works; name that one with --mpirun. "
                           f"It answers --version with: {first_line or 'nothing'}")
        self.version = first_line.split()[-1]
        self.mpicc = beside(self.mpirun, "mpicc", given=mpicc)
        if self.mpicc is None:
            raise NotFound(f"{mpicc or 'mpicc of Open MPI'} not found; on Debian 12: apt-get install libopenmpi-dev, "
                           "or name it with --mpicc")
        info = info or beside(self.mpirun, "ompi_info")
        self._info = _ask(info, "--parsable") if info else None

    def component(self, framework, name):
        """Whether there is this component; true if nobody can tell."""
        return self._info is None or f"mca:{framework}:{name}:version:" in self._info

    def velo_version(self):
        mark = "mca:btl:velo:version:\"component:"
        return self._info.partition(mark)[2].partition('"')[0] if self._info and mark in self._info else None

    def before(self, directory):
        """Both layers of another build of Velo, in a directory that mca_base_component_path then begins with."""
        words = self._component_path(directory)
        made = {"btl": self.variant, "mtl": self.matching}
        return [made[layer](name, words) if (directory / f"mca_{layer}_velo.so").exists() else
                Missing(name, f"there is no mca_{layer}_velo.so in {directory}") for layer, name in BEFORE.items()]

    def _component_path(self, directory):
        settings = _ask(beside(self.mpirun, "ompi_info"), "--parsable", "--param", "mca", "base", "--level", "9")
        usual = re.search(r'mca_base_component_path:value:"?([^"\n]*)', settings)
        if usual is None:
            raise NotFound("--before: ompi_info does not tell mca_base_component_path")
        return f"--mca mca_base_component_path {shlex.quote(f'{directory.resolve()}:{usual[1]}')}"

    def velo(self):
        if not self.component("btl", "velo"):
            return Missing("velo", f"Open MPI {self.version} ({self.mpirun}) finds no btl component velo; run make "
                           "install, and ompi_info --show-failed if that is done")
        if self._collectives and not self.component("coll", "velo"):
            return Missing("velo", f"Open MPI {self.version} ({self.mpirun}) finds no coll component velo")
        return self._contestant("velo", "--mca pml ob1 --mca btl velo", layer="btl")

    def matching(self, name, words=""):
        """The MTL: messages with a matching of Velo's own."""
        if not self.component("mtl", "velo"):
            return Missing(name, f"Open MPI {self.version} ({self.mpirun}) finds no mtl component velo")
        return self._contestant(name, f"--mca pml cm --mca mtl velo --mca btl self {words}", layer="mtl")

    def variant(self, name, words):
        if not self.component("btl", "velo"):
            return Missing(name, "a variant of velo, which is missing")
        return self._contestant(name, f"--mca pml ob1 --mca btl velo {words}", layer="btl")

    def shared_memory(self, words=""):
        """Open MPI's own: vader, which 5.0 calls sm."""
        name = "vader" if self._major() < 5 else "sm"
        if not self.component("btl", name):
            return Missing(name, f"Open MPI {self.version} has no btl component {name}")
        return self._contestant(name, f"--mca pml ob1 --mca btl {name},self {words}")

    def asked_for(self, component):
        """A component for collectives, over Open MPI's own transport."""
        own = self.shared_memory()
        if isinstance(own, Missing) or not self.component("coll", component):
            return Missing(f"coll-{component}", f"Open MPI {self.version} has no coll component {component}")
        return replace(self.shared_memory(f"--mca coll_{component}_priority 90"), name=f"coll-{component}", serves=_ASKED_FOR[component])

    def tree(self):
        """Velo's collectives without multicast, as one of those that it is held against."""
        if not self.component("coll", "velo"):
            return Missing("tree", "there is no coll component velo")
        return self._contestant("tree", f"--mca pml ob1 --mca btl velo {_VELO_COLLECTIVES} {_MULTICAST} off")

    def tcp(self):
        return self._contestant("tcp", "--mca pml ob1 --mca btl tcp,self")

    def ucx(self):
        if not self.component("pml", "ucx"):
            return Missing("ucx", f"Open MPI {self.version} has no pml component ucx: it was built without UCX")
        one_sided = " --mca osc ucx" if self.component("osc", "ucx") else ""
        return self._contestant("ucx", (_UCX_NETWORK if self._between_nodes else _UCX) + one_sided)

    def _major(self):
        digits = self.version.lstrip("v").partition(".")[0]
        return int(digits) if digits.isdigit() else 4

    def _contestant(self, name, words, layer=""):
        many = ["--oversubscribe"] if self._major() < 5 else ["--map-by", ":OVERSUBSCRIBE"]
        start = [self.mpirun, *many, "-n", RANKS]
        if layer and self._collectives:
            words += f" {_VELO_COLLECTIVES}"
            words += f" {_MULTICAST} auto" if self._between_nodes and _MULTICAST not in words else ""
        own = shlex.split(words)
        if self._between_nodes:
            return self._on_nodes(name, own, layer)
        pinned = self._start_pinned(many) + ["--mca", "mpi_yield_when_idle", "0"] + own
        crowded = start + ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"] + own
        return Contestant(name, self.mpicc, tuple(pinned), tuple(crowded), layer,
                          "beyond the cores not pinned, and told to yield when idle (mpi_yield_when_idle)")

    def _start_pinned(self, many):
        if not self._processors:
            return [self.mpirun, *many, "-n", RANKS, "--bind-to", "core"]
        listed = ",".join(map(str, self._processors))
        if self._major() < 5:
            return [self.mpirun, *many, "-n", RANKS, "--cpu-list", listed, "--bind-to", "cpu-list:ordered"]
        return [self.mpirun, "--map-by", f"pe-list={listed}:ordered", "-n", RANKS]

    def _on_nodes(self, name, own, layer):
        def start(yields, *place):
            return (self.mpirun, "-n", RANKS, "--map-by", "node", "--mca", "mpi_yield_when_idle", yields, *own, *device, "--bind-to", *place)

        device = ["-x", "UCX_NET_DEVICES"] if "UCX_NET_DEVICES" in os.environ else []
        if "VELO_NODES" not in os.environ:
            return Contestant(name, self.mpicc, start("0", "core"), start("0", "core"), layer)
        return Contestant(name, self.mpicc, start("0", "none", *_ONE_MACHINE), start("1", "none"), layer)


def find_mpich(processors=(), release_gather=False):
    """With release_gather: its collectives in shared memory, whatever the size."""
    name = "mpich-rg" if release_gather else "mpich"
    mpirun = shutil.which("mpirun.mpich") or shutil.which("mpiexec.hydra")
    mpicc = shutil.which("mpicc.mpich")
    for program, what, package in ((mpirun, "mpirun.mpich", "mpich"), (mpicc, "mpicc.mpich", "libmpich-dev")):
        if program is None:
            return Missing(name, f"{what} not found; on Debian 12: apt-get install {package}; elsewhere name MPICH "
                           "with --contestant")
    how = _RELEASE_GATHER if release_gather else ()
    crowded = (mpirun, "-n", RANKS, "-bind-to", "none", "-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1", *how)
    place = "user:" + ",".join(map(str, processors)) if processors else "core"
    return Contestant(name, mpicc, (mpirun, "-n", RANKS, "-bind-to", place, *how), crowded, serves=_SMALL if release_gather else (),
                      remark="beyond the cores not pinned; MPIR_CVAR_POLLS_BEFORE_YIELD=1 is all that it has for "
                      "yielding, and not all of its devices heed it", mpi="mpich")


def _given(name, mpicc, command):
    words = shlex.split(command)
    for program, kind in ((mpicc, "compiler"), (words[0], "mpirun")):
        if not shutil.which(program):
            return Missing(name, f"{kind} {program} not found")
    if not any(RANKS in word for word in words):
        words += ["-n", RANKS]
    return Contestant(name, mpicc, tuple(words), tuple(words), remark="beyond the cores started as given", mpi=name)


@functools.lru_cache
def _ask(program, *arguments):
    try:
        finished = run_limited([program, *arguments], environment(), _ASK_SECONDS)
    except OSError as error:
        raise NotFound(f"cannot start {program}: {error}") from error
    return finished.stdout or finished.stderr
