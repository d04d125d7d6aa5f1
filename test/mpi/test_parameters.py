"""Parameters: listed with help, refused when wrong or different, shown when asked."""

import re

import pytest

from flows import velo_only

pytestmark = velo_only
NAMES = ["flow_control", "slots_per_peer", "credit_slots", "piggyback", "eager_limit", "single_copy_mechanism",
         "backing_directory", "verbose", "report", "spare_peers", "preposted_buffers", "initial_buffers", "growth_buffers",
         "credit_message_threshold", "rnr_timer_ns", "lazy_slots", "lazy_peers", "lazy_stealing", "lazy_ahead", "stall_warning",
         "trace", "trace_limit"]
WRONG = [("flow_control", "foo"), ("credit_slots", 0), ("credit_slots", 256), ("credit_slots", 300), ("slots_per_peer", 1),
         ("slots_per_peer", 3), ("slots_per_peer", 100_000_000), ("eager_limit", 0), ("eager_limit", 1 << 40),
         ("single_copy_mechanism", "foo"), ("backing_directory", "/nonexistent"), ("report", "foo"),
         ("spare_peers", 100_000), ("stall_warning", 2_000_000), ("stall_warning", "soon"), ("trace", "/nonexistent/x"),
         ("trace_limit", "much")]
DIFFERENT = [("flow_control", "static", "dynamic"), ("flow_control", "none", "dynamic"), ("slots_per_peer", 8, 16),
             ("credit_slots", 2, 3), ("piggyback", 0, 1), ("flow_control", "rnr", "none"),
             ("flow_control", "lazy", "mvapich_static")]
# Of single policies: with the policy that uses them.
WRONG_OF = [("rnr", "preposted_buffers", 0), ("rnr", "preposted_buffers", 70_000), ("rnr", "rnr_timer_ns", 0),
            ("rnr", "rnr_timer_ns", 1 << 50), ("rnr", "rnr_timer_ns", "soon"), ("mvapich_static", "preposted_buffers", 0),
            ("mvapich_static", "credit_message_threshold", 0), ("mvapich_dynamic", "initial_buffers", 0),
            ("mvapich_dynamic", "initial_buffers", 101), ("mvapich_dynamic", "growth_buffers", 70_000),
            ("lazy", "lazy_slots", 0), ("lazy", "lazy_slots", 65_280), ("lazy", "lazy_peers", 0)]
DIFFERENT_OF = [("rnr", "preposted_buffers", 10, 100), ("mvapich_static", "credit_message_threshold", 2, 5),
                ("mvapich_dynamic", "initial_buffers", 2, 4), ("lazy", "lazy_slots", 100, 200),
                ("lazy", "lazy_peers", 2, 4)]


@pytest.mark.parametrize("name", NAMES)
def test_ompi_info_lists_the_parameter_with_help(ompi_info, name):
    text = ompi_info("--param", "btl", "velo", "-l", "9", "--parsable").stdout
    assert re.search(rf"^mca:btl:velo:param:btl_velo_{name}:value:", text, re.MULTILINE)
    help_text = re.search(rf"^mca:btl:velo:param:btl_velo_{name}:help:(.*)", text, re.MULTILINE)
    assert help_text and len(help_text[1]) > 20


@pytest.mark.parametrize("name, values", [("flow_control", ["none", "static", "dynamic", "rnr", "mvapich_static",
                                                            "mvapich_dynamic", "lazy"]),
                                          ("single_copy_mechanism", ["auto", "cma", "copy", "xpmem"]),
                                          ("report", ["none", "summary", "json"])])
def test_ompi_info_lists_the_values_of_an_enumeration(ompi_info, name, values):
    text = ompi_info("--param", "btl", "velo", "-l", "9", "--parsable").stdout
    listed = re.findall(rf"^mca:btl:velo:param:btl_velo_{name}:enumerator:value:\d+:(\w+)", text, re.MULTILINE)
    assert sorted(listed) == sorted(values)


@pytest.mark.parametrize("name, value", WRONG)
def test_a_wrong_value_ends_with_the_parameter_named(mpi, name, value):
    result = mpi.run_any("traffic", "rounds", 3, np=3, params={f"btl_velo_{name}": value})
    assert result.returncode != 0, str(result)
    assert f"btl_velo_{name}" in result.stderr or (f"{value}" in result.stderr and name in result.stderr), str(result)


@pytest.mark.parametrize("policy, name, value", WRONG_OF)
def test_a_wrong_value_for_a_policy_ends_with_the_parameter_named(mpi, policy, name, value):
    params = {"btl_velo_flow_control": policy, f"btl_velo_{name}": value}
    result = mpi.run_any("traffic", "rounds", 3, np=2, params=params)
    assert result.returncode != 0 and f"btl_velo_{name}" in result.stderr, str(result)


@pytest.mark.parametrize("policy, name, first, second", DIFFERENT_OF)
def test_values_of_a_policy_that_differ_between_ranks_end_with_the_parameter_named(mpi, policy, name, first, second):
    program = [mpi.program("traffic"), "rounds", "3"]
    words = [[*f"-x OMPI_MCA_btl_velo_{name}={value}".split(), *program] for value in (first, second)]
    result = mpi.run_parts(list(zip((2, 1), words)), params={"btl_velo_flow_control": policy})
    assert result.returncode != 0 and f"btl_velo_{name}" in result.stderr, str(result)


def test_the_timer_and_the_growth_may_differ_between_ranks(mpi):
    program = [mpi.program("traffic"), "rounds", "3"]
    words = [[*f"-x OMPI_MCA_btl_velo_rnr_timer_ns={value}".split(), *program] for value in (1000, 50_000)]
    result = mpi.run_parts(list(zip((2, 1), words)), params={"btl_velo_flow_control": "rnr"})
    assert result.returncode == 0, str(result)


@pytest.mark.parametrize("name, first, second", DIFFERENT)
@pytest.mark.parametrize("counts", [(1, 1), (2, 1)], ids=str)
def test_values_that_differ_between_ranks_end_with_the_parameter_named(mpi, name, first, second, counts):
    program = [mpi.program("traffic"), "rounds", "3"]
    options = [f"-x OMPI_MCA_btl_velo_{name}={value}".split() for value in (first, second)]
    # mpirun takes the options of an application context before its program.
    words = [[*option, *program] for option in options]
    result = mpi.run_parts(list(zip(counts, words)))
    assert result.returncode != 0, str(result)
    assert f"btl_velo_{name}" in result.stderr, str(result)


def test_the_values_in_effect_are_shown_on_request(mpi):
    params = {"btl_base_verbose": 20, "btl_velo_flow_control": "static", "btl_velo_slots_per_peer": 48,
              "btl_velo_credit_slots": 3, "btl_velo_piggyback": 0}
    text = mpi.run("traffic", "rounds", 3, np=2, params=params).stderr
    line = next(line for line in text.splitlines() if "flow_control static" in line)
    for part in ("slots_per_peer 48", "credit_slots 3", "piggyback off", "single copy auto", "/dev/shm"):
        assert part in line


def test_a_run_without_requests_is_quiet(mpi):
    assert mpi.run("traffic", "rounds", 3, np=3).stderr == ""


def test_velo_does_not_take_over_when_nobody_asks_for_it(start, mpi):
    run = start("traffic", "endless", np=2, transport="", params={"btl_base_verbose": 20})
    run.until_printed(r"traffic pid=\d+")
    for pid in run.ranks(mpi.program("traffic")):
        with open(f"/proc/{pid}/maps") as file:
            assert "/dev/shm/#" not in file.read()  # a segment without a name
    run.stop()
    assert "slots_per_peer" not in run.snapshot().output


@pytest.mark.parametrize("selection", ["vader", "^tcp"])
def test_velo_stays_out_of_a_selection_that_does_not_name_it(mpi, selection):
    options = ["--mca", "btl", f"{selection},self" if selection[0] != "^" else selection]
    result = mpi.run("traffic", "rounds", 3, np=2, transport="", options=options, params={"btl_base_verbose": 20})
    assert "slots_per_peer" not in result.output


def test_slots_per_peer_is_chosen_by_velo_by_default(mpi):
    text = mpi.run("traffic", "rounds", 3, np=2, params={"btl_base_verbose": 20}).stderr
    assert "(automatic)" in text
