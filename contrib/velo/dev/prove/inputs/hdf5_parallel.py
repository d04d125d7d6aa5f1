"""Processes write and read one HDF5 file together: rows, columns and blocks, collectively and each by itself, with chunks and
without. Prints sums of what each layout reads; exits with an error if a value is wrong."""
import os
import sys

os.environ["H5PY_ALWAYS_USE_MPI"] = "1"

import h5py  # noqa: E402
import numpy  # noqa: E402
from mpi4py import MPI  # noqa: E402

ROWS, COLUMNS = 480, 360
world = MPI.COMM_WORLD
expected = numpy.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS) ** 0.5


def part(count, rank):
    """The share of one of the processes."""
    return slice(count * rank // world.size, count * (rank + 1) // world.size)


def selection(layout, rank):
    """What a process writes or reads."""
    if layout == "rows":
        return part(ROWS, rank), slice(None)
    if layout == "columns":
        return slice(None), part(COLUMNS, rank)
    return slice(rank, ROWS, world.size), slice(None)


def transfer(dataset, collective, action):
    """`action` on the dataset, by all at once or by each alone."""
    if collective:
        with dataset.collective:
            return action()
    return action()


def main():
    """Every layout with every way to store it."""
    with h5py.File("together.h5", "w", driver="mpio", comm=world) as file:
        for layout in ("rows", "columns", "strided"):
            for chunks in (None, (64, 64)):
                for collective in (False, True):
                    name = f"{layout}-{'chunks' if chunks else 'whole'}-{'collective' if collective else 'alone'}"
                    dataset = file.create_dataset(name, (ROWS, COLUMNS), "f8", chunks=chunks)
                    mine = selection(layout, world.rank)
                    transfer(dataset, collective, lambda: dataset.__setitem__(mine, expected[mine]))
    world.Barrier()
    with h5py.File("together.h5", "r", driver="mpio", comm=world) as file:
        for name, dataset in sorted(file.items()):
            layout = name.split("-")[0]
            # What another process has written.
            theirs = selection(layout, (world.rank + 1) % world.size)
            found = transfer(dataset, name.endswith("collective"), lambda: dataset[theirs])
            if not numpy.array_equal(found, expected[theirs]):
                sys.exit(f"{name}: rank {world.rank} read something else than was written")
            total = world.reduce(float(found.sum()))
            if world.rank == 0:
                print(f"sum {name} {total:.6f}", flush=True)


main()
