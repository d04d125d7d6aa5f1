"""Parameters: listed with help, refused when wrong or different, shown when asked."""

import pathlib
import re

import pytest

from flows import velo_only

pytestmark = velo_only
OF_EVERY_BTL = (r"btl_velo_(exclusivity|flags|atomic_flags|bandwidth|latency|rdma_pipeline_send_length|rdma_pipeline_frag_size|"
                r"min_rdma_pipeline_size|get_limit|put_limit|get_alignment|put_alignment|priority|accelerator_max_send_size)")
# Of each kind of refusal one; which values are refused is the table's (test/unit/parameters_test.cc): a word that is no choice, a
# text that is no number, a limit that Open MPI registers. A number out of its range is below, a directory without room in
# test_hygiene.py.
WRONG = [("flow_control", "foo"), ("stall_warning", "soon"), ("eager_limit", 0)]


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


def test_ompi_info_lists_the_parameters_of_the_other_components_with_help(ompi_info):
    text = ompi_info("--all", "--parsable").stdout
    for component in ("mtl", "coll") if "mca:mtl:velo:" in text else ("coll",):
        rows = [row for row in page() if row[0].startswith(f"`{component}_velo_")]
        assert rows
        for name, default, permitted, *_ in rows:
            name, value = name.strip("`"), "" if default == "nothing" else default
            assert f"mca:{component}:velo:param:{name}:value:{value}\n" in text
            assert f"Permitted: {permitted}. Default: {default}" in text, name


def test_ompi_info_lists_the_values_of_an_enumeration(ompi_info):
    text = ompi_info("--param", "btl", "velo", "-l", "9", "--parsable").stdout
    for name in ("flow_control", "single_copy_mechanism", "report"):
        permitted = next(row[2] for row in page() if row[0] == f"`btl_velo_{name}`")
        values = permitted.removeprefix("one of ").split(", ")
        listed = re.findall(rf"^mca:btl:velo:param:btl_velo_{name}:enumerator:value:\d+:(\w+)", text, re.MULTILINE)
        assert len(values) >= 3 and sorted(listed) == sorted(values)


@pytest.mark.parametrize("name, value", WRONG)
def test_a_wrong_value_ends_with_the_parameter_named(mpi, name, value):
    result = mpi.run_any("traffic", "rounds", 3, np=3, params={f"btl_velo_{name}": value})
    assert result.returncode != 0, str(result)
    assert f"btl_velo_{name}" in result.stderr or (f"{value}" in result.stderr and name in result.stderr), str(result)
    assert len(re.findall(r"btl:velo: (.*)", result.stderr)) == 1, str(result)


def test_the_error_is_seen_although_the_others_end_before_it_is_said(mpi):
    result = mpi.run_any("slow_to_say", np=3, params={"btl_velo_credit_slots": 300})
    assert result.returncode != 0 and "btl_velo_credit_slots is 300" in result.stderr, str(result)


def test_the_error_is_said_once_a_node_and_last(mpi, is_4_1):
    result = mpi.run_any("late_to_say", np=4, params={"btl_velo_credit_slots": 300})
    assert result.returncode != 0 and result.stderr.count("btl_velo_credit_slots is 300") == 1, str(result)
    # From 5.0 on mpirun's words follow.
    assert not is_4_1 or "btl_velo_credit_slots is 300" in result.stderr.splitlines()[-1], str(result)


def test_values_that_differ_between_ranks_end_with_the_parameter_named(mpi):
    # mpirun takes the options of an application context before its program.
    words = [[*f"-x OMPI_MCA_btl_velo_credit_slots={value}".split(), mpi.program("traffic"), "rounds", "3"] for value in (2, 3)]
    result = mpi.run_parts(list(zip((2, 1), words)))
    assert result.returncode != 0, str(result)
    assert "btl_velo_credit_slots" in result.stderr, str(result)


def test_the_values_in_effect_are_shown_on_request(mpi):
    params = {"btl_base_verbose": 20, "btl_velo_flow_control": "static", "btl_velo_credit_slots": 3, "btl_velo_piggyback": 0}
    text = mpi.run("traffic", "rounds", 3, np=3, params=params).stderr
    (line,) = (line for line in text.splitlines() if "flow_control static" in line)
    assert len(re.findall(r"btl:velo: rank [12]: (?:processor|locality)", text)) == 2, text
    assert "through UCX" not in text, "one node opens no network"
    for part in ("(automatic)", "credit_slots 3", "piggyback false", "single copy auto", "/dev/shm"):
        assert part in line


def test_a_run_without_requests_is_quiet_and_writes_nothing(mpi, tmp_path):
    assert mpi.run("traffic", "rounds", 3, np=3, options=["--wdir", str(tmp_path)]).stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_there_is_not_is_warned_of_with_the_one_that_is_like_it(mpi, tmp_path):
    file = tmp_path / "params.conf"
    file.write_text("# btl_velo_not_there = 1\n  coll_velo_prioritty = 3\nbtl_velo_latency=1\nbtl_velo_something_else = 1\nbtl_velo_distance = near\n")
    result = mpi.run("traffic", "rounds", 3, np=2, params={"btl_velo_flowcontrol": "static", "btl_velo_slots_per_peer": 64},
                     env={"OMPI_MCA_mca_base_param_files": str(file)})
    assert sorted(re.findall(r"btl:velo: (.*)", result.output)) == [
        "the parameter btl_velo_distance is gone, and it is ignored: btl_velo_routes sets it",
        "there is no parameter btl_velo_flowcontrol, and it is ignored: did you mean btl_velo_flow_control?",
        "there is no parameter btl_velo_something_else, and it is ignored",
        "there is no parameter coll_velo_prioritty, and it is ignored: did you mean coll_velo_priority?"], str(result)


def test_velo_does_not_take_over_when_nobody_asks_for_it(start, mpi):
    run = start("traffic", "endless", np=2, transport="", params={"btl_base_verbose": 20})
    run.until_printed(r"traffic pid=\d+")
    for pid in run.ranks(mpi.program("traffic")):
        with open(f"/proc/{pid}/maps") as file:
            assert "/dev/shm/#" not in file.read()  # a segment without a name
    run.stop()
    assert "slots_per_peer" not in run.snapshot().output


def test_velo_stays_out_of_a_selection_that_does_not_name_it(mpi):
    result = mpi.run("traffic", "rounds", 3, np=2, transport="", options=["--mca", "btl", "^tcp"], params={"btl_base_verbose": 20})
    assert "slots_per_peer" not in result.output
