"""Contiguous and noncontiguous datatypes with message sizes around every boundary of the transport (around that of a packet: test_cases.py)."""

import re

import pytest

from flows import TRANSPORT, flows

KINDS = 9  # contiguous, vector, struct: at the sender times at the receiver


@pytest.fixture(scope="session")
def boundaries(ompi_info):
    """Sizes around the eager limit and the fragment size, with and without the headers of the messages."""
    text = ompi_info("--param", "btl", TRANSPORT, "-l", "9", "--parsable").stdout
    limits = [int(re.search(rf"btl_{TRANSPORT}_{name}:value:(\d+)", text)[1]) for name in ("eager_limit", "max_send_size")]
    near = [limit + step for limit in limits for step in (-65, -64, -57, -56, -33, -32, -17, -16, -15, -1, 0, 1)]
    return sorted({*near, *range(32767, 32770), 1 << 20})


@flows(8, in_packets=(4,))
def test_sizes_around_the_limits_in_every_datatype(mpi, flow, boundaries):
    assert mpi.run("datatypes", *boundaries, params=flow.params).facts() == {"exchanges": KINDS * len(boundaries)}


@flows(8)
def test_a_ring_of_five_in_every_datatype(mpi, flow, boundaries):
    sizes = [8, 54, 57, 111, 1000, *boundaries[::6]]
    assert mpi.run("datatypes", *sizes, np=5, params=flow.params).facts() == {"exchanges": KINDS * len(sizes)}


@pytest.mark.parametrize("limit", [512, pytest.param(1024, marks=pytest.mark.slow), pytest.param(8192, marks=pytest.mark.slow)])
@flows(8)
def test_another_eager_limit(mpi, flow, limit):
    sizes = [limit + step for step in (-65, -57, -33, -17, -1, 0, 1, 100)]
    params = {**flow.params, f"btl_{TRANSPORT}_eager_limit": limit}
    assert mpi.run("datatypes", *sizes, params=params).facts() == {"exchanges": KINDS * len(sizes)}
