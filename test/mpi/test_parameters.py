"""Parameters: listed with help, refused when wrong or different, shown when asked."""

import pathlib
import re

import pytest

from flows import velo_only

pytestmark = velo_only
OF_EVERY_BTL = (r"btl_velo_(exclusivity|flags|atomic_flags|bandwidth|latency|rdma_pipeline_send_length|rdma_pipeline_frag_size|"
                r"min_rdma_pipeline_size|get_limit|put_limit|get_alignment|put_alignment|priority|accelerator_max_send_size)")
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


def page():
    """The rows of docs/parameters.md: name, default, permitted, level, the same in all, help."""
    lines = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "parameters.md").read_text().splitlines()
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("| `")]


def test_ompi_info_and_the_page_of_parameters_say_the_same(ompi_info):
    rows = [row for row in page() if row[0].startswith("`btl_velo_")]
    assert len(rows) > 25
    text = ompi_info("--param", "btl", "velo", "-l", "9", "--parsable").stdout

    def shown(name, field):
        found = re.search(rf"^mca:btl:velo:param:{name}:{field}:(.*)", text, re.MULTILINE)
        assert found, f"{name} has no {field}"
        return found[1].strip('"')

    for name, default, permitted, level, alike, help_text in rows:
        name = name.strip("`")
        assert shown(name, "value") == ("" if default == "nothing" else default), name
        if name.removeprefix("btl_velo_") in ("eager_limit", "rndv_eager_limit", "max_send_size"):
            continue  # the help is Open MPI's
        said = shown(name, "help")
        assert said.startswith(help_text + ". "), name
        assert f"Permitted: {permitted}. Default: {default}" in said
        assert ("The same in all processes" in said) == (alike == "yes"), name
        assert shown(name, "level") == level, name
    # Those that are not in the page are every BTL's.
    known = {row[0].strip("`") for row in rows}
    ours = set(re.findall(r"^mca:btl:velo:param:(btl_velo_\w+):value:", text, re.MULTILINE))
    assert ours >= known
    assert all(re.fullmatch(OF_EVERY_BTL, name) for name in ours - known), ours - known


@pytest.mark.parametrize("name", [row[0].strip("`") for row in page() if row[0].startswith(("`mtl_velo_", "`coll_velo_"))])
def test_ompi_info_lists_the_parameters_of_the_other_components_with_help(ompi_info, request, name):
    if name.startswith("mtl_"):
        request.getfixturevalue("needs_mtl")
    text = ompi_info("--all", "--parsable").stdout
    default, permitted = next(row[1:3] for row in page() if row[0] == f"`{name}`")
    value = "" if default == "nothing" else default
    assert f"mca:{name.partition('_')[0]}:velo:param:{name}:value:{value}\n" in text
    assert f"Permitted: {permitted}. Default: {default}" in text


@pytest.mark.parametrize("name", ["flow_control", "single_copy_mechanism", "report"])
def test_ompi_info_lists_the_values_of_an_enumeration(ompi_info, name):
    permitted = next(row[2] for row in page() if row[0] == f"`btl_velo_{name}`")
    values = permitted.removeprefix("one of ").split(", ")
    assert len(values) >= 3
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
    for part in ("slots_per_peer 48", "credit_slots 3", "piggyback false", "single copy auto", "/dev/shm"):
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
