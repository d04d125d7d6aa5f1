"""Messages beyond what 31 and 32 bits count."""

import pytest

from flows import flows, of_the_btl, velo_only

GIB = 1 << 30


def need_memory(count):
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    if available < count * 2.2:
        pytest.skip(f"needs {count * 2.2 / GIB:.0f} GiB of memory")


def transfer(mpi, count, params):
    need_memory(count)
    assert mpi.run("large", count, params=params, time_limit=240).facts() == {"received": count}


@of_the_btl
@flows(8, policies=("dynamic",))
def test_two_gibibytes_and_a_byte(mpi, flow):
    transfer(mpi, 2 * GIB + 1, flow.params)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2 * GIB - 1, 2 * GIB, 2 * GIB + 1, 4 * GIB + 1])
@flows(8)
def test_gibibytes(mpi, flow, count):
    transfer(mpi, count, flow.params)


@velo_only
@pytest.mark.slow
@pytest.mark.parametrize("count", [2 * GIB - 1, 2 * GIB + 1])
@flows(64, policies=("none", "dynamic"))
def test_gibibytes_through_the_mailbox(mpi, flow, count):
    transfer(mpi, count, {**flow.params, "btl_velo_single_copy_mechanism": "copy"})
