"""README.md and the pages of docs/: their links lead somewhere, and the README's command lines of mpirun run as printed. All others are
typed by contrib/dev/newcomer."""

import os
import pathlib
import re
import shlex

from flows import velo_only
from launcher import Run, finish

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Beginnings of commands of the README that are run elsewhere.
ELSEWHERE = ("contrib/", "./autogen.sh", "velo-info", "sudo make uninstall")

pytestmark = velo_only


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


def test_parameters_of_commands_in_the_text_exist():
    known = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "parameters.md").read_text(), re.MULTILINE))
    named = {(page.name, name) for page in PAGES for name in re.findall(r"--mca ((?:btl|mtl|coll)_velo_\w+)", page.read_text())}
    assert len(named) > 10 and [place for place in sorted(named) if place[1] not in known] == []


def test_the_commands_of_the_readme_run_as_they_stand_there(mpi, tmp_path):
    """With a program of the tests instead of the user's."""
    lines = [line.partition("  #")[0].strip() for line in re.findall(r"^ {4}(\S.*)$", PAGES[0].read_text(), re.MULTILINE)]
    here = [line for line in lines if line.startswith("mpirun ")]
    assert here and [line for line in lines if line not in here and not line.startswith(ELSEWHERE)] == []
    for line in here:
        words = shlex.split(line.replace("./program", f"{mpi.program('traffic')} rounds 3"))
        words[:1] = [os.environ.get("MPIRUN", "mpirun.openmpi"), "--oversubscribe", "--bind-to", "none", "--wdir", str(tmp_path)]
        result = finish(Run(words, mpi.environment(), 120))
        assert result.returncode == 0 and result.facts()["rounds"] == 3 and "btl:velo: in use" in result.stdout + result.stderr, str(result)
