"""Programs drawn at random, against a model of what has to arrive.

A failure names its seed. VELO_TEST_SEED=N draws other programs: those of the seeds N to N + 23. Three of them share a job.
"""

import os
import pathlib
import random
import re

import pytest

from flows import LAYER, POLICIES, TRANSPORT, Flow

FIRST_SEED = int(os.environ.get("VELO_TEST_SEED", "1"))
ROUNDS, MESSAGES = 4, 120


def draw(seed):
    """Number of ranks and flow control."""
    dice = random.Random(seed)
    np, policy, slots = dice.randint(2, 6), POLICIES[seed % len(POLICIES)], dice.choice([4, 5, 8, 16, 64])
    extra = {}
    if dice.random() < 0.3:
        extra["btl_velo_limic"] = 1
    if dice.random() < 0.3:
        extra["btl_velo_single_copy_mechanism"] = "copy"
    if LAYER == "btl" and dice.random() < 0.3:
        extra["btl_velo_eager_limit"] = dice.choice([128, 1000, 20_000])
    if dice.random() < 0.3:
        extra["btl_velo_packet_trains"] = 0
    if policy in ("static", "dynamic") and dice.random() < 0.3:
        extra["btl_velo_credit_slots"] = 1
    if dice.random() < 0.6:
        extra["btl_velo_by_reference"] = dice.choice(["never", "always"])
    return np, Flow(policy, slots, tuple(extra.items()))


@pytest.mark.parametrize("setting, case", [(FIRST_SEED + i // 3, ("random_messages", FIRST_SEED + i, ROUNDS, MESSAGES)) for i in range(24)],
                         ids=lambda value: f"seed-{value[1]}" if isinstance(value, tuple) else "")
def test_random_messages_are_those_of_the_model(facts, setting, case):
    np, flow = draw(setting) if TRANSPORT == "velo" else (setting % 5 + 2, Flow("none", 4))
    found = facts(np=np, params=flow.params, seconds=120)
    assert found["rounds"] == ROUNDS
    assert found["messages"] > ROUNDS * MESSAGES // 2


def is_checked():
    build = os.environ.get("VELO_BUILD_DIR")
    return bool(build) and "\nVELO_CHECKED_CPPFLAGS = -D" in pathlib.Path(build, "Makefile").read_text()


@pytest.mark.skipif(not is_checked(), reason="VELO_BUILD_DIR does not name a build with --enable-checked")
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + len(POLICIES)))
def test_packets_that_are_delayed_or_refused_change_nothing(mpi, seed):
    np, flow = draw(seed)
    faults = {"VELO_INTERCEPT": f"seed={seed},delay_out=0.1,delay_in=0.05,refuse_out=0.1"}
    params = flow.params | {"btl_base_verbose": 1}
    result = mpi.run("random_messages", seed, ROUNDS, MESSAGES, np=np, params=params, env=faults, time_limit=120)
    assert result.facts()["rounds"] == ROUNDS
    delayed = re.findall(r"intercepted: \d+ dropped, (\d+) delayed", str(result))
    assert len(delayed) == np and all(int(count) > 0 for count in delayed)
