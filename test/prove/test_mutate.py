"""contrib/dev/mutate: the table applies to the tree, and what the command makes of a tree that is no more than a script."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "contrib/dev/mutate"

from velo.dev.mutate import cli, workshop
from velo.dev.mutate.mutation import Mutation, choose
from velo.dev.mutate.mutation import Test as Check
from velo.dev.mutate.table import MUTATIONS

# Stands in for configure: a program is its source behind the words of GoogleTest.
CONFIGURE = r"""#!/bin/sh
mkdir -p test
printf 'test/program: ../engine.sh ../head.sh\n\tcat ../head.sh ../engine.sh >$@\n\tsh -n $@\n\tchmod +x $@\n\techo built >>../builds\n' >Makefile
"""
HEAD = "#!/bin/sh\ncase $1 in *=none) echo '[==========] 0 tests from 0 test suites ran.'; exit ;; esac\n"
ENGINE = "answer=42\nwait_for=0\nunused=1\n" \
         "sleep $wait_for\n[ $answer = 42 ] || { echo '[  FAILED  ] Sample.answers (0 ms)'; exit 1; }\n" \
         "echo '[==========] 1 test from 1 test suite ran.'\n"
TEST = Check("test/program", "Sample.answers", limit_s=2)


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    for name, text in (("configure", CONFIGURE), ("head.sh", HEAD), ("engine.sh", ENGINE)):
        (root / name).write_text(text)
    (root / "configure").chmod(0o755)
    return root


def mutation(old, new, test=TEST, **further):
    return Mutation(f"{old} to {new}", "engine.sh", old, new, test, **further)


def examine(tree, *mutations):
    scratch = tree.parent / "scratch"
    scratch.mkdir()
    return cli.examine(tree, list(mutations), 2, scratch, lambda *_: None)


def test_the_tests_see_some_and_not_others_and_one_that_hangs_is_seen(tree):
    outcomes = examine(tree, mutation("answer=42", "answer=41"), mutation("unused=1", "unused=2"), mutation("wait_for=0", "wait_for=60"),
                       mutation("answer=42", "answer='41"), mutation("answer=43", "answer=44"),
                       mutation("unused=1", "unused=3", test=None, equivalent="nobody reads it"))
    assert outcomes[:3] == [("caught", "Sample.answers"), ("SURVIVED", "program Sample.answers passes"), ("caught", "still running after 2 s")]
    assert [outcome for outcome, _ in outcomes[3:]] == ["DOES NOT BUILD", "DOES NOT APPLY", "equivalent"]
    assert outcomes[4][1] == "its old text is no times in engine.sh, not once"


def test_one_that_is_not_part_of_the_program_is_told(tree):
    (tree / "configure").write_text(CONFIGURE.replace("program: ../engine.sh ", "program: "))
    (tree / "configure").chmod(0o755)
    assert examine(tree, mutation("answer=42", "answer=41")) == [("DOES NOT BUILD", "make built test/program without it")]


def test_each_begins_with_what_the_one_before_has_left_as_it_was(tree):
    outcomes = examine(tree, *[mutation("unused=1", "unused=2"), mutation("answer=42", "answer=41")] * 4)
    assert [outcome for outcome, _ in outcomes] == ["SURVIVED", "caught"] * 4


def test_the_tree_itself_is_not_touched(tree):
    before = {path: path.read_bytes() for path in tree.iterdir()}
    examine(tree, mutation("answer=42", "answer=41"))
    assert {path: path.read_bytes() for path in tree.iterdir()} == before


def test_a_test_that_fails_anyway_and_one_that_does_not_exist_see_nothing(tree):
    with pytest.raises(workshop.WorkshopError, match="no test has this name"):
        examine(tree, mutation("answer=42", "answer=41", Check("test/program", "none")))
    (tree / "engine.sh").write_text(ENGINE.replace("42", "41", 1))
    (tree.parent / "scratch").rename(tree.parent / "first")
    with pytest.raises(workshop.WorkshopError, match="fails without a mutation: Sample.answers"):
        examine(tree, mutation("unused=1", "unused=2"))


@pytest.mark.parametrize("outcomes, status", [
    (["caught", "equivalent"], 0), (["caught", "SURVIVED"], 1), (["DOES NOT APPLY"], 1), (["caught", "DOES NOT BUILD"], 1), ([], 1)])
def test_the_exit_status_is_good_only_if_every_mutation_is_seen_or_equivalent(outcomes, status):
    assert cli.summary([(outcome, "") for outcome in outcomes], 7)[1] == status


def test_the_last_line_counts():
    text, _ = cli.summary([("caught", ""), ("caught", ""), ("equivalent", ""), ("DOES NOT APPLY", "")], 61.4)
    assert text == "mutate: 4 mutations in 61 s: 2 caught, 1 equivalent, 0 SURVIVED, 1 DOES NOT APPLY"


def test_every_mutation_applies_to_the_tree():
    assert [f"{mutation.name}: {objection}" for mutation in MUTATIONS if (objection := mutation.objection(ROOT))] == []
    assert len(MUTATIONS) >= 40
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_every_mutation_has_a_test_in_the_tree_or_a_reason():
    sources = "".join(path.read_text() for path in ROOT.glob("test/*/*.cc"))
    for each in MUTATIONS:
        assert bool(each.test) != bool(each.equivalent), each.name
        for name in each.test.filter.split(":") if each.test else ():
            words = [word for word in re.split(r"[./*]+", name) if word]
            assert words and words[0] in sources, f"{each.name}: {name}"


def test_mutations_are_chosen_by_parts_of_names_and_files():
    assert choose(MUTATIONS, []) == MUTATIONS
    assert {mutation.file for mutation in choose(MUTATIONS, ["rma/rma.cc"])} == {"mca_btl_velo/rma/rma.cc"}
    with pytest.raises(ValueError, match="no mutation has nonsense in its name or file"):
        choose(MUTATIONS, ["rma", "nonsense"])


def run(*words):
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)


def test_the_command_lists_and_refuses():
    assert os.access(COMMAND, os.X_OK)
    listed = run("--list", "--only", "rma/rma.cc").stdout
    assert "a reply that is longer by one byte is taken" in listed and "unit_tests RmaLies." in listed
    assert run("--only", "nonsense").returncode == 2
    assert run("--jobs", "0").returncode == 2
