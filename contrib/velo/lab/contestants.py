"""Who executes collectives in the experiments on schedules."""

import dataclasses

from ..versus.contestants import Missing, OpenMpi, find_mpich

# Schedules; Open MPI's own (tuned, libnbc) over the same transport and over vader (sm of 5.0); MPICH.
VELO, SAME, VADER, MPICH = NAMES = ("coll/velo", "libnbc over velo", "libnbc over vader", "mpich")
# Between nodes: coll/velo with multicast, and without; schedules alone, ranks node by node.
MULTICAST, TREE, BY_NODE = "multicast", "tree", "schedules"


def find(mpirun, ompi_info, processors=(), wanted=NAMES):
    """Contestants by name, and in words who is missing."""
    open_mpi = OpenMpi(mpirun, None, processors=tuple(processors), info=ompi_info)
    all_of_them = {VELO: lambda: open_mpi.variant(VELO, "--mca coll velo,basic,libnbc,self"),
                   SAME: lambda: open_mpi.variant(SAME, ""),
                   VADER: lambda: dataclasses.replace(open_mpi.shared_memory(), name=VADER),
                   MPICH: lambda: find_mpich(tuple(processors))}
    found = {name: all_of_them[name]() for name in NAMES if name in wanted}
    missing = [f"{name}: {found.pop(name).reason}" for name in list(found) if isinstance(found[name], Missing)]
    return found, missing + [f"{name}: not among --contestants" for name in NAMES if name not in wanted]


def find_network(mpirun, ompi_info):
    """The same between nodes."""
    open_mpi = OpenMpi(mpirun, None, between_nodes=True, info=ompi_info, collectives=True)
    return _sorted((open_mpi.variant(MULTICAST, "--mca coll_velo_multicast always"), open_mpi.tree(), open_mpi.tcp(), open_mpi.ucx()))


def find_by_node(mpirun, ompi_info):
    """Velo with ranks that fill a node before the next."""
    open_mpi = OpenMpi(mpirun, None, between_nodes=True, info=ompi_info)
    velo = open_mpi.variant(BY_NODE, "")
    if not isinstance(velo, Missing):
        velo = dataclasses.replace(velo, pinned=_by_slot(velo.pinned), crowded=_by_slot(velo.crowded))
    return _sorted((velo,))


def _by_slot(words):
    return tuple("slot" if before == "--map-by" else word for before, word in zip(("", *words), words))


def _sorted(contestants):
    found = {contestant.name: contestant for contestant in contestants}
    missing = [f"{name}: {found.pop(name).reason}" for name in list(found) if isinstance(found[name], Missing)]
    return found, missing
