"""How short the way of a message of 8 bytes is inside the plugin as it was built: counted instruction by instruction."""

import os
import pathlib
import platform
import re

import pytest

from flows import LAYER, TRANSPORT



def as_by_default():
    """Optimized, and without the assertions of the checked plugin."""
    build = os.environ.get("VELO_BUILD_DIR")
    if not build:
        return False
    makefile = pathlib.Path(build, "Makefile").read_text()
    settings = dict(re.findall(r"^(VELO_LTO|VELO_CHECKED_CPPFLAGS|CXXFLAGS) = ?(.*)$", makefile, re.MULTILINE))
    return settings == {"VELO_LTO": "-flto=auto", "VELO_CHECKED_CPPFLAGS": "", "CXXFLAGS": "-g -O2"}


pytestmark = [
    pytest.mark.skipif(TRANSPORT != "velo", reason="about velo itself"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 instructions are told apart"),
    pytest.mark.skipif(not as_by_default(), reason="VELO_BUILD_DIR does not name a build with configure's own settings"),
]

# `calls` are from one function of the plugin to another, `leaves` calls of the upper layer. Not per packet: one call that looks
# at the mailbox, and over the MTL the posting of the receive.
MOST = {
    "btl": {"send_entries": 1, "send_calls": 2, "send_leaves": 0, "send_branches": 22, "send_locked": 1, "send_instructions": 240,
            "receive_entries": 1, "receive_calls": 3, "receive_leaves": 1, "receive_branches": 46, "receive_locked": 0,
            "receive_instructions": 330},
    "mtl": {"send_entries": 1, "send_calls": 2, "send_leaves": 0, "send_branches": 33, "send_locked": 1, "send_instructions": 330,
            "receive_entries": 2, "receive_calls": 7, "receive_leaves": 1, "receive_branches": 77, "receive_locked": 0,
            "receive_instructions": 670},
}


def test_an_8_byte_message_executes_no_more_than_it_should(mpi):
    result = mpi.run_any("path", 8, np=2, params={"btl_velo_flow_control": "dynamic"})
    if "tracing is not permitted" in result.stderr:
        pytest.skip("tracing of processes is not permitted here")
    assert result.returncode == 0, str(result)
    counted = result.facts()
    assert counted["send_instructions"] > 50 and counted["receive_instructions"] > 50  # it did see the plugin
    assert {name: counted[name] for name in MOST[LAYER] if counted[name] > MOST[LAYER][name]} == {}
