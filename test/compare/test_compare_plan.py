"""Order of the runs, and the commands that they are."""

from collections import Counter

from velo.compare.launch import Launch, mpirun_command
from velo.compare.plan import Case, Chosen, Setup, cases, reference, setups
from velo.rounds import interleaved

LAUNCH = Launch(mpirun="mpirun", bench="IMB-MPI1", processes=4, iterations=100, sample_seconds=0.5)


def test_every_policy_meets_every_number_of_slots_and_each_way_by_reference():
    chosen = Chosen(("static", "none"), (8, 64), ("auto", "never"))
    assert sorted((s.policy, s.slots, s.by_reference) for s in setups(chosen, reference(64))) == sorted(
        (policy, slots, mode) for policy in chosen.policies for slots in chosen.slots for mode in chosen.by_reference)


def test_reference_joins_where_no_setup_is_the_same():
    joined = [Setup("none", 64, "never"), Setup("static", 8, "auto")]
    assert setups(Chosen(("static",), (8,), ("auto",)), reference(64)) == joined
    assert setups(Chosen(("none",), (64,), ("auto",)), reference(64)) == [joined[0], Setup("none", 64, "auto")]


def test_barrier_has_no_size():
    assert cases(["Bcast", "Barrier"], [8, 64]) == [Case("Bcast", 8), Case("Bcast", 64), Case("Barrier", None)]


def test_setups_take_turns_and_each_round_begins_with_another():
    all_setups = setups(Chosen(("none", "static"), (8, 16), ("never",)), reference(16))
    all_cases = cases(["Bcast", "Alltoall"], [2048])
    runs = interleaved(all_cases, all_setups, 3)
    assert len(runs) == 2 * 4 * 3
    assert set(Counter((r.case, r.setup) for r in runs).values()) == {3}
    assert [r.setup for r in runs[:4]] == all_setups
    first_of_round = [next(r.setup for r in runs if r.round == number) for number in range(3)]
    assert first_of_round == all_setups[:3]


def parameters(command):
    return {command[i + 1]: command[i + 2] for i, word in enumerate(command) if word == "--mca"}


def test_command_selects_policy_slots_and_report():
    command = mpirun_command(LAUNCH, Case("Alltoall", 2048), Setup("dynamic", 16, "auto"), ["-msglen", "/tmp/lengths"])
    assert parameters(command) == {
        "pml": "ob1",
        "btl": "velo",
        "btl_velo_flow_control": "dynamic",
        "btl_velo_slots_per_peer": "16",
        "btl_velo_by_reference": "auto",
        "btl_velo_report": "json",
    }
    assert command[command.index("IMB-MPI1") :] == [
        "IMB-MPI1", "Alltoall", "-npmin", "4", "-msglen", "/tmp/lengths", "-iter", "100", "-time", "0.5"]


def test_another_transport_gets_no_parameters_of_velo():
    launch = Launch(mpirun="mpirun", bench="IMB-MPI1", processes=4, transport="vader,self", mca=[("a", "b")])
    command = mpirun_command(launch, Case("Barrier", None), Setup("none", 8, "never"), [])
    assert parameters(command) == {"pml": "ob1", "btl": "vader,self", "a": "b"}
    assert "-msglen" not in command


def test_multi_benchmarks_run_pairs_at_once():
    command = mpirun_command(LAUNCH, Case("Multi-PingPong", 64), Setup("none", 8, "never"), ["-msglen", "lengths"])
    at = command.index("IMB-MPI1")
    assert command[at + 1 : at + 6] == ["PingPong", "-multi", "0", "-npmin", "2"]
