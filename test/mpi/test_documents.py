"""README.md and the pages of docs/: their links lead somewhere; the commands of the README run as they stand there."""

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
# Beginnings of commands of the README that are run elsewhere.
ELSEWHERE = {"contrib/demo": "phase demo of velo-prove", "contrib/check": "this test runs in it", "contrib/install-deps": "contrib/demo and contrib/check do",
             "./autogen.sh": "test/build and contrib/check", "velo-info": "test/build/test_velo_info.py", "sudo make uninstall": "test/build/test_install.py"}

pytestmark = velo_only


def commands(text):
    """Lines of indented blocks, without their comments."""
    lines = re.findall(r"^ {4}(\S.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return [re.split(r"\s+#", line)[0].strip() for line in lines]


RUN_HERE = [command for command in commands((ROOT / "README.md").read_text()) if not command.startswith(tuple(ELSEWHERE))]


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
            path, _, place = target.partition("#")
            file = (page.parent / path) if path else page
            assert file.exists(), f"{page.name}: {target}"
            if place:
                headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
                assert place in [anchor(heading) for heading in headings], f"{page.name}: {target}"


def test_there_is_a_command_to_run():
    assert RUN_HERE


@pytest.mark.parametrize("command", RUN_HERE)
def test_a_command_runs_as_it_stands_in_the_text(mpi, command):
    """With a program of the tests instead of the user's, and as many ranks as there is room for."""
    words = shlex.split(command.replace("./program", f"{mpi.program('traffic')} rounds 3"))
    assert words[0] == "mpirun", "not a command that this test knows how to run"
    words[:1] = [os.environ.get("MPIRUN", "mpirun.openmpi"), "--oversubscribe", "--bind-to", "none"]
    result = finish(Run(words, mpi.environment(), 60))
    assert result.returncode == 0, str(result)
    assert result.facts()["rounds"] == 3


def test_parameters_of_commands_in_the_text_exist():
    known = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "parameters.md").read_text(), re.MULTILINE))
    named = {(page.name, name) for page in PAGES for name in re.findall(r"--mca ((?:btl|mtl|coll)_velo_\w+)", page.read_text())}
    assert len(named) > 10 and [place for place in sorted(named) if place[1] not in known] == []


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
