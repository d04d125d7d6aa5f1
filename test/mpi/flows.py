"""The flow control settings that the tests go through.

With another transport than velo there is one setting without parameters, so that every test can be tried on a
transport that is known to work.
"""

import dataclasses
import os

import pytest

TRANSPORT = os.environ.get("VELO_TEST_BTL", "velo")
POLICIES = ("none", "static", "dynamic")


@dataclasses.dataclass(frozen=True)
class Flow:
    policy: str
    slots: int
    extra: tuple = ()

    @property
    def params(self):
        if TRANSPORT != "velo":
            return {}
        return {"btl_velo_flow_control": self.policy, "btl_velo_slots_per_peer": self.slots, **dict(self.extra)}

    def __str__(self):
        words = [self.policy, str(self.slots), *(f"{key.removeprefix('btl_velo_')}_{value}" for key, value in self.extra)]
        return "-".join(words)


def flows(*slots, policies=POLICIES):
    """A decorator that runs a test under each policy with each mailbox size (slots per peer)."""
    values = [Flow(policy, count) for count in slots for policy in policies]
    if TRANSPORT != "velo":
        values = values[:1]
    return pytest.mark.parametrize("flow", values, ids=str)


velo_only = pytest.mark.skipif(TRANSPORT != "velo", reason="about btl/velo itself")
