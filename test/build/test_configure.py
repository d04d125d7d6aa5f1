"""What configure accepts, refuses and reports. VELO_SOURCE_DIR: the tree with configure; unset: this one."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ.get("VELO_SOURCE_DIR") or pathlib.Path(__file__).parents[2]).resolve()
DEBIAN_HINT = "apt-get install libopenmpi-dev openmpi-bin"


# What a configure finds out of compilers and the shell, which no test here changes: most of its time.
SAME_EVERYWHERE = re.compile(r"^(?:am_cv_|ac_cv_(?:build|host|objext|exeext|c_|cxx_|prog_(?:cc|cxx|make|ac_ct|EGREP|AWK)|path_(?:SED|GREP|EGREP|FGREP)))\w*=.*\n",
                             re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def found_by_the_build(tmp_path_factory):
    """The build whose tests these are has found it out."""
    log = pathlib.Path(os.environ.get("VELO_BUILD_DIR") or SOURCE, "config.log")
    if not log.exists():
        yield
        return
    site = tmp_path_factory.mktemp("site") / "config.site"
    site.write_text("".join(found[0] for found in SAME_EVERYWHERE.finditer(log.read_text(errors="replace"))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONFIG_SITE", str(site))
        yield


def configure(directory, *arguments, **environment):
    """Runs configure out of tree; gives its exit status and all that it printed."""
    directory.mkdir(exist_ok=True)
    made = subprocess.run([SOURCE / "configure", *map(str, arguments)], cwd=directory, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment})
    return made.returncode, made.stdout


def refusal(directory, *arguments, **environment):
    status, text = configure(directory, *arguments, **environment)
    assert status != 0, text
    return text


def make_variable(directory, name):
    lines = (directory / "Makefile").read_text().splitlines()
    return next(line.partition("=")[2].strip() for line in lines if line.startswith(f"{name} ="))


def find_command(*names):
    return next(filter(None, map(shutil.which, names)))


class FakeOpenMpi:
    """An Open MPI prefix whose commands differ from the real ones in what a test asks for."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.include = prefix / "include"
        self.include.mkdir(parents=True)
        (prefix / "bin").mkdir()
        self.mpicc = os.environ.get("MPICC") or find_command("mpicc.openmpi", "mpicc")
        self.ompi_info = os.environ.get("OMPI_INFO") or find_command("ompi_info.openmpi", "ompi_info")
        self.script("mpicc", f'exec {self.mpicc} "$@"')
        self.script("ompi_info", f'exec {self.ompi_info} "$@"')
        self.script("mpirun", "exit 1")

    def script(self, name, text):
        path = self.prefix / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def with_headers(self, version, btl_version):
        major, minor, release = version.split(".")
        self.script("mpicc", f'[ "$1" = --showme:incdirs ] && exec echo {self.include}\nexec {self.mpicc} "$@"')
        (self.include / "opal_config.h").write_text(f"#define OPAL_MAJOR_VERSION {major}\n"
                                                    f"#define OPAL_MINOR_VERSION {minor}\n"
                                                    f"#define OPAL_RELEASE_VERSION {release}\n")
        (self.include / "opal/mca/btl").mkdir(parents=True)
        (self.include / "opal/mca/btl/btl.h").write_text(f"#define BTL_VERSION {btl_version}\n")
        for framework in ("coll", "mtl"):
            (self.include / "ompi/mca" / framework).mkdir(parents=True)
            (self.include / "ompi/mca" / framework / f"{framework}.h").write_text("")

    def with_info(self, sed):
        self.script("ompi_info", f"{self.ompi_info} \"$@\" | sed '{sed}'")

    def refusal(self, directory):
        return refusal(directory, f"--with-openmpi={self.prefix}", MPICC="", OMPI_INFO="", MPIRUN="")


@pytest.fixture
def open_mpi(tmp_path):
    return FakeOpenMpi(tmp_path / "openmpi")


def test_mpich_is_refused_by_name(tmp_path, open_mpi):
    open_mpi.script("mpicc", '[ "$1" = -v ] && exec echo mpicc for MPICH version 4.0.2\nexit 1')
    text = open_mpi.refusal(tmp_path)
    assert "mpicc belongs to MPICH version 4.0.2" in text
    assert DEBIAN_HINT in text


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("mpicc.mpich"), reason="MPICH is not installed")
def test_installed_mpich_is_refused_by_name(tmp_path):
    assert "belongs to MPICH version" in refusal(tmp_path, MPICC="mpicc.mpich")


def test_unknown_wrapper_is_refused(tmp_path, open_mpi):
    open_mpi.script("mpicc", "exit 1")
    assert "belongs to something else than Open MPI" in open_mpi.refusal(tmp_path)


def test_no_mpi_names_the_place_and_the_package(tmp_path):
    text = refusal(tmp_path, "--with-openmpi=/nonexistent", MPICC="")
    assert "No mpicc.openmpi mpicc in /nonexistent/bin" in text
    assert DEBIAN_HINT in text


def test_missing_component_headers_are_named(tmp_path, open_mpi):
    open_mpi.script("mpicc", f'[ "$1" = --showme:incdirs ] && exec echo {open_mpi.include}\nexec {open_mpi.mpicc} "$@"')
    text = open_mpi.refusal(tmp_path)
    assert "component headers are missing: opal_config.h opal/mca/btl/btl.h" in text
    assert str(open_mpi.include) in text
    assert DEBIAN_HINT in text


def test_other_series_are_refused(tmp_path, open_mpi):
    open_mpi.with_headers("5.1.0", 330)
    assert "This Open MPI is 5.1.0; this Velo serves the series 4.1, 5.0 and 6.0" in open_mpi.refusal(tmp_path)


def test_another_btl_api_is_refused(tmp_path, open_mpi):
    open_mpi.with_headers("4.1.4", 330)
    assert "The BTL API of Open MPI 4.1.4 is 330" in open_mpi.refusal(tmp_path)


class FakeSource:
    """A source tree of Open MPI as it is unpacked: not configured."""

    def __init__(self, path, version):
        self.path = path
        (path / "opal/mca/btl").mkdir(parents=True)
        (path / "opal/mca/btl/btl.h").write_text("#define BTL_VERSION 310\n")
        major, minor, release = version.split(".")
        (path / "VERSION").write_text(f"# comment\nmajor={major}\nminor={minor}\nrelease={release}\ngreek=\n")


def with_source(tmp_path, open_mpi, source):
    return refusal(tmp_path, f"--with-openmpi={open_mpi.prefix}", f"--with-ompi-source={source}", MPICC="", OMPI_INFO="",
                   MPIRUN="")


def test_a_directory_that_is_no_source_tree_is_refused(tmp_path, open_mpi):
    assert f"--with-ompi-source={tmp_path} is not a source tree of Open MPI" in with_source(tmp_path, open_mpi, tmp_path)


def test_the_source_of_another_version_is_refused(tmp_path, open_mpi):
    open_mpi.with_headers("4.1.4", 310)
    source = FakeSource(tmp_path / "source", "4.1.3")
    text = with_source(tmp_path, open_mpi, source.path)
    assert "holds Open MPI 4.1.3, but opal_config.h is of 4.1.4" in text


def test_a_source_tree_that_is_not_configured_is_told_how_the_installed_one_was(tmp_path, open_mpi):
    open_mpi.script("mpicc", f'[ "$1" = --showme:incdirs ] && exec echo {open_mpi.include}\nexec {open_mpi.mpicc} "$@"')
    source = FakeSource(tmp_path / "source", "4.1.4")
    text = with_source(tmp_path, open_mpi, source.path)
    assert f"opal_config.h is neither installed nor in {source.path}/opal/include" in text
    assert "./configure '--" in text


def test_headers_of_another_version_than_the_library_are_refused(tmp_path, open_mpi):
    open_mpi.with_info("s/:version:full:.*/:version:full:4.1.99/")
    assert "ompi_info is of 4.1.99" in open_mpi.refusal(tmp_path)


def test_open_mpi_that_loads_no_plugins_is_refused(tmp_path, open_mpi):
    open_mpi.with_info("s/^option:dlopen:.*/option:dlopen:no/")
    assert "--disable-dlopen: it never loads a plugin" in open_mpi.refusal(tmp_path)


def test_missing_json_header_names_the_package(tmp_path):
    assert "apt-get install nlohmann-json3-dev" in refusal(tmp_path, ac_cv_header_nlohmann_json_hpp="no")


def test_relative_component_directory_is_refused(tmp_path):
    assert "give an absolute directory" in refusal(tmp_path, "--with-component-dir=components")


class FakeXpmem:
    """A prefix with a header and a library that have what Velo uses."""

    CALLS = ("typedef long xpmem_segid_t, xpmem_apid_t; struct xpmem_addr { xpmem_apid_t apid; off_t offset; };\n"
             "enum { XPMEM_RDWR = 2, XPMEM_PERMIT_MODE = 1 };\n"
             "xpmem_segid_t xpmem_make(void *, size_t, int, void *); int xpmem_remove(xpmem_segid_t);\n"
             "xpmem_apid_t xpmem_get(xpmem_segid_t, int, int, void *); int xpmem_release(xpmem_apid_t);\n"
             "void *xpmem_attach(struct xpmem_addr, size_t, void *); int xpmem_detach(void *);\n")
    LIBRARY = "make remove get release attach detach"

    def __init__(self, prefix, library="lib64"):
        self.prefix = prefix
        (prefix / "include").mkdir(parents=True)
        (prefix / "include/xpmem.h").write_text("#include <sys/types.h>\n#define XPMEM_MAXADDR_SIZE ((size_t) -1)\n" + self.CALLS)
        if library:
            (prefix / library).mkdir()
            source = "".join(f"void xpmem_{call}(void) {{}}\n" for call in self.LIBRARY.split())
            subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", prefix / library / "libxpmem.so"], input=source,
                           text=True, check=True)


@pytest.mark.slow
def test_xpmem_is_found_where_the_option_says(tmp_path):
    xpmem = FakeXpmem(tmp_path / "xpmem")
    status, text = configure(tmp_path / "build", f"--with-xpmem={xpmem.prefix}")
    assert status == 0, text
    assert f"XPMEM                yes, {xpmem.prefix}" in text
    assert "#define VELO_HAVE_XPMEM 1" in (tmp_path / "build/velo_config.h").read_text()
    assert make_variable(tmp_path / "build", "VELO_XPMEM_LIBS") == f"-L{xpmem.prefix}/lib64 -lxpmem"


@pytest.mark.slow
def test_xpmem_that_is_asked_for_and_missing_is_refused(tmp_path):
    assert "xpmem.h was not found" in refusal(tmp_path / "a", "--with-xpmem=/nonexistent")
    xpmem = FakeXpmem(tmp_path / "xpmem", library=None)
    assert "libxpmem does not link" in refusal(tmp_path / "b", f"--with-xpmem={xpmem.prefix}")
    assert "give an absolute directory" in refusal(tmp_path / "c", "--with-xpmem=xpmem")


@pytest.mark.slow
def test_xpmem_can_be_left_out(tmp_path):
    status, text = configure(tmp_path, "--without-xpmem")
    assert status == 0, text
    assert "XPMEM                no, by --without-xpmem" in text
    assert "#define VELO_HAVE_XPMEM" not in (tmp_path / "velo_config.h").read_text()


@pytest.mark.slow
def test_the_summary_tells_what_was_found_and_names_packages_that_are_missing(tmp_path):
    status, text = configure(tmp_path, "--enable-checked", "--with-component-dir=user", HOME="/home/someone", PKG_CONFIG_PATH="",
                             PKG_CONFIG_LIBDIR="/nonexistent", velo_cv_gtest="no")
    assert status == 0, text
    found = dict(line.strip().split(maxsplit=1) for line in text[text.rindex("\nVelo "):].replace("Open MPI", "OpenMPI")
                 .replace("BTL API", "BTL_API").strip().splitlines())
    assert found["OpenMPI"].startswith(("4.1.", "5.0.", "6.0."))
    assert found["BTL_API"] == ("3.1.0" if found["OpenMPI"].startswith("4.1.") else "3.3.0")
    assert found["CMA"].startswith("yes")
    assert found["checked"] == "yes"
    assert "-DVELO_CHECKED=1" in make_variable(tmp_path, "VELO_CHECKED_CPPFLAGS")
    for package in ("libhwloc-dev", "libucx-dev", "libgtest-dev"):
        assert f"(apt-get install {package})" in text
    assert make_variable(tmp_path, "componentdir") == "/home/someone/.openmpi/components"
    check = subprocess.run(["make", "check-local"], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env={key: value for key, value in os.environ.items() if "MAKE" not in key})
    assert check.returncode != 0
    assert "apt-get install libgtest-dev" in check.stdout
