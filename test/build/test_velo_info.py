"""velo-info: its answers are those of the kernel, the loader and Open MPI, which each test makes what it needs them to be."""

import ctypes
import json
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import sys

import pytest

from velo.counters import find_report
from velo.info import installed, machine

SOURCE = pathlib.Path(__file__).resolve().parents[2]
INFO = SOURCE / "contrib/info/velo-info"
PLUGIN = os.environ.get("VELO_COMPONENT_DIR")
BUILD = os.environ.get("VELO_BUILD_DIR")
needs_plugin = pytest.mark.skipif(not PLUGIN, reason="VELO_COMPONENT_DIR is not set; run by make check-mpi")
SYSCALLS = {"x86_64": 310, "aarch64": 270}  # process_vm_readv


def environment(**changed):
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, **as_root, "PYTHONDONTWRITEBYTECODE": "1", **changed}


def run(*words, before=None, prefix=(), **changed):
    return subprocess.run([*prefix, sys.executable, INFO, *words], capture_output=True, text=True, timeout=150, env=environment(**changed),
                          preexec_fn=before)


def told(*words, status=0, **how):
    finished = run("--json", *words, **how)
    assert finished.returncode == status, finished.stdout + finished.stderr
    answer = json.loads(finished.stdout)
    answer["mechanisms"] = {each["name"]: each for each in answer["mechanisms"]}
    return answer


def forbid_reading_memory(refuse=0x00050001):
    """A seccomp filter, as containers have it: process_vm_readv is refused with EPERM, or, 0, kills who calls it."""
    load, jump_if_equal, give_back, allow = 0x20, 0x15, 0x06, 0x7FFF0000
    code = [(load, 0, 0, 0), (jump_if_equal, 0, 1, SYSCALLS[platform.machine()]), (give_back, 0, 0, refuse), (give_back, 0, 0, allow)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    assert libc.prctl(no_new_privileges, 1, 0, 0, 0) == 0
    assert libc.prctl(set_seccomp, mode_filter, program) == 0, os.strerror(ctypes.get_errno())


def job_over_cma(before):
    """Whether Velo itself can read the memory of a peer."""
    words = [os.environ.get("MPIRUN", "mpirun.openmpi"), "--oversubscribe", "-np", "2", "--mca", "pml", "ob1", "--mca", "btl", "velo",
             "--mca", "btl_velo_single_copy_mechanism", "cma", f"{BUILD}/contrib/benchmark/velo-mpi-bench", "-iter", "2", "-msglog", "0:2", "PingPong"]
    finished = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment(), preexec_fn=before)
    return finished.returncode == 0


@needs_plugin
@pytest.mark.parametrize("before", [None, pytest.param(forbid_reading_memory, marks=pytest.mark.skipif(
    platform.machine() not in SYSCALLS, reason="the number of process_vm_readv is not known here"))], ids=["as it is", "forbidden"])
def test_cma_works_where_the_plugin_can_use_it_and_nowhere_else(before):
    answer = told(before=before)
    cma = answer["mechanisms"]["CMA"]
    assert cma["works"] == job_over_cma(before)
    if before:
        assert not cma["works"]
        assert "Operation not permitted" in cma["detail"] and "a seccomp filter is in force" in cma["detail"] and "SYS_PTRACE" in cma["remedy"]
    assert answer["command_lines"], "Velo works without, too"


@needs_plugin
@pytest.mark.skipif(platform.machine() not in SYSCALLS, reason="the number of process_vm_readv is not known here")
def test_cma_that_kills_does_not_work_and_the_advice_fits_the_kernel():
    cma = told(before=lambda: forbid_reading_memory(0))["mechanisms"]["CMA"]
    assert not cma["works"] and "SIGSYS" in cma["detail"]
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    assert ("ptrace_scope" in cma["remedy"]) == (scope.exists() and scope.read_text().strip() != "0")


@needs_plugin
def test_a_job_is_tried_in_an_allocation_of_one_slot(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=1\n")
    answer = told("--try", "--bench", f"{BUILD}/contrib/benchmark/velo-mpi-bench", OMPI_MCA_orte_default_hostfile=str(hosts),
                  PRTE_MCA_prte_default_hostfile=str(hosts))
    assert answer["job"]["failure"] is None


@needs_plugin
def test_it_says_which_plugin_this_open_mpi_finds_and_a_job_goes_over_it():
    answer = told("--try", "--bench", f"{BUILD}/contrib/benchmark/velo-mpi-bench")
    version = subprocess.run([os.environ.get("OMPI_INFO", "ompi_info"), "--parsable", "--version"], capture_output=True, text=True,
                             check=True).stdout.strip()
    assert answer["open_mpi"]["version"] in version
    assert answer["velo"]["plugin"] == f"{PLUGIN}/mca_btl_velo.so" and answer["velo"]["components"] == ["btl", "mtl", "coll"]
    assert answer["velo"]["built_for"].split(".")[:2] == answer["open_mpi"]["version"].split(".")[:2]
    assert answer["job"]["failure"] is None and answer["velo"]["troubles"] == []
    assert answer["command_lines"][0]["line"] == "mpirun --mca pml ob1 --mca btl velo ./program"


@needs_plugin
def test_the_words_for_open_mpis_own_directories_are_those_directories(tmp_path):
    components = tmp_path / ".openmpi" / "components"
    components.parent.mkdir()
    components.symlink_to(PLUGIN)
    answer = told(HOME=str(tmp_path), OMPI_MCA_mca_base_component_path="SYS_DEFAULT:USER_DEFAULT")
    assert answer["velo"]["plugin"] == str(components / "mca_btl_velo.so") and answer["velo"]["troubles"] == []


@needs_plugin
def test_it_prints_the_routes_of_this_machine_and_a_table_that_it_takes_again(tmp_path):
    shown = run("--routes", VELO_ROUTES_FILE=str(tmp_path / "none"), OMPI_MCA_btl_velo_routes="safe").stdout
    assert shown.startswith("Routes on this machine (") and "): safe values\n" in shown
    assert "  near and far, one way: below 64 KiB the receiver copies, longer both copy\n" in shown
    table = shown.partition("As a value of btl_velo_routes\n\n")[2]
    again = run("--routes", OMPI_MCA_btl_velo_routes=table).stdout
    assert again.partition("\n")[2] == shown.partition("\n")[2] and "): btl_velo_routes\n" in again


@needs_plugin
def test_it_prints_the_routes_that_a_file_of_parameters_sets(tmp_path):
    file = tmp_path / "mca-params.conf"
    file.write_text("btl_velo_routes = reference never staged 0 both never\nbtl_velo_eager_limit = 4k\n")
    shown = run("--routes", OMPI_MCA_mca_base_param_files=str(file)).stdout
    assert "): btl_velo_routes\n" in shown and "reference never" in shown
    assert "  near and far, at once: up to 4 KiB packets\n" in shown
    assert "up to 512 B packets\n" in run("--routes", OMPI_MCA_mca_base_param_files=str(file), OMPI_MCA_btl_velo_eager_limit="512").stdout


@needs_plugin
def test_the_routes_for_programs_are_those_for_people():
    shown = run("--routes", OMPI_MCA_btl_velo_routes="safe").stdout
    answer = json.loads(run("--routes", "--json", OMPI_MCA_btl_velo_routes="safe").stdout)
    assert answer["source"] == "safe values" and all(f"  {line}\n" in shown for line in answer["ranges"])
    again = json.loads(run("--routes", "--json", OMPI_MCA_btl_velo_routes=answer["table"]).stdout)
    assert again == {**answer, "source": "btl_velo_routes"}


@needs_plugin
@pytest.mark.parametrize("name, value, told", [("routes", "", "btl_velo_routes is '': it sets nothing; set it to auto"),
                                               ("eager_limit", "0", "btl_velo_eager_limit is 0; it must be"),
                                               ("eager_limit", "8m", "btl_velo_eager_limit is 8388608; it must be")])
def test_routes_that_no_job_would_take_are_an_error(name, value, told):
    finished = run("--routes", **{f"OMPI_MCA_btl_velo_{name}": value})
    assert finished.returncode != 0 and told in finished.stderr, finished


@needs_plugin
def test_a_job_that_fails_is_told_with_what_it_said():
    finished = run("--try", "--bench", f"{BUILD}/contrib/benchmark/velo-mpi-bench", OMPI_MCA_btl_velo_slots_per_peer="1")
    assert finished.returncode == 1
    assert "FAILED: exit status" in finished.stdout and "btl_velo_slots_per_peer is 1" in finished.stdout


@needs_plugin
def test_for_people_it_says_the_same_in_lines():
    answer, text = told(), run().stdout
    for line in answer["command_lines"]:
        assert f"  {line['line']} " in text
    for name, each in answer["mechanisms"].items():
        if name == "library copy":  # how fast it copies is measured in each run
            assert f"  {name:14}" in text
            continue
        assert f"  {name:14}{'yes' if each['works'] else 'no '}  {each['detail'].partition(':')[0]}" in text


@needs_plugin
@pytest.mark.parametrize("settings, words", [({"UCX_TLS": "self"}, "finds no network"), ({"UCX_TLS": "nosuch"}, "")])
def test_without_a_network_for_ucx_it_names_another_transport(settings, words):
    ucx = told(**settings)["mechanisms"]["UCX"]
    if "built without" in ucx["detail"]:
        pytest.skip("the plugin was built without UCX")
    assert not ucx["works"] and words in ucx["detail"]
    assert "velo,tcp" in "".join(line["line"] for line in told(**settings)["command_lines"])


@needs_plugin
def test_a_directory_for_shared_memory_that_is_not_there_does_not_work():
    memory = told(OMPI_MCA_btl_velo_backing_directory="/nowhere")["mechanisms"]["shared memory"]
    assert memory["detail"] == "/nowhere: No such file or directory" and not memory["works"] and memory["remedy"].startswith("mount a tmpfs there, or name")
    assert "btl_velo_backing_directory" in memory["remedy"]


@needs_plugin
def test_the_room_that_a_process_takes_is_what_one_takes():
    words = [os.environ.get("MPIRUN", "mpirun.openmpi"), "--oversubscribe", "-np", "2", "--mca", "pml", "ob1", "--mca", "btl", "velo", "--mca",
             "btl_velo_report", "json", f"{BUILD}/contrib/benchmark/velo-mpi-bench", "-iter", "2", "-msglog", "0:2", "PingPong"]
    finished = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment(), check=True)
    taken = max(rank["mailbox_bytes"] for rank in find_report(finished.stderr)["per_rank"])
    assert taken <= machine.MAILBOX_BYTES <= 1.1 * taken


def in_namespaces(*flags):
    """Words before a command that give it namespaces of its own."""
    words = ["unshare", "--map-root-user", *flags] if os.geteuid() else ["unshare", *flags]
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces permitted here")
    return words


def test_without_an_interface_there_is_no_multicast(stand_in):
    multicast = stand_in.told(prefix=in_namespaces("--net"))["mechanisms"]["IP multicast"]
    assert not multicast["works"] and "no interface" in multicast["detail"]


def test_a_shared_memory_that_is_too_small_does_not_work(stand_in, tmp_path):
    small = [*in_namespaces("--mount"), "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && exec "$@"', tmp_path]
    stand_in.plugin()
    memory = stand_in.told(prefix=small, FAKE_PARAMETERS=f"backing_directory={tmp_path},outbox=262144")["mechanisms"]["shared memory"]
    assert not memory["works"] and "64 KiB free of 64 KiB; a process takes 772 KiB: too little" in memory["detail"]


def test_a_shared_memory_that_is_read_only_is_to_be_mounted_writable(stand_in, tmp_path):
    sealed = [*in_namespaces("--mount"), "sh", "-c", 'mount -t tmpfs -o ro none "$0" && exec "$@"', tmp_path]
    stand_in.plugin()
    memory = stand_in.told(prefix=sealed, FAKE_PARAMETERS=f"backing_directory={tmp_path}")["mechanisms"]["shared memory"]
    assert not memory["works"] and memory["remedy"].startswith("mount it writable")


def test_without_proc_there_is_no_shared_memory(stand_in):
    stand_in.plugin()
    words = [*in_namespaces("--mount"), "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    memory = stand_in.told(prefix=words)["mechanisms"]["shared memory"]
    assert not memory["works"] and "there is no /proc" in memory["detail"] and "mount -t proc" in memory["remedy"]


def test_the_room_is_told_with_that_of_coll_velo(stand_in, tmp_path):
    small = [*in_namespaces("--mount"), "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && exec "$@"', tmp_path]
    stand_in.plugin()
    (stand_in.components / "mca_coll_velo.so").symlink_to("mca_btl_velo.so")
    memory = stand_in.told(prefix=small, FAKE_PARAMETERS=f"backing_directory={tmp_path},outbox=262144")["mechanisms"]["shared memory"]
    assert "a process takes 772 KiB, with coll velo 1.51 MiB and its boards" in memory["detail"]


class StandIn:
    """An Open MPI that is only its ompi_info, and plugins that are only what the loader and velo-info look at."""

    def __init__(self, directory):
        self.directory = directory
        self.components = directory / "components"
        self.components.mkdir()
        for name in ("mpirun", "ompi_info"):
            (directory / name).write_text(f'#!/bin/sh\nexec {sys.executable} {SOURCE}/test/shared/fake_ompi_info.py\n')
            (directory / name).chmod(0o755)

    def compile(self, file, code, *words):
        source = self.directory / f"{file.name}.c"
        source.write_text(code)
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", file, *words], check=True)

    def plugin(self, series="4, 1, 4", libraries=()):
        """Linked with `libraries`: name to code in C."""
        for name, code in dict(libraries).items():
            self.compile(self.directory / f"lib{name}.so", code, f"-Wl,-soname,lib{name}.so.9")
            shutil.copy(self.directory / f"lib{name}.so", self.directory / f"lib{name}.so.9")
        self.compile(self.components / "mca_btl_velo.so",
                     f'struct {{ int mca[3]; char project[16]; int version[3]; }} mca_btl_velo_component = {{{{2, 1, 0}}, "opal", {{{series}}}}};',
                     "-Wl,--no-as-needed", f"-L{self.directory}", f"-Wl,-rpath,{self.directory}", *(f"-l{name}" for name in dict(libraries)))

    def told(self, status=None, **how):
        changed = {"FAKE_PATH": str(self.components), "FAKE_VERSION": "4.1.4", **how}
        finished = run("--json", "--mpirun", str(self.directory / "mpirun"), **changed)
        assert finished.returncode in ((0, 1) if status is None else (status,)), finished.stdout + finished.stderr
        answer = json.loads(finished.stdout)
        answer["mechanisms"] = {each["name"]: each for each in answer["mechanisms"]}
        return answer


@pytest.fixture
def stand_in(tmp_path_factory):
    return StandIn(tmp_path_factory.mktemp("open-mpi"))


def test_a_plugin_that_is_nowhere(stand_in):
    answer = stand_in.told(status=1)
    assert "make install" in answer["velo"]["troubles"][0] and str(stand_in.components) in answer["velo"]["troubles"][0]
    assert answer["command_lines"] == []


def test_a_plugin_that_was_built_without(stand_in):
    stand_in.plugin()
    works = stand_in.told(status=0)["mechanisms"]
    for name in ("UCX", "XPMEM", "hwloc"):
        assert not works[name]["works"] and works[name]["detail"] == f"this Velo was built without {name}"


def test_a_library_that_is_missing_is_named(stand_in):
    stand_in.plugin(libraries={"ucp": "int x;"})
    (stand_in.directory / "libucp.so.9").unlink()
    trouble = stand_in.told(status=1)["velo"]["troubles"][0]
    assert "cannot be loaded: libucp.so.9: cannot open shared object file" in trouble


def test_a_plugin_for_another_series(stand_in):
    stand_in.plugin(series="9, 8, 7")
    assert "built for Open MPI 9.8.7 and does not serve 4.1.4" in stand_in.told(status=1)["velo"]["troubles"][0]


def test_a_plugin_that_open_mpi_does_not_take(stand_in):
    stand_in.plugin()
    assert "finds no btl component velo" in stand_in.told(status=1, FAKE_NO_PLUGIN="1")["velo"]["troubles"][0]


@pytest.mark.parametrize("code, works, detail", [
    ("long long xpmem_make(void *a, long b, int c, void *d) { return c == 1 && d == (void *)0600 ? 7 : -1; }", True, "attachable"),
    ("#include <errno.h>\nlong long xpmem_make(void) { errno = ENOENT; return -1; }", False, "xpmem_make: No such file or directory"),
    ("#include <stdlib.h>\nlong long xpmem_make(void) { abort(); }", False, "ended with SIGABRT")], ids=["works", "no module", "crashes"])
def test_xpmem_works_where_its_library_says_so(stand_in, code, works, detail):
    stand_in.plugin(libraries={"xpmem": code})
    xpmem = stand_in.told(status=0)["mechanisms"]["XPMEM"]
    assert xpmem["works"] is works and detail in xpmem["detail"]


@pytest.mark.parametrize("slow, works", [(1.9, True), (2.1, False)])
def test_a_library_that_copies_slowly_to_some_addresses_is_found_out(stand_in, monkeypatch, slow, works):
    stand_in.plugin()
    assert stand_in.told(status=0)["mechanisms"]["library copy"]["detail"].startswith(("equally fast", "more than 2 times slower"))
    monkeypatch.setattr(machine, "_copy_usec", lambda behind: {64: 1.0, 16: 1.0, 1: slow}[behind])
    copy = machine.mechanisms(installed.Installed())[-1]
    assert (copy.name, copy.works) == ("library copy", works)
    assert ("GLIBC_TUNABLES" in (copy.remedy or "")) is not works


@needs_plugin
def test_an_mpirun_that_loses_the_path_of_components_is_found_out(tmp_path):
    """As that of Debian 13, which gives the processes another's."""
    components = tmp_path / ".openmpi/components"
    components.mkdir(parents=True)
    for file in pathlib.Path(PLUGIN).iterdir():
        (components / file.name).symlink_to(file)
    mpirun = tmp_path / "mpirun"
    real = shutil.which(os.environ.get("MPIRUN", "mpirun.openmpi"))
    mpirun.write_text('#!/bin/sh\n[ -n "$OMPI_MCA_mca_base_component_path" ] || { echo "A requested component was not\nfound, or was unable to be opened." >&2; '
                      f'exit 1; }}\nexec {real} --oversubscribe "$@"\n')
    mpirun.chmod(0o755)
    bench = f"{BUILD}/contrib/benchmark/velo-mpi-bench"
    # Without the variable that make check-mpi sets, the home directory is on the path.
    finished = subprocess.run(["env", "-u", "OMPI_MCA_mca_base_component_path", f"HOME={tmp_path}", sys.executable, INFO, "--json", "--try", "--bench",
                               bench, "--mpirun", mpirun], capture_output=True, text=True, timeout=150, env=environment())
    answer = json.loads(finished.stdout)
    assert answer["job"]["failure"] is None
    assert answer["command_lines"][0]["line"] == "export OMPI_MCA_mca_base_component_path=SYS_DEFAULT:USER_DEFAULT"


@needs_plugin
def test_a_job_that_fails_for_another_reason_is_not_told_where_components_are():
    """Open MPI says that a component was not found when it has refused a parameter, too."""
    answer = told("--try", "--bench", f"{BUILD}/contrib/benchmark/velo-mpi-bench", status=1, OMPI_MCA_btl_velo_flow_control="foo")
    assert "btl_velo_flow_control" in answer["job"]["output"] and answer["job"]["needs_component_path"] is None
    assert not any("component_path" in each["line"] for each in answer["command_lines"])
