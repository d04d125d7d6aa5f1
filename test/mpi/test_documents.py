"""README.md and the pages of docs/: their links lead somewhere, and their commands run as they stand there."""

import os
import pathlib
import re
import shlex
import subprocess

import pytest

from flows import velo_only
from launcher import Run, finish

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Beginnings of commands that are run elsewhere, or cannot be run here; the page says so.
ELSEWHERE = {
    "contrib/demo": "phase demo of velo-prove",
    "contrib/check": "this test runs in it",
    "contrib/install-deps": "contrib/demo and contrib/check do",
    "sudo make uninstall": "test/build/test_install.py",
    "contrib/nodes fault": "test/nodes",
    "./autogen.sh": "test/build and contrib/check",
    "./configure": "test/build and contrib/check",
    "velo-info": "test/build/test_velo_info.py",
    "sudo apt-get": "contrib/dev/package does it in chroots",
    "contrib/packages/recipes": "test/build/test_packages.py",
    "spack": "needs Spack, and the page says that it was not built",
    "eb": "needs EasyBuild, and the page says that it was not built",
    "podman": "needs podman; its commands are those of contrib/dev/package",
    "export": "only sets variables",
    "sed -i": "only on Debian 13, as root: contrib/dev/platforms/inside does it",
    "mkdir": "test/trace",
    "contrib/dev/measured": "test/compare",
    "velo-trace": "test/trace",
    "velo-phases": "test/lab",
    "velo-compare": "test/compare, and contrib/demo runs it",
    "srun": "needs Slurm, and the page says that it was not tested",
    "salloc": "needs Slurm, and the page says that it was not tested",
}

pytestmark = velo_only


def without_fences(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def commands(page):
    """Lines of indented blocks, without their comments."""
    lines = re.findall(r"^ {4,6}(\S.*)$", without_fences(page.read_text()), re.MULTILINE)
    return [re.split(r"\s+#", line)[0].strip() for line in lines]


ALL = [(page, command) for page in PAGES for command in commands(page)]
RUN_HERE = [command for _, command in ALL if not command.startswith(tuple(ELSEWHERE))]


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
        path, _, place = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), target
        if place:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            assert place in [anchor(heading) for heading in headings], target


def test_there_are_commands_and_each_exception_is_one():
    assert len(RUN_HERE) >= 5
    for beginning in ELSEWHERE:
        assert any(beginning in page.read_text() for page in PAGES), beginning


@pytest.mark.parametrize("command", RUN_HERE, ids=lambda command: command[:70])
def test_a_command_runs_as_it_stands_in_the_text(mpi, command, tmp_path, request):
    words = shlex.split(command.replace("IMB-MPI1", "./program").replace("velo-phases > phases.txt", "./program")
                        .replace("velo-goal run contrib/goal/examples/ring.goal", "./program"))
    if "--mca mtl velo" in command:
        request.getfixturevalue("needs_mtl")
    if "slot:PE=2" in command and os.cpu_count() < 4:
        pytest.skip("two processes with two processors each need four")
    assert "./program" in words, "not a command that this test knows how to run"
    program = [mpi.program("traffic"), "rounds", "3"]
    words = [part for word in words for part in (program if word == "./program" else [word])]
    if "-H" in words or "--hostfile" in words or words[0] == "contrib/nodes":
        request.getfixturevalue("nodes_permitted")
        hosts = tmp_path / "hosts"
        hosts.write_text("node1 slots=4\nnode2 slots=4\n")
        words = [word.replace("nodeA", "node1").replace("nodeB", "node2") for word in words]
        words = [str(hosts) if word == "hosts" else word for word in words]
        if words[0] != "contrib/nodes":
            words = ["contrib/nodes", "run", "--name", f"doc{os.getpid()}", "-n", "2", "--slots", "4", "--", *words]
        words[0] = str(ROOT / words[0])
    elif "-np" not in words:
        words[1:1] = ["-np", "2"]
    at = words.index("mpirun")
    # The machine may have fewer processors than the job's, to which mpirun of 6.0 binds processes named in a file of hosts.
    free = [] if {"--map-by", "--bind-to"} & {*words} else ["--bind-to", "none"]
    # Without --oversubscribe, unless the page says it: users have as few processors.
    words[at : at + 1] = [os.environ.get("MPIRUN", "mpirun.openmpi"), "--wdir", str(tmp_path), *free]
    if "-np" not in words:
        words[at + 1 : at + 1] = ["-np", "2"]
    result = finish(Run(words, mpi.environment(), 60))
    assert result.returncode == 0, str(result)
    assert result.facts()["rounds"] == 3


def test_options_of_commands_in_the_text_are_told_by_their_help():
    tools = {path.name: path for path in (ROOT / "contrib").glob("*/velo-*") if path.is_file()}
    names = ("demo", "check", "nodes", *(f"dev/{name}" for name in ("series", "fuzz", "lint", "mutate", "velo-prove")))
    tools.update({f"contrib/{name}": ROOT / "contrib" / name for name in names})
    tried = 0
    for page in PAGES:
        for name, rest in re.findall(r"`(velo-[a-z]+|contrib/[a-z/-]+)((?: [^`]*)?)`", page.read_text()):
            options = re.findall(r"(?<!\S)--[a-z][a-z-]*", rest.partition(" mpirun")[0])
            if not options or name not in tools:
                continue
            told = subprocess.run([str(tools[name]), "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
            for option in options:
                assert option in told, f"{page.name}: {name} {option}"
                tried += 1
    assert tried >= 3
