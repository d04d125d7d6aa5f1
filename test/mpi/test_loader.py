"""The plugin loads by itself."""

from flows import velo_only

pytestmark = velo_only


def test_the_plugin_loads_with_an_empty_environment(mpi):
    result = mpi.run("traffic", "rounds", 3, np=2, bare=True, params={"btl_base_verbose": 20})
    assert result.facts()["rounds"] == 3
    assert "slots_per_peer" in result.stderr


def test_ompi_info_shows_the_component_and_no_failure_to_load(ompi_info):
    text = ompi_info("--show-failed", "--parsable").output
    assert "mca:btl:velo:version:" in text
    assert not [line for line in text.splitlines() if "velo" in line and "fail" in line.lower()]


def test_the_plugin_loads_where_libopen_pal_is_not_global(mpi):
    """As in a Python or Java interpreter that opens the MPI library with RTLD_LOCAL."""
    result = mpi.run("local_load", np=2)
    assert result.facts() == {"loaded": 1}
