"""How short the way of a small message is inside the plugin as it was built: counted instruction by instruction."""

import os
import pathlib
import platform
import re
import shutil
import subprocess

import pytest

from flows import LAYER, TRANSPORT


def as_by_default():
    """Optimized, and without the assertions of the checked plugin."""
    build = os.environ.get("VELO_BUILD_DIR")
    if not build:
        return False
    makefile = pathlib.Path(build, "Makefile").read_text()
    settings = dict(re.findall(r"^(VELO_LTO|VELO_CHECKED_CPPFLAGS|CXXFLAGS) = ?(.*)$", makefile, re.MULTILINE))
    return settings == {"VELO_LTO": "-flto=auto", "VELO_CHECKED_CPPFLAGS": "", "CXXFLAGS": "-g1 -O2"}


pytestmark = [
    pytest.mark.skipif(TRANSPORT != "velo", reason="about velo itself"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 instructions are told apart"),
    pytest.mark.skipif(not as_by_default(), reason="VELO_BUILD_DIR does not name a build with configure's own settings"),
]

# `calls` are from one function of the plugin to another, `leaves` calls of the upper layer. Not per packet: one call that looks
# at the mailbox, and over the MTL the posting of the receive.
MOST = {
    "btl": {"send_entries": 1, "send_calls": 0, "send_leaves": 0, "send_branches": 15, "send_locked": 1, "send_instructions": 140,
            "receive_entries": 1, "receive_calls": 1, "receive_leaves": 1, "receive_branches": 29, "receive_locked": 0,
            "receive_instructions": 195},
    "mtl": {"send_entries": 1, "send_calls": 1, "send_leaves": 0, "send_branches": 22, "send_locked": 1, "send_instructions": 190,
            "receive_entries": 2, "receive_calls": 3, "receive_leaves": 1, "receive_branches": 57, "receive_locked": 0,
            "receive_instructions": 440},
}
# From Open MPI 5.0 on a communicator has one of two numbers, which the MTL chooses from; and Debian has newer compilers: gcc 16
# keeps a part of the MTL's send as a function of its own.
MOST_LATER = {"btl": {"receive_branches": 30},
              "mtl": {"send_calls": 2, "send_branches": 26, "send_instructions": 220, "receive_branches": 58}}
# The same of a message that is one run of several packets, without what the library's copy takes. Its sender has waited: the
# lines are given to the receiver's cache after it (of one in a stream, which goes without that, 11 and 26 fewer).
MOST_OF_RUN = {
    "btl": {64: {"send_instructions": 285, "receive_instructions": 245}, 256: {"send_instructions": 359, "receive_instructions": 285}},
    "mtl": {64: {"send_instructions": 313, "receive_instructions": 502}, 256: {"send_instructions": 389, "receive_instructions": 525}},
}
# gcc 14 keeps more of it apart.
MOST_OF_RUN_LATER = {
    "btl": {64: {"send_instructions": 290, "receive_instructions": 250}, 256: {"send_instructions": 364}},
    "mtl": {64: {"send_instructions": 330}, 256: {"send_instructions": 405}},
}


def counts(mpi, size):
    result = mpi.run_any("path", 8, size, np=2, params={"btl_velo_flow_control": "dynamic"})
    if "tracing is not permitted" in result.stderr:
        pytest.skip("tracing of processes is not permitted here")
    assert result.returncode == 0, str(result)
    counted = result.facts()
    assert counted["send_instructions"] > 50 and counted["receive_instructions"] > 50  # it did see the plugin
    return counted


def too_many(counted, most):
    return {name: counted[name] for name in most if counted[name] > most[name]}


def test_an_8_byte_message_executes_no_more_than_it_should(mpi, is_4_1):
    later = {} if is_4_1 else MOST_LATER[LAYER]
    assert too_many(counts(mpi, 8), MOST[LAYER] | later) == {}


@pytest.mark.parametrize("size", [64, 256])
def test_a_message_of_one_run_executes_little_more(mpi, is_4_1, size):
    later = {} if is_4_1 else MOST_OF_RUN_LATER[LAYER][size]
    assert too_many(counts(mpi, size), MOST_OF_RUN[LAYER][size] | later) == {}


def listing_of(plugin):
    return subprocess.run(["objdump", "-dC", "--no-show-raw-insn", plugin], capture_output=True, text=True, check=True).stdout


def instructions_by_function(plugin):
    """The hints to the cache that are in the object, and the clearing of memory, by the function that they are in."""
    found, function = {}, None
    for line in listing_of(plugin).splitlines():
        begins = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        function = begins[1] if begins else function
        hint = re.search(r"\t(prefetcht0|prefetchw|cldemote|rep stos)\b", line)
        if hint:
            found.setdefault(hint[1], []).append(function)
    return found


def ends_with_vectors_in_use(function):
    """Where a function returns, calls or jumps to another while the upper halves of 32-byte registers may be in use."""
    code = re.findall(r"^ *([0-9a-f]+):\t(?:(?:notrack|lock|bnd) )*(\S+) *(.*)$", function, re.MULTILINE)
    places = {address: index for index, (address, _, _) in enumerate(code)}
    ends, seen, ahead = set(), set(), [(0, False)]
    while ahead:
        index, used = ahead.pop()
        if index == len(code) or (index, used) in seen:
            continue
        seen.add((index, used))
        address, name, operands = code[index]
        used = name != "vzeroupper" and (used or "%ymm" in operands)
        jumps = name.startswith("j")
        target = places.get(operands.split(" ")[0]) if jumps else None
        if used and (name in ("ret", "call") or (jumps and target is None)):
            ends.add(f"{address}: {name} {operands}")
        if target is not None:
            ahead.append((target, used))
        if name not in ("ret", "jmp"):
            ahead.append((index + 1, used))
    return ends


@pytest.fixture(scope="session")
def plugin(component_path, ompi_info):
    """The plugin under test, or the one that is installed."""
    directories = component_path or ompi_info("--path", "pkglibdir", "--parsable").stdout.strip().rpartition(":")[2]
    return pathlib.Path(directories.split(":")[0], "mca_btl_velo.so")


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not here")
@pytest.mark.skipif(LAYER != "btl", reason="the same object")
def test_the_hints_to_the_cache_are_in_the_object(plugin):
    """A compiler drops hints that it takes for calls without an effect, and nothing but speed shows it."""
    found = instructions_by_function(plugin)
    fetches = [name for name in found["prefetcht0"] if "Engine::progress" in name]
    assert len(fetches) >= 3, found  # the lines of a run, the header behind it, the second line that is waited for
    # A packet's, a run's or a train's lines, those of an answer; what is waited for.
    assert len(found["prefetchw"]) >= 4 and len(found["cldemote"]) >= 3, found


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not here")
@pytest.mark.skipif(LAYER != "btl", reason="the same object")
def test_no_function_leaves_vectors_in_use(plugin):
    """Each 16-byte load behind it would wait for the last one of its register: twice the time of 128 to 1024 bytes, once."""
    functions = [text for text in listing_of(plugin).split("\n\n") if "%ymm" in text]
    assert any("copy_lines_by_vectors" in text for text in functions), len(functions)
    assert {text.partition("\n")[0]: sorted(ends) for text in functions if (ends := ends_with_vectors_in_use(text))} == {}


WAY = ("mca_btl_velo_sendi", "message_arrived", "mca_mtl_velo_send", "mca_mtl_velo_irecv", "receive_done", "Engine::progress", "Messenger::arrived")


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not here")
@pytest.mark.skipif(LAYER != "btl", reason="the same object")
def test_no_message_clears_memory(plugin):
    clears = instructions_by_function(plugin).get("rep stos", [])
    assert clears  # elsewhere there are some: the listing shows them
    assert [name for name in clears if any(part in name for part in WAY)] == []
