"""What make install puts where, and what the plugin is. VELO_BUILD_DIR: a finished build (make check-mpi sets it)."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

BUILD = os.environ.get("VELO_BUILD_DIR")
pytestmark = pytest.mark.skipif(not BUILD, reason="VELO_BUILD_DIR is not set; run by make check-mpi")
ENVIRONMENT = {key: value for key, value in os.environ.items() if "MAKE" not in key}


def make(*arguments):
    subprocess.run(["make", "-C", BUILD, *arguments], check=True, capture_output=True, text=True, env=ENVIRONMENT,
                   timeout=300)


def makes_pages():
    return bool(re.search(r"^HELP2MAN = \S", pathlib.Path(BUILD or "", "Makefile").read_text(), re.MULTILINE)) if BUILD else False


def files_below(directory):
    return sorted(str(path.relative_to(directory)) for path in pathlib.Path(directory).rglob("*") if not path.is_dir())


def compile_with_pkg_config(root):
    """A program with goal.h, against what is installed below `root`."""
    (root / "program.c").write_text("#include <goal.h>\nint main(void) { return GOAL_IsInitialized(); }\n")
    words = ["pkg-config", f"--define-variable=prefix={root}/prefix", "--cflags", "--libs", f"{root}/prefix/lib/pkgconfig/velo-goal.pc"]
    flags = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    mpicc = re.search(r"^MPICC = (.*)$", pathlib.Path(BUILD, "Makefile").read_text(), re.MULTILINE)[1]
    subprocess.run([mpicc, str(root / "program.c"), "-o", str(root / "program"), *flags], check=True, timeout=60)
    subprocess.run([root / "program"], check=True, timeout=60, env=ENVIRONMENT)
    for file in ("program", "program.c"):
        (root / file).unlink()


def test_the_plugin_is_one_file_with_three_names_and_uninstall_leaves_nothing(tmp_path):
    place = [f"DESTDIR={tmp_path}", "componentdir=/components", "prefix=/prefix"]
    make("install", *place)
    assert files_below(tmp_path / "components") == ["mca_btl_velo.so", "mca_coll_velo.so", "mca_mtl_velo.so"]
    for name in ("mca_coll_velo.so", "mca_mtl_velo.so"):
        assert os.readlink(tmp_path / "components" / name) == "mca_btl_velo.so"
    commands = ("velo-info", "velo-measure", "velo-trace", "velo-pvars")
    former = {"bin/velo-compare", "bin/velo-lab", "bin/velo-versus"}
    programs = former | {f"bin/{name}" for name in (*commands, "velo-goal", "velo-mpi-bench", "velo-sim")}
    installed = set(files_below(tmp_path / "prefix"))
    assert programs | {"lib/velo/libvelo-pvars.so"} <= installed
    if makes_pages():
        pages = {name for name in installed if "/man1/" in name}
        assert pages == {f"share/man/man1/{pathlib.Path(name).name}.1" for name in programs - former}
    assert {"include/velo-goal/goal.h", "lib/libvelo-goal.so", "lib/libvelo-goal.so.0", "lib/pkgconfig/velo-goal.pc"} <= installed
    compile_with_pkg_config(tmp_path)
    for command in commands:
        subprocess.run([tmp_path / "prefix" / "bin" / command, "--help"], check=True, capture_output=True, timeout=60,
                       env=ENVIRONMENT | {"PYTHONDONTWRITEBYTECODE": "1"})
    make("uninstall", *place)
    assert files_below(tmp_path) == []
    assert [str(path) for path in tmp_path.rglob("*velo*")] == []


@pytest.mark.skipif(not makes_pages(), reason="no help2man, or no matplotlib for what it shows")
def test_manual_pages_show_how_a_command_is_called_and_each_example_on_its_own():
    pages = {page.stem: page.read_text().replace("\\-", "-") for page in pathlib.Path(BUILD, "contrib/man").glob("*.1")}
    assert len(pages) == 7
    for name, page in pages.items():
        assert f".SH SYNOPSIS\n.B {name}\n" in page and "sage:" not in page
        assert "velo-mpibench" not in page
        for verb in {"velo-goal": ("check", "run", "tune"), "velo-sim": ("experiment", "plot"), "velo-trace": ("plot",),
                     "velo-measure": ("policies", "transports", "papers", "flood")}.get(name, ()):
            assert f'.SH "{name.upper()} {verb.upper()}"\n' in page and f"{name} {verb} " in page
        for examples in re.findall(r'^\.SS "(?:examples|Other modes):"\n(.*?)^\.(?:PP|SS|SH)', page, re.MULTILINE | re.DOTALL):
            before, *each = examples.split(".TP\n")
            assert before == "" and len(each) >= 2
            assert all(len(command_and_purpose.splitlines()) == 2 for command_and_purpose in each), examples


@pytest.fixture(scope="module")
def dynamic_section():
    plugin = f"{BUILD}/mca_btl_velo.so"
    return subprocess.run(["readelf", "--wide", "--dynamic", "--dyn-syms", plugin], check=True, capture_output=True,
                          text=True).stdout


def test_the_plugin_brings_open_pal_along_and_no_library_path(dynamic_section):
    assert re.search(r"NEEDED.*\[libopen-pal\.so", dynamic_section)
    assert not re.search(r"\((RPATH|RUNPATH)\).*build", dynamic_section)


def test_the_plugin_has_no_faults_to_inject():
    """Those of fabric/interceptor.h are for checked builds."""
    if "\nVELO_CHECKED_CPPFLAGS = -D" in pathlib.Path(BUILD, "Makefile").read_text():
        pytest.skip("VELO_BUILD_DIR names a build with --enable-checked")
    assert b"VELO_INTERCEPT" not in pathlib.Path(BUILD, "mca_btl_velo.so").read_bytes()


def exported(section):
    return sorted(re.findall(r"(?:GLOBAL|WEAK|UNIQUE)\s+DEFAULT\s+(?!UND)\w+\s+(\S+)", section))


def test_the_plugin_exports_its_components_and_a_table_alone(dynamic_section):
    assert exported(dynamic_section) == ["mca_btl_velo_component", "mca_coll_velo_component", "mca_mtl_velo_component",
                                         "velo_goal_table_v1", "velo_routes_text"]


def test_the_library_exports_what_its_header_declares():
    symbols = subprocess.run(["readelf", "--wide", "--dyn-syms", f"{BUILD}/libvelo-goal/libvelo-goal.so"], check=True,
                             capture_output=True, text=True).stdout
    header = pathlib.Path(__file__).resolve().parents[2] / "libvelo-goal" / "goal.h"
    declared = re.findall(r"^_GOAL_API .*?\b(GOAL_\w+)\(", header.read_text(), re.MULTILINE)
    assert exported(symbols) == sorted(declared) and len(declared) >= 35
