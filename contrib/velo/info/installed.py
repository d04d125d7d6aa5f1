"""The plugin: where it lies, for which Open MPI, what it is linked with."""

import ctypes
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from ..plugin import Unavailable, ask
from ..process import environment, run_limited
from ..programs import NotFound, beside, find_mpirun
from .apart import Refused, apart

_ASK_SECONDS = 60
FILE = "mca_btl_velo.so"
_COMPONENTS = {"btl": FILE, "mtl": "mca_mtl_velo.so", "coll": "mca_coll_velo.so"}


@dataclass
class OpenMpi:
    mpirun: str
    ompi_info: str
    version: str
    prefix: str
    places: list  # where it looks for components
    component_path: str  # these, for its parameter of that name
    choices: dict  # what files and the environment choose of pml, btl, mtl and coll


@dataclass
class Installed:
    file: Path = None
    components: list = field(default_factory=list)
    built_for: str = None
    libraries: dict = field(default_factory=dict)  # what the plugin is linked with, and where that was found
    version: str = None
    parameters: dict = field(default_factory=dict)
    chosen: frozenset = frozenset()  # of the parameters, those that files or the environment set
    troubles: list = field(default_factory=list)  # why it cannot be used

    def library(self, name):
        """The name by which the plugin asks for a library such as ucp; None: it was built without."""
        return next((needed for needed in self.libraries if needed.startswith(f"lib{name}.so")), None)


def open_mpi(given):
    mpirun = find_mpirun(given)
    ompi_info = beside(mpirun, "ompi_info")
    if ompi_info is None:
        raise NotFound(f"there is no ompi_info beside {mpirun}; on Debian 12: apt-get install openmpi-bin")
    told = run_limited([ompi_info, "--all", "--parsable", "--level", "9"], environment(), _ASK_SECONDS).stdout

    def value(key):
        found = re.search(rf"^{key}:\"?(.*?)\"?$", told, re.MULTILINE)
        return found[1] if found else ""

    # PMIx takes the same parameter for its own: by these words it means its own directories, and looks into none of Open MPI's.
    own = {value("path:pkglibdir"): "SYS_DEFAULT", str(Path.home() / ".openmpi/components"): "USER_DEFAULT"}
    meant = {word: place for place, word in own.items()}
    places = [meant.get(place, place) for place in value("mca:mca:base:param:mca_base_component_path:value").split(":") if place]
    return OpenMpi(mpirun, ompi_info, value("ompi:version:full"), value("path:prefix"), places, ":".join(own.get(place, place) for place in places),
                   {name: chosen for name in ("pml", "btl", "mtl", "coll") if (chosen := value(f"mca:{name}:base:param:{name}:value"))})


def plugin(mpi):
    found = Installed()
    found.file = next((path for place in mpi.places if (path := Path(place) / FILE).is_file()), None)
    if found.file is None:
        found.troubles.append(f"{FILE} is in none of {', '.join(mpi.places)}: make install puts it there")
        return found
    found.components = [name for name, file in _COMPONENTS.items() if (found.file.parent / file).is_file()]
    try:
        loaded = apart(lambda: _load(found.file))
    except Refused as refusal:
        found.troubles.append(f"{found.file} cannot be loaded: {refusal}; install what is missing, or build Velo for this machine")
        return found
    found.built_for, found.libraries = loaded["built_for"], loaded["libraries"]
    if found.built_for.split(".")[:2] != mpi.version.split(".")[:2]:
        found.troubles.append(f"it was built for Open MPI {found.built_for} and does not serve {mpi.version}: build Velo with this Open MPI")
        return found
    try:
        told = ask(mpi.ompi_info)
        found.version, found.parameters, found.chosen = told.version, told.parameters, told.chosen
    except (NotFound, Unavailable) as refusal:
        found.troubles.append(str(refusal))
    return found


class _Component(ctypes.Structure):
    """Open MPI's mca_base_component_2_1_0_t as far as the version of the project: the Open MPI that it was compiled for."""

    _fields_ = [("mca_version", ctypes.c_int * 3), ("project", ctypes.c_char * 16), ("project_version", ctypes.c_int * 3)]


class _LinkMap(ctypes.Structure):
    """The loader's record of an object, glibc's struct link_map."""


_LinkMap._fields_ = [("address", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dynamic", ctypes.POINTER(ctypes.c_size_t)),
                     ("next", ctypes.POINTER(_LinkMap))]
_RTLD_DI_LINKMAP = 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5


def _load(file):
    """As Open MPI loads it: at once and for itself."""
    handle = ctypes.CDLL(str(file), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    component = _Component.in_dll(handle, "mca_btl_velo_component")
    own = ctypes.POINTER(_LinkMap)()
    dlinfo = ctypes.CDLL(None).dlinfo
    dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    if dlinfo(handle._handle, _RTLD_DI_LINKMAP, ctypes.byref(own)) != 0:
        raise Refused("the loader does not tell what it is linked with")
    loaded, each = {}, own
    while each:
        path = each.contents.name.decode()
        loaded[Path(path).name] = path
        each = each.contents.next
    return {"built_for": ".".join(map(str, component.project_version)),
            "libraries": {name: loaded.get(name) for name in _needed(own.contents.dynamic)}}


def _needed(dynamic):
    entries = []
    while (tag := dynamic[2 * len(entries)]) != _DT_NULL:
        entries.append((tag, dynamic[2 * len(entries) + 1]))
    strings = dict(entries)[_DT_STRTAB]
    return [ctypes.string_at(strings + at).decode() for tag, at in entries if tag == _DT_NEEDED]
