"""What packages are made of: the version, recipes, and that they name one version and one licence."""

import ast
import hashlib
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGED = re.search(r"^packaged=(.*)$", (ROOT / "contrib/version").read_text(), re.MULTILINE)[1]


def git(tree, *words):
    subprocess.run(["git", "-C", tree, "-c", "user.name=n", "-c", "user.email=e@example.org", *words], check=True, capture_output=True)


def version(tree):
    return subprocess.run([tree / "contrib/version"], check=True, capture_output=True, text=True, cwd="/").stdout


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "contrib").mkdir()
    shutil.copy(ROOT / "contrib/version", tmp_path / "contrib")
    return tmp_path


def test_without_git_and_without_a_tag_the_version_is_the_one_that_is_written_down(tree):
    assert version(tree) == PACKAGED
    git(tree, "init")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "one")
    git(tree, "tag", "v-other")
    assert version(tree) == PACKAGED


def test_in_a_git_tree_the_version_is_that_of_the_last_tag_with_the_commits_since(tree):
    git(tree, "init")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "one")
    git(tree, "tag", "-a", "-m", "t", "v4.5.6")
    assert version(tree) == "4.5.6"
    git(tree, "commit", "--allow-empty", "-m", "two")
    git(tree, "commit", "--allow-empty", "-m", "three")
    assert version(tree) == "4.5.6+2"


def test_a_source_package_in_somebody_elses_git_tree_keeps_its_version(tree):
    git(tree, "init")
    git(tree, "commit", "--allow-empty", "-m", "one")
    git(tree, "tag", "v4.5.6")
    inner = tree / "third-party" / "velo"
    inner.mkdir(parents=True)
    shutil.move(tree / "contrib", inner)
    assert version(inner) == PACKAGED


def test_open_mpis_own_tree_gets_the_version_too(tmp_path):
    (tmp_path / "opal/mca/btl").mkdir(parents=True)
    for file, text in {"VERSION": "major=4\nminor=1\nrelease=4\n", "autogen.pl": "", "opal/mca/btl/btl.h": ""}.items():
        (tmp_path / file).write_text(text)
    subprocess.run([ROOT / "contrib/graft", tmp_path], check=True, capture_output=True)
    header = (tmp_path / "opal/mca/common/velo/velo_config.h").read_text()
    assert re.findall(r"^#define VELO_VERSION_\w+ (.*)$", header, re.MULTILINE) == version(ROOT).partition("+")[0].split(".")


def test_the_version_is_the_same_wherever_it_is_written():
    assert re.match(r"velo \((.*?)\)", (ROOT / "debian/changelog").read_text())[1] == PACKAGED
    assert re.search(r"^version: (.*)$", (ROOT / "docs/CITATION.cff").read_text(), re.MULTILINE)[1] == PACKAGED
    assert f"\n## {PACKAGED}\n" in (ROOT / "docs/CHANGELOG.md").read_text()


def test_the_licence_is_the_same_wherever_it_is_named():
    for file, pattern in {"LICENSE": r"SPDX-License-Identifier: (.*)", "docs/CITATION.cff": r"license: (.*)", "debian/copyright": r"Files: \*\n.*\nLicense: (.*)",
                          "libvelo-goal/velo-goal.pc.in": r"License: (.*)", "contrib/packages/spack.py": r'license\("(.*)"\)',
                          "contrib/packages/Containerfile": r"licenses=(\S*)", "contrib/packages/openmpi-velo.spec": r"License: *(.*)", "README.md": r"under \[(.*?)\]\(LICENSE\)"}.items():
        assert re.search(pattern, (ROOT / file).read_text())[1] == "BSD-3-Clause", file
    # The text of the licence, too.
    words = (ROOT / "LICENSE").read_text().split("Redistribution", 1)[1].split()
    assert " ".join(words) in " ".join(word for word in (ROOT / "debian/copyright").read_text().split() if word != ".")


def constants(recipe):
    """Strings that are assigned, and those that are the first argument of a call, in Python."""
    module = ast.parse(recipe)
    assigned = {node.targets[0].id: node.value for node in ast.walk(module) if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}
    calls = [(node.func.id, [word.value for word in node.args if isinstance(word, ast.Constant)], {key.arg: key.value for key in node.keywords})
             for node in ast.walk(module) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return assigned, calls


@pytest.mark.parametrize("url", [None, "https://example.org/releases/velo-7.8.9.tar.gz"], ids=["as it lies", "to be downloaded"])
def test_recipes_are_python_that_names_the_source_package_and_its_sum(tmp_path, url):
    tarball = tmp_path / "velo-7.8.9.tar.gz"
    tarball.write_bytes(b"a source package")
    total = hashlib.sha256(b"a source package").hexdigest()
    subprocess.run([ROOT / "contrib/packages/recipes", tarball, tmp_path / "out", *([url] if url else [])], check=True, capture_output=True)
    assert (tmp_path / "out" / tarball.name).read_bytes() == tarball.read_bytes()

    _, calls = constants((tmp_path / "out/spack_repo/velo/packages/velo/package.py").read_text())
    assert [(words, ast.literal_eval(keys["sha256"])) for name, words, keys in calls if name == "version"] == [(["7.8.9"], total)]
    text = (tmp_path / "out/spack_repo/velo/packages/velo/package.py").read_text()
    assert f'url = "{url or f"file://{tarball}"}"' in text and "@" + "VERSION" not in text

    spec = (tmp_path / "out/openmpi-velo.spec").read_text()
    assert re.search(r"^Version: *7\.8\.9$", spec, re.MULTILINE) and "@" not in spec.replace("%{", "")
    assert "Source0:        velo-%{version}.tar.gz" in spec

    assigned, _ = constants((tmp_path / "out/Velo-7.8.9-gompi-2025b.eb").read_text())
    assert ast.literal_eval(assigned["version"]) == "7.8.9"
    assert total in ast.unparse(assigned["checksums"])
    assert ast.literal_eval(assigned["source_urls"].elts[0]) == (url or f"file://{tarball}").rpartition("/")[0]


def test_recipes_say_what_is_missing(tmp_path):
    refused = subprocess.run([ROOT / "contrib/packages/recipes", tmp_path / "none.tar.gz", tmp_path], capture_output=True, text=True)
    assert refused.returncode == 2 and "make dist" in refused.stderr


def test_packages_are_built_for_series_that_there_are():
    refused = subprocess.run([ROOT / "contrib/dev/package", "3.9"], capture_output=True, text=True)
    assert refused.returncode == 2 and "3.9 is neither" in refused.stderr


def test_the_container_installs_packages_that_debian_control_makes():
    made = re.findall(r"^Package: (.*)$", (ROOT / "debian/control").read_text(), re.MULTILINE)
    installed = re.findall(r"/packages/([a-z0-9-]+)_", (ROOT / "contrib/packages/Containerfile").read_text())
    assert installed and set(installed) <= set(made)
