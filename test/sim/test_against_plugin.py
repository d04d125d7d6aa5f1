"""The simulator against real runs of the plugin, in counts: the order of the traffic is fixed, so the same policy
objects and ledgers have to count the same, credit packets that are delayed included, as far as time does not decide."""

import json
import os
import subprocess

import pytest

RANKS = 16
TIME_LIMIT = 200
HEADER_BYTES = 14  # ob1's
EXACT = ["messages_sent", "data_packets", "credit_packets", "credits_in_packets", "piggybacks", "piggybacked_credits",
         "requests", "responses", "steals", "stolen_slots"]
# By reference or in a batch of its own: which of the two decides a CREDIT that has come, or not yet, when one is left.
EXACT_BY_REFERENCE = [*EXACT, "messages_delayed", "referred", "outbox_full"]
# A request and its answer travel beside the messages, so that their place in the order is not fixed: who had how many
# credits when it was asked differs from run to run, and with it what is taken from whom.
CLOSE = {"messages_delayed": 0.1, "credit_packets": 0.02, "credits_in_packets": 0.05, "piggybacks": 0.2,
         "piggybacked_credits": 0.2, "requests": 0.05, "responses": 0.05, "steals": 0.05, "stolen_slots": 0.15}
# What happens this seldom is a small part of something larger: with 16 slots 2 % of 3,600 steals reach the floor of
# their victim and become a request. Real runs had 56 to 83 of them, 98 on another machine, where the model has 66, with
# all other counters within 3 %. So they are compared as orders of magnitude: half as many to twice as many.
RARE = 500
RARE_APART = 2
# Which packets the free alltoalls of a job with references take depends on which receivers the system lets run: a chunk
# is free when its reader had a core, and a message that finds none goes in packets. Of 64 ranks, whose messages of a
# round are more than an outbox holds, 3 % did. What gives a slot back is the sum of CREDITs and credits in DATA: which
# of the two depends on who looks at its mailbox in between, and so on what else runs. How many credits each of them
# brings is the policy's doing.
FREE = {"data_packets": 0.15, "referred": 0.03, "returned": 0.15, "credits_a_piggyback": 0.1}
SLOTS = [57, *(pytest.param(slots, marks=pytest.mark.slow) for slots in (8, 16))]
LARGER = [32, pytest.param(64, marks=pytest.mark.slow)]

pytestmark = pytest.mark.skipif(not os.environ.get("VELO_COMPONENT_DIR"),
                                reason="VELO_COMPONENT_DIR names no plugin; make check-mpi sets it")


def totals(report):
    total = report["total"]
    return total | {"referred": total["messages_by_reference"] + total["batched_messages"]}


@pytest.fixture(scope="module")
def measure(serial_program):
    """The counters of a real run, summed over all ranks."""

    def run(pattern, rounds, size, policy, slots, piggyback=True, delay=True, ranks=RANKS, by_reference="never"):
        mpirun = os.environ.get("MPIRUN", "mpirun.openmpi")
        words = [mpirun, "--oversubscribe", "--bind-to", "none", "-np", str(ranks), "--mca", "pml", "ob1", "--mca",
                 "btl", "velo", "--mca", "btl_velo_flow_control", policy, "--mca", "btl_velo_slots_per_peer",
                 str(slots), "--mca", "btl_velo_piggyback", str(int(piggyback)), "--mca", "btl_velo_spare_peers", "0",
                 "--mca", "btl_velo_delay_credits", str(int(delay)),
                 # The model has a header in every packet, as the thesis has it.
                 "--mca", "btl_velo_packet_trains", "0", "--mca", "btl_velo_by_reference", by_reference,
                 "--mca", "btl_velo_report", "json", "--mca",
                 "mpi_yield_when_idle", "1",
                 str(serial_program), pattern, str(rounds), str(size)]
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT)
        reports = [line for line in (result.stdout + result.stderr).splitlines() if "VELO-REPORT " in line]
        assert result.returncode == 0 and len(reports) == 1, result.stdout + result.stderr
        return totals(json.loads(reports[0].partition("VELO-REPORT ")[2]))

    return run


def simulated(simulate, pattern, rounds, size, policy, slots, piggyback=True, delay=True, ranks=RANKS,
              by_reference="never", gets=0):
    """Without gets: the ranks share a node, where the plugin reads what comes by reference in place."""
    words = [pattern, "-n", ranks, "--iterations", rounds, "--bytes", size, "--policy", policy, "--slots", slots,
             "--header-bytes", HEADER_BYTES, "--by-reference", by_reference, "--gets", gets]
    return totals(simulate(*words, *([] if piggyback else ["--no-piggyback"]), *([] if delay else ["--no-delay-credits"])))


def rounds_of(ranks):
    """Rounds of a walk, each of which has ranks ** 2 messages."""
    return max(2, 5120 // ranks ** 2)


def apart(real, model):
    """The counters in which the two differ by more than the timing of a run explains."""

    def agree(name, share):
        low, high = sorted((real[name], model[name]))
        return high <= RARE_APART * low + 2 if high < RARE else high - low <= share * high

    differing = {name: (real[name], model[name]) for name, share in CLOSE.items() if not agree(name, share)}
    differing |= {name: (real[name], model[name]) for name in ("messages_sent", "data_packets")
                  if real[name] != model[name]}
    return differing


@pytest.mark.parametrize("slots", SLOTS)
def test_one_message_at_a_time_counts_exactly_the_same_under_static_without_delay(simulate, measure, slots):
    real = measure("walk", 8, 2048, "static", slots, delay=False)
    model = simulated(simulate, "walk", 8, 2048, "static", slots, delay=False)
    differing = {name: (real[name], model[name]) for name in EXACT if real[name] != model[name]}
    assert not differing, f"counter: (plugin, simulator) {differing}"
    # A credit that arrives a moment before or after the send decides whether a message is delayed.
    assert model["messages_delayed"] == pytest.approx(real["messages_delayed"], rel=0.05)


@pytest.mark.parametrize("slots", SLOTS)
def test_one_message_at_a_time_counts_nearly_the_same_under_static(simulate, measure, slots):
    """When a process looks at its mailbox decides which credits join which packet."""
    real = measure("walk", 20, 2048, "static", slots)
    differing = apart(real, simulated(simulate, "walk", 20, 2048, "static", slots))
    assert not differing, f"counter: (plugin, simulator) {differing}"


@pytest.mark.parametrize("ranks,slots", [(RANKS, 57), *(pytest.param(ranks, slots, marks=pytest.mark.slow)
                                                        for ranks, slots in ((RANKS, 8), (32, 16), (64, 16)))])
def test_one_message_at_a_time_counts_nearly_the_same_under_dynamic(simulate, measure, ranks, slots):
    traffic = "walk", rounds_of(ranks), 2048, "dynamic", slots
    real = measure(*traffic, ranks=ranks)
    model = simulated(simulate, *traffic, ranks=ranks)
    differing = apart(real, model)
    assert not differing, f"counter: (plugin, simulator) {differing}"


@pytest.mark.parametrize("policy,slots,size", [
    ("static", 8, 2048), pytest.param("dynamic", 8, 2048, marks=pytest.mark.slow),  # each message goes by reference
    ("dynamic", 24, 480)])  # in 9 packets while there are 18 credits, else by reference
@pytest.mark.parametrize("ranks", LARGER)
def test_one_message_at_a_time_by_reference_counts_exactly_the_same(simulate, measure, ranks, policy, slots, size):
    """CREDITs are delayed. A message is one packet, or has all its credits, so that nobody waits for any: the order of
    events is that of the messages."""
    traffic = "walk", rounds_of(ranks), size, policy, slots
    real = measure(*traffic, ranks=ranks, by_reference="auto")
    model = simulated(simulate, *traffic, ranks=ranks, by_reference="auto")
    differing = {name: (real[name], model[name]) for name in EXACT_BY_REFERENCE if real[name] != model[name]}
    # A rank of the plugin may end without another look at its mailbox, and then keeps its last CREDIT.
    kept = [model[name] - real[name] for name in ("credit_packets", "credits_in_packets")]
    if 0 < kept[0] <= ranks // 8 and kept[0] <= kept[1] <= slots * kept[0]:
        differing = {name: both for name, both in differing.items() if not name.startswith("credit")}
    # A CREDIT that is written behind the next message, by a rank that waits for a processor, is missed by a few: they go by
    # reference, in 1 packet instead of 9.
    late = real["referred"] - model["referred"]
    if 0 < late <= ranks // 8 and model["data_packets"] - real["data_packets"] == 8 * late:
        differing = {name: both for name, both in differing.items() if name not in ("data_packets", "referred")}
    # Or they wait for it, and leave in one packet with the next one.
    together = real["batched_messages"] - real["batches"]
    if 0 < together <= ranks // 8 and late == 0 and model["data_packets"] - real["data_packets"] == together:
        differing = {name: both for name, both in differing.items()
                     if name not in ("data_packets", "piggybacks") and "credit" not in name}
    assert not differing, f"counter: (plugin, simulator) {differing}"
    assert 0 < model["referred"] <= model["messages_sent"]
    assert model["piggybacks"] > 0 and model["credit_packets"] > 0
    # The report adds up the ranks. What has been read is seen at the next look, which may come late.
    assert 0 < real["outbox_high_water"] <= 2 * ranks * model["outbox_high_water"]


def test_the_comparison_by_reference_notices_a_wrong_model(simulate):
    traffic = {"policy": "dynamic", "slots": 24, "by_reference": "auto"}
    right = simulated(simulate, "walk", 20, 480, **traffic)
    for wrong in ({"slots": 22}, {"policy": "static"}, {"by_reference": "never"}, {"by_reference": "always"},
                  {"delay": False}, {"gets": 1}):
        other = simulated(simulate, "walk", 20, 480, **{**traffic, **wrong})
        assert any(right[name] != other[name] for name in EXACT_BY_REFERENCE), wrong


@pytest.mark.parametrize("policy", [pytest.param("static", marks=pytest.mark.slow), "dynamic"])
@pytest.mark.parametrize("ranks", LARGER)
def test_a_free_alltoall_by_reference_counts_nearly_the_same(simulate, measure, ranks, policy):
    traffic = "alltoall", 1280 // ranks, 2048, policy, 8
    both = [measure(*traffic, ranks=ranks, by_reference="auto"),
            simulated(simulate, *traffic, ranks=ranks, by_reference="auto")]
    for side in both:
        side["returned"] = side["credits_in_packets"] + side["piggybacked_credits"]
        side["credits_a_piggyback"] = side["piggybacked_credits"] / side["piggybacks"]
        if policy == "static":  # the threshold is 3: below it nothing comes back in a packet of its own
            assert side["credits_in_packets"] == 3 * side["credit_packets"]
            assert 0 <= side["data_packets"] - side["returned"] <= 2 * ranks * (ranks - 1)
    real, model = both
    if policy == "dynamic":
        assert real["credits_in_packets"] / real["credit_packets"] == pytest.approx(
            model["credits_in_packets"] / model["credit_packets"], rel=0.2)
    assert real["messages_sent"] == model["messages_sent"]
    for name, share in FREE.items():
        assert real[name] == pytest.approx(model[name], rel=share), name


@pytest.mark.parametrize("slots", SLOTS)
def test_the_comparison_notices_a_wrong_model(simulate, slots):
    right = simulated(simulate, "walk", 20, 2048, "dynamic", slots)
    assert not apart(right, right)
    for wrong in ({"slots": 2 * slots}, {"slots": slots - 2}, {"policy": "static"}, {"size": 1024},
                  {"piggyback": False}, {"delay": False}):
        other = {"policy": "dynamic", "slots": slots, "size": 2048, **wrong}
        assert apart(right, simulated(simulate, "walk", 20, **other)), wrong
    if right["requests"] > RARE_APART:  # with 57 slots hardly anybody has to be asked
        assert "requests" in apart(right, {**right, "requests": 0, "responses": 0})
    for name in CLOSE:
        assert name in apart(right, {**right, name: 3 * right[name] + 10}), name


@pytest.mark.parametrize("slots", [16, pytest.param(57, marks=pytest.mark.slow)])
def test_an_alltoall_without_piggybacking_returns_the_same_credits(simulate, measure, slots):
    real = measure("alltoall", 10, 2048, "static", slots, piggyback=False)
    model = simulated(simulate, "alltoall", 10, 2048, "static", slots, piggyback=False)
    for name in ["messages_sent", "data_packets", "credit_packets", "credits_in_packets"]:
        assert real[name] == model[name], name


def test_policy_none_sends_the_same_packets(simulate, measure):
    real = measure("alltoall", 5, 300, "none", 64)
    model = simulated(simulate, "alltoall", 5, 300, "none", 64)
    assert real["data_packets"] == model["data_packets"]
    assert real["credit_packets"] == model["credit_packets"] == 0
