"""docs/messages.md has a row for each error and warning of the plugin, and none that nobody says."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = [ROOT / "mca_btl_velo", *ROOT.glob("o*/mca/*/velo")]
# Words that are for programmers, or for whoever asks for a report, a variable or a file of schedules to be read (docs/goal.md).
ELSEWHERE = re.compile(r"/(report|threads/opal)/|_pvars\.c$|/goal/(text|binary|check|program)\.cc$|/wire/packet\.cc$")
# Functions whose text is no message by itself: what a checked build found, what verbose 5 tells of a state.
STATES = re.compile(r"(?<!on_)violation|describe$|describe_locality|process_array|dump|log_state|log_boards|help|component_register|mca_common_velo_register$")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?P<text>(?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\]|\\.)*\'|\d[\w.\']*|\w+|[^\s\w]', re.DOTALL)
# As clang-format lays out: the name of a function follows its type at the beginning of a line, in a class after four spaces.
TYPE = r"(?:[\w:<>,&\[\]]+[ *]+)"
FUNCTION = re.compile(rf"^(?P<indent>    )?(?:(?(indent){TYPE}+(?=[^\n]*{{$)|{TYPE}*)[*&]*(?P<name>(?:\w+::)*~?\w+)\(|}})", re.MULTILINE)
PRINTED = re.compile(r'%[-0-9.*]*(?:l|ll|z)?[a-z]?|\\n|\\"|"')
WORDS = re.compile(r"[A-Za-z][a-z']* +[a-z]{2,}")


def literals(text):
    """The strings in a source in C or C++, those side by side as one, with the function around each."""
    text = re.sub(r"^[ \t]*#[ \t]*(?:include|error)\b[^\n]*|\b(?:static_assert|_Static_assert|asm volatile)\([^;]*;", "", text, flags=re.MULTILINE)
    functions = [(0, "", None)]
    for found in FUNCTION.finditer(text):
        # A block may end where a function of a class would.
        if found["name"] or found["indent"] == functions[-1][2]:
            functions.append((found.start(), found["name"] or "", found["indent"]))
    pieces, begin = [], 0
    for token in TOKEN.finditer(text):
        if token["text"] is not None:
            begin = begin if pieces else token.start()
            pieces.append(token["text"])
        elif pieces and not token[0].startswith(("//", "/*")):
            yield next(name for at, name, _ in reversed(functions) if at <= begin), "".join(pieces)
            pieces = []


def fragments(text):
    """What of a string is the same in every run, where it has words."""
    return [" ".join(part.split()) for part in PRINTED.split(text) if WORDS.search(part)]


def spoken(sources):
    """Fragments of messages, and where they stand."""
    return {part: f"{path}: {function}" for path, text in sources for function, literal in literals(text) if not STATES.search(function)
            for part in fragments(literal)}


def sources():
    return [(str(path), path.read_text()) for place in PLUGIN for path in sorted(place.rglob("*.*"))
            if path.suffix in (".c", ".cc", ".h") and not ELSEWHERE.search(str(path))]


def rows():
    return re.findall(r"^\| (`.*) \| (.*) \| (.*)\|$", (ROOT / "docs/messages.md").read_text(), re.MULTILINE)


def told():
    """The page's messages, and what else it quotes in their rows."""
    return [" ".join(quoted.split()) for row in rows() for quoted in re.findall(r"`((?!--)[^`]+)`", " ".join(row[:2]))]


def missing(said):
    page = " ".join(re.sub(r'"', "", message) for message in told())
    return [f"{where}: {part}" for part, where in said.items() if part.strip() not in page]


def test_each_message_of_the_sources_has_a_row():
    assert missing(spoken(sources())) == []


def made_up(said):
    """What of the page's messages nobody says."""
    for message in told():
        rest = re.sub('"|<[^>]*>', "\n", message)
        for part in sorted(said, key=len, reverse=True):
            rest = rest.replace(part, "\n")
        yield from (part for part in re.split(r"\n|\[| / |\]", rest) if WORDS.search(part))


def test_each_row_is_a_message_of_the_sources_with_a_cause():
    assert list(made_up(spoken(sources()))) == []
    assert all(cause.strip() for _, cause, _ in rows())


def test_a_row_of_a_message_that_is_gone_is_found():
    said = spoken(sources())
    del said[". Check ulimit -v."], said["is lost:"]
    assert len(list(made_up(said))) >= 2


@pytest.mark.parametrize("text", [
    'void f() {\n    throw Failure(VELO_ERR_RESOURCE, "the moon is " + phase + " of late");\n}\n',
    'static void f(void)\n{\n    mca_common_velo_give_up("the moon is "  // full\n                            "of late");\n}\n',
    'constexpr const char* kWhy = "the moon is of late";\n'], ids=["C++", "C, in two lines", "a constant"])
def test_a_message_that_is_added_without_a_row_is_found(text):
    assert any("the moon is" in line for line in missing(spoken([*sources(), ("new.cc", text)])))
