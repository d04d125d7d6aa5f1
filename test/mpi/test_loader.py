"""The plugin loads by itself."""

import re

from flows import velo_only
from launcher import TCP_HERE, has_velo

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


REFUSAL = r"btl:velo: this plugin was built for Open MPI \d+\.\d+\S* and does not serve Open MPI v9\.8\.7; rebuild"


def test_the_plugin_declines_with_a_message_in_another_series(mpi):
    """With another BTL beside it the job goes on over that one."""
    options = ["--mca", "btl", "velo,tcp,self"]
    result = mpi.run("another_series", np=3, transport_btl=False, options=options, params={"btl_base_verbose": 20, **TCP_HERE})
    assert result.facts() == {"ranks": 3}
    assert len(re.findall(REFUSAL, result.stderr)) == 3
    assert "slots_per_peer" not in result.stderr, "an engine has been opened"


def test_a_job_that_names_velo_alone_ends_with_that_message_in_another_series(mpi):
    result = mpi.run_any("another_series", np=2)
    assert result.returncode != 0 and re.search(REFUSAL, result.stderr), str(result)


def test_mpirun_itself_never_loads_the_plugin(start, mpi):
    run = start("traffic", "endless", np=2)
    run.until_printed(r"traffic pid=\d+")
    assert [has_velo(pid) for pid in run.ranks(mpi.program("traffic"))] == [True, True]
    assert has_velo(run.pid) is False
