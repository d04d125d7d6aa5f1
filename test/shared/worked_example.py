"""The worked example of mca_btl_velo/design/adding-a-policy.md, and the doing of what the page says. VELO_SOURCE_DIR: the tree
with the page; unset: this one."""

import os
import pathlib
import re

SOURCE = pathlib.Path(os.environ.get("VELO_SOURCE_DIR") or pathlib.Path(__file__).parents[2]).resolve()
PAGE = (SOURCE / "mca_btl_velo/design/adding-a-policy.md").read_text()


def block(language):
    """The one block of code of the page in this language."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"the page has {len(found)} blocks of {language}"
    return found[0]


CODE = block("cpp")
NAME = re.search(r'\.name = "(\w+)"', CODE)[1]


def named_files():
    """What the first table of the page asks of a policy without parameters."""
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", PAGE.partition("\n## ")[0], re.MULTILINE)
    return {file.replace("<name>", NAME) for file, what in rows if not what.startswith("only ")}


def insert_below(path, last, lines):
    """Below the last line of the file that begins like this."""
    text = path.read_text().splitlines(keepends=True)
    place = max(number for number, line in enumerate(text, 1) if line.startswith(last))
    path.write_text("".join(text[:place]) + lines + "".join(text[place:]))


def apply(directory):
    """To a copy of the tree."""
    engine = directory / "mca_btl_velo"
    (engine / f"flow/{NAME}.cc").write_text(CODE)
    insert_below(engine / "flow/policies.inc", "VELO_POLICY(", block("c"))
    insert_below(engine / "Makefile.inc", "policy_sources = ", block("make"))
    parameters = directory / "docs/parameters.md"
    text, number = re.subn(r"^(\| `btl_velo_flow_control` .* one of .*?) \|", rf"\1, {NAME} |", parameters.read_text(), flags=re.MULTILINE)
    assert number == 1
    parameters.write_text(text)
