"""The collectives as schedules and on boards: coll/velo beside ob1. Their messages go over neither BTL nor MTL (beside the MTL:
test_mtl.py)."""

import os
import re
import signal

import pytest

from flows import flows, velo_only
from launcher import TCP_HERE
from series import cases
from test_hygiene import assert_empty
from velo.trace import reader
from velo.trace.boards import OPERATIONS

KIND = reader.Kind
pytestmark = velo_only
COLL = {"coll": "velo,basic,libnbc,inter,self", "btl_velo_verbose": 5}
SCHEDULES = {"coll_velo_boards": 0}
ALONE = {"coll": "velo,basic,self"}  # nobody else has requests
USED = re.compile(r"schedules: (\d+) runs of (\d+) operations, (\d+) schedules built")


BOARDS = re.compile(r"boards: (\d+), published (\d+) times, picked up (\d+), directly \d+; (\d+) waits for credits")
ON_BOARDS = re.compile(r"boards: .* (\d+) requests")


def boards(result):
    """(boards, published, picked up, waits for credits) of each rank."""
    return [tuple(map(int, numbers)) for numbers in BOARDS.findall(result.stderr)]


def assert_on_boards(result, np):
    """Every rank tells what it did on boards."""
    assert len(boards(result)) == np, str(result)


def run_on_boards(mpi, *arguments, np, params=None):
    """Runs to the end."""
    result = mpi.run("coll", *arguments, np=np, params={**COLL, **(params or {})})
    assert_on_boards(result, np)
    return result


def assert_schedules(result, np):
    """Every rank has executed schedules, and all of them as many, which are returned."""
    ranks = USED.findall(result.stderr)
    assert len(ranks) == np and len({runs for runs, _, _ in ranks}) == 1 and int(ranks[0][0]) > 0, str(result)
    return int(ranks[0][0])


def run(mpi, *arguments, np, params=None, program="coll", **more):
    """Runs to the end."""
    result = mpi.run(program, *arguments, np=np, params={**COLL, **(params or {})}, **more)
    assert_schedules(result, np)
    return result


# With equal blocks; with blocks that differ, among them Reduce_scatter, the only v-form on boards; neighbours in every topology; few
# elements of every type; blocks far from each other.
EVERY = [("coll", "check", 2), ("coll_blocks", "check", 2), ("coll_blocks", "neighbours", 1), ("coll", "reductions"), ("coll_blocks", "offsets")]


@pytest.mark.parametrize("np", [1, pytest.param(2, marks=pytest.mark.slow), 4, pytest.param(8, marks=pytest.mark.slow)])
@cases(EVERY)
def test_every_operation_in_every_form(facts, np, case):
    """Small ones that wait go over a board."""
    found = facts(np=np, params={**COLL, **ALONE})
    assert found == {"rounds": int([*case, 1][2])}
    assert_schedules(found.job, np)
    # One for them, one for requests, one for each persistent request.
    used = boards(found.job)
    assert len(used) == np and len({count for count, *_ in used}) == 1, str(found.job)
    assert all(count > 2 and published and picked for count, published, picked, _ in used) if np > 1 else used[0][1] == 0, str(found.job)


TIGHT = [("coll", "check", 1), ("coll_blocks", "check", 1), ("coll_blocks", "neighbours", 1)]


@flows(8, policies=("none", "static", "dynamic", "lazy"))
@cases(TIGHT)
def test_a_tight_mailbox(facts, flow, case):
    found = facts(np=5, params={**COLL, **ALONE, **flow.params})
    assert found == {"rounds": 1}
    assert_schedules(found.job, 5)


def test_messages_that_another_transport_carries(mpi):
    result = run(mpi, "check", 1, np=3, transport_btl=False, options=["--mca", "btl", "self,tcp"], params=TCP_HERE)
    assert result.facts() == {"rounds": 1}


ALGORITHMS = {
    "barrier": ("dissemination", "recursive_doubling", "binomial", "nodes"),
    "bcast": ("linear", "binomial", "chain", "scatter_allgather", "nodes", "leaders"),
    "reduce": ("linear", "binomial", "nodes"), "allreduce": ("reduce_bcast", "recursive_doubling", "ring", "rabenseifner", "nodes"),
    "gather": ("linear", "binomial", "linear_sync", "by_size"), "scatter": ("linear", "binomial"),
    "allgather": ("linear", "ring", "bruck"), "alltoall": ("linear", "pairwise", "bruck"),
    "allgatherv": ("linear", "ring", "bruck"), "alltoallv": ("linear", "pairwise"),
    "reduce_scatter": ("linear", "pairwise"), "reduce_scatter_block": ("linear", "pairwise"),
    "scan": ("linear", "recursive_doubling"), "exscan": ("linear", "recursive_doubling")}


def algorithms(number):
    """Of each operation the one of this number; again the first one behind its last."""
    return {"coll_velo_choices": ",".join(f"{operation}:{names[number % len(names)]}" for operation, names in ALGORITHMS.items())}


# coll_blocks: what has v-forms. coll_ops: those that do not keep the order leave what does not commute to others.
@pytest.mark.parametrize("number", range(6))
@cases([("coll", "check", 1), ("coll_blocks", "check", 1), ("coll_ops", "check", 1)])
def test_every_algorithm_by_name(facts, number, case):
    found = facts(np=4, params={**COLL, **ALONE, **SCHEDULES, **algorithms(number)})
    assert assert_schedules(found.job, 4) >= found.get("calls", 1) > 0
    assert boards(found.job) == [(0, 0, 0, 0)] * 4, str(found.job)


# Many requests before one is waited for; communicators that are freed with a schedule under way; collectives beside a communicator
# that is being made, and beside messages; threads side by side; operations that are freed before their requests are started.
SIDE_BY_SIDE = [("coll", "communicators", 300), ("coll", "idup", 10), ("coll", "mixed", 200), ("coll", "threads", 200)]


@flows(8, policies=("dynamic", "none"))
@cases([*SIDE_BY_SIDE, ("coll", "many", 20000), ("coll_ops", "freed")])
def test_schedules_side_by_side(facts, flow, case):
    found = facts(np=4, level="multiple", params={**COLL, **SCHEDULES, **flow.params})
    assert found["calls"] > 0 if case[0] == "coll_ops" else found == {"rounds": case[2]}
    assert_schedules(found.job, 4)
    assert NO_HELPER not in found.job.stderr and not helpers(found.job), "nobody has asked"


@cases(SIDE_BY_SIDE)
def test_boards_side_by_side(facts, case):
    found = facts(np=4, level="multiple", params=COLL)
    assert found == {"rounds": case[2]}
    assert_on_boards(found.job, 4)


@pytest.mark.slow
def test_thousands_of_communicators_each_freed_with_an_operation_under_way(mpi):
    assert run_on_boards(mpi, "communicators", 10000, np=2).facts() == {"rounds": 10000}


def test_persistent_requests_are_started_in_any_order_and_outlive_their_communicator(mpi):
    result = run(mpi, "persistent", 50, np=3, params={**ALONE, **SCHEDULES}, program="coll_blocks")
    assert result.facts() == {"rounds": 50} and ON_BOARDS.findall(result.stderr) == ["0"] * 3


def test_persistent_requests_have_a_board_each(mpi):
    """Three of them, each of which was started at least once in a round."""
    result = mpi.run("coll_blocks", "persistent", 50, np=3, params={**COLL, **ALONE})
    assert min(int(count) for count in ON_BOARDS.findall(result.stderr)) >= 150, str(result)
    assert all(count >= 4 for count, *_ in boards(result)) and result.facts() == {"rounds": 50}, str(result)


@pytest.mark.slow
def test_more_than_2_gib_in_one_message(mpi):
    run(mpi, "large", np=2, params=ALONE, program="coll_blocks")


def test_lengths_that_differ_are_told_as_a_truncation(mpi):
    result = run(mpi, "mismatch", 8, np=2, params={**COLL, "coll_velo_boards": 0})
    assert result.facts() == {"rounds": 8}
    # Twice, and said once: Open MPI tries some operations over and over.
    assert result.stderr.count("a collective operation of communicator 0 has failed at rank 1") == 1, str(result)


def test_operations_that_differ_are_an_error_that_names_both(mpi):
    result = run(mpi, "disagree", np=3, params={"coll_velo_boards": 0})
    told = re.findall(r"rank (\d) of group \d+ is in (\w+) \([^)]*\), and rank (\d) in (\w+) \([^)]*\), as run \d+: all members", result.stderr)
    assert {("allreduce", "bcast") if int(here) > 0 else ("bcast", "allreduce") for here, *_ in told} == {(here, there) for _, here, _, there in told}
    assert told and "that rank has called another operation" in result.stderr, str(result)


def test_an_operation_that_failed_writes_no_bytes_that_nobody_has_sent(mpi):
    mpi.run("coll", "gather_alone", 300, np=2, params={**COLL, **SCHEDULES}, env={"MALLOC_PERTURB_": "85"})


OTHER = re.compile(r"the board of communicator \d+, rank (\d)([^:]*), run \d+: this rank is in (\w+[^,]*), and rank (\d) in ([\w ()]+)")


def test_operations_on_a_board_that_differ_are_an_error_that_names_both(mpi):
    own, theirs = "reduce (add) of root 0", "bcast of root 0"
    result = run_on_boards(mpi, "differ", np=3)
    found = {int(here): (int(there), mine, other) for here, _, mine, there, other in OTHER.findall(result.stderr)}
    # One may have found it, and ended the job, before another one has looked.
    assert found and all(told == (0, theirs, own) if rank else told[0] > 0 and told[1:] == (own, theirs) for rank, told in found.items()), str(result)


def test_between_two_groups_others_serve(mpi):
    result = mpi.run("coll", "halves", np=5, params=COLL)
    assert result.facts() == {"rounds": 1} and len(USED.findall(result.stderr)) == 5, str(result)


@flows(8, policies=("none", "static", "dynamic", "lazy"))
def test_operations_of_the_program_are_schedules(mpi, flow):
    result = run(mpi, "check", 1, np=5, params={**ALONE, **SCHEDULES, **flow.params}, program="coll_ops")
    assert 0 < result.facts()["calls"] <= assert_schedules(result, 5), str(result)


def test_velo_pvars_shows_what_schedules_do(mpi):
    result = mpi.run("coll", "check", 1, np=2, params={**COLL, "coll_velo_boards": 0}, prefix=["velo-pvars", "--all"])
    total = {name: int(value) for name, value in re.findall(r"^ +(\w+) +(\d+) +\d+ +\d+ +\d+ +\d+$", result.stderr, re.MULTILINE)}
    runs = sum(int(runs) for runs, *_ in USED.findall(result.stderr))
    # The tool reads before MPI_Finalize.
    assert 100 < total["schedule_runs"] <= runs and total["schedule_operations"] > total["schedule_runs"], str(result)
    assert total["schedule_failures"] == 0 and {"announced_receives", "placed_messages"} <= total.keys(), str(result)


def test_unless_it_is_named_it_opens_nothing(mpi):
    result = mpi.run("coll", "check", 1, params={"btl_velo_verbose": 5})
    assert result.facts() == {"rounds": 1}
    assert "schedules:" not in result.stderr


def test_a_priority_is_as_good_as_its_name(mpi):
    assert len(USED.findall(mpi.run("coll", "check", 1, params={"btl_velo_verbose": 5, "coll_velo_priority": 90}).stderr)) == 2


def test_values_that_differ_between_ranks_end_with_the_parameter_named(mpi):
    program = [mpi.program("coll"), "check", "1"]
    words = [[*f"-x OMPI_MCA_coll_velo_priority={value}".split(), *program] for value in (80, 40)]
    result = mpi.run_parts(list(zip((2, 1), words)), params=COLL)
    assert result.returncode != 0 and "coll_velo_priority 80" in result.stderr, str(result)
    assert "it must be the same in all processes" in result.stderr


def executed(mpi, np=5, **params):
    """Operations of all schedules of a run."""
    params = {f"coll_velo_{name}": value for name, value in {"boards": 0, **params}.items()}
    result = run(mpi, "check", 1, np=np, params=params)
    return sum(int(operations) for _, operations, _ in USED.findall(result.stderr))


def test_a_file_of_rules_chooses_the_algorithms(mpi, tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("# from five ranks on\nbarrier 5 0 binomial\n")
    assert executed(mpi, choices=rules) != executed(mpi)


def test_files_of_rules_may_lie_elsewhere_and_have_to_say_the_same(mpi, tmp_path):
    texts = {"a": "bcast 2 0 linear\n", "b": "# another comment\nbcast 2 0 linear\n", "c": "bcast 2 0 binomial\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    program = [mpi.program("coll"), "check", "1"]
    words = {name: [*f"-x OMPI_MCA_coll_velo_choices={tmp_path / name}".split(), *program] for name in texts}
    result = mpi.run_parts([(2, words["a"]), (1, words["b"])], params=COLL)
    assert result.returncode == 0 and len(USED.findall(result.stderr)) == 3, str(result)
    result = mpi.run_parts([(2, words["a"]), (1, words["c"])], params=COLL)
    assert result.returncode != 0, str(result)
    assert re.search(r"coll_velo_choices of digest \w{16} here, coll_velo_choices of digest \w{16} in rank \d: "
                     "it must be the same in all processes", result.stderr), str(result)


@pytest.mark.parametrize("name, value", [("boards", 65537), ("choices", "allreduce:magic")])
def test_a_wrong_value_ends_with_the_parameter_named(mpi, name, value):
    result = mpi.run_any("coll", "check", 1, params={**COLL, f"coll_velo_{name}": value})
    assert result.returncode != 0 and f"coll_velo_{name}" in result.stderr, str(result)


def test_a_rank_killed_in_the_middle_ends_the_job(start, private_shm):
    shm, victim = private_shm(), 2
    job = start("coll", "endless", np=3, params=COLL, prefix=shm.enter)
    os.kill(int(job.until_printed(rf"rank {victim} pid=(\d+)")[1]), signal.SIGKILL)
    result = job.wait()
    assert result.returncode != 0
    # By mpirun, or by a rank that noticed it first: in a message or in a collective operation.
    assert any(words in result.output for words in ("signal 9", "Killed", "has ended without MPI_Finalize")), str(result)
    assert_empty(shm)


def test_requests_go_over_a_board_whatever_waits_in_between(mpi):
    result = run_on_boards(mpi, "between_calls", 600, np=5)
    requests = [int(count) for count in ON_BOARDS.findall(result.stderr)]
    assert len(requests) == 5 and min(requests) > 400 and result.facts() == {"rounds": 600}, str(result)


def test_the_trace_has_what_was_done_on_boards(mpi, tmp_path):
    result = run_on_boards(mpi, "check", 1, np=3, params={"btl_velo_trace": tmp_path})
    requests = [int(count) for count in ON_BOARDS.findall(result.stderr)]
    traces = reader.read_job([tmp_path])
    assert [trace.rank for trace in traces] == [0, 1, 2] and all(trace.complete for trace in traces), str(result)
    for trace in traces:
        records = [(kind, count, extra) for _, kind, _, _, count, _, _, extra in trace.records.tolist()]
        begun, ended = ([(count, extra) for kind, count, extra in records if kind == which] for which in (KIND.BOARD_BEGIN, KIND.BOARD_END))
        assert begun and sorted(begun) == sorted(ended)
        assert {OPERATIONS[extra & 0xFF] for _, extra in begun} == set(OPERATIONS) - {"", "Reduce_scatter"}, "what the program calls"
        assert sum(extra >> 8 & 1 for _, extra in begun) in requests
        waits = [count for kind, count, _ in records if kind == KIND.BOARD_WAIT]
        assert len(waits) == sum(kind == KIND.BOARD_GO_ON for kind, _, _ in records) and set(waits) <= {0, 1, 2, reader.NONE} - {trace.rank}


def test_members_that_namespaces_part_have_no_board(mpi, pid_namespace):
    """All find that alike, each by itself."""
    result = run(mpi, "check", 1, np=3, before=pid_namespace)
    assert boards(result) == [(0, 0, 0, 0)] * 3 and result.facts() == {"rounds": 1}


def test_boards_of_communicators_that_come_and_go(mpi):
    """More at a time than coll_velo_boards: the others run as schedules, and a freed one makes room."""
    result = run_on_boards(mpi, "boards", 300, np=3, params={"coll_velo_boards": 3})
    found = boards(result)
    assert len({count for count, *_ in found}) == 1 and 100 < found[0][0] < 600, str(result)
    assert "has no board: as many boards as coll_velo_boards says are in use" in result.stderr
    assert result.facts() == {"rounds": 300}


def test_a_rank_killed_at_a_board_ends_the_job(start, private_shm):
    shm, victim = private_shm(), 0
    job = start("coll", "endless_board", np=3, params=COLL, prefix=shm.enter)  # each has its board when it prints
    os.kill(int(job.until_printed(rf"rank {victim} pid=(\d+)")[1]), signal.SIGKILL)
    assert job.wait().returncode != 0
    assert_empty(shm)


# --- the helper thread

HELPER = re.compile(r"helper thread: woken (\d+) times, started (\d+) of the operations")
NO_HELPER = "no helper thread: it needs two processors"
LARGE = 1 << 20
HELPED = {**COLL, "coll_velo_helper": LARGE}
with_processors = pytest.mark.skipif(os.cpu_count() < 4, reason="two processes and their helpers need four processors")


def helpers(result):
    """(times woken, operations started) of each rank's."""
    return [tuple(map(int, numbers)) for numbers in HELPER.findall(result.stderr)]


@with_processors
@pytest.mark.parametrize("meanwhile", [(), ("fork",)], ids=["", "fork"])
def test_a_helper_goes_on_while_all_ranks_compute(mpi, meanwhile):
    result = run(mpi, 2 * LARGE, 1, *meanwhile, program="helper", np=2, params=HELPED, time_limit=120)
    assert result.facts() == {"rounds": 12}
    assert len(helpers(result)) == 2 and all(woken > 0 and started > 0 for woken, started in helpers(result)), str(result)


def test_there_is_no_helper_where_no_processor_is_left(mpi):
    one = str(min(os.sched_getaffinity(0)))
    result = run(mpi, 2 * LARGE, 0, program="helper", np=2, params=HELPED, before=["taskset", "-c", one], time_limit=120)
    assert helpers(result) == [] and result.stderr.count(NO_HELPER) == 2, str(result)


@with_processors
@pytest.mark.parametrize("how", ["abort", "exit", "kill"])
def test_a_rank_that_ends_while_helpers_work_ends_the_job(mpi, how):
    result = mpi.run_any("helper", 16 * LARGE, 0, how, np=2, params=HELPED)
    if how == "abort":
        result.assert_aborted(7)
    else:
        assert result.returncode != 0 and "rounds" not in result.stdout, str(result)
