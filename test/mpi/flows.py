"""The flow control settings that the tests go through.

With another transport than velo there is one setting without parameters, so that every test can be tried on a
transport that is known to work.
"""

import dataclasses
import os
import re
import shutil
import subprocess

import pytest

TRANSPORT = os.environ.get("VELO_TEST_BTL", "velo")
# "mtl": messages go through pml cm and the MTL, and the BTL serves one-sided communication beside it.
LAYER = os.environ.get("VELO_TEST_LAYER", "btl")
OMPI_INFO = os.environ.get("OMPI_INFO", "ompi_info.openmpi" if shutil.which("ompi_info.openmpi") else "ompi_info")
# Sized by slots_per_peer alone: these go through every size that a test names, the others through its smallest.
SLOT_POLICIES = ("none", "static", "dynamic")


def offered_policies():
    """The policies that the plugin under test offers, whatever they are."""
    if TRANSPORT != "velo":
        return SLOT_POLICIES
    environment = dict(os.environ)
    if environment.get("VELO_COMPONENT_DIR"):
        paths = subprocess.run([OMPI_INFO, "--path", "pkglibdir", "--parsable"], capture_output=True, text=True, check=True)
        directory = os.path.abspath(environment["VELO_COMPONENT_DIR"])
        environment["OMPI_MCA_mca_base_component_path"] = f"{directory}:{paths.stdout.strip().rpartition(':')[2]}"
    text = subprocess.run([OMPI_INFO, "--param", "btl", "velo", "-l", "9", "--parsable"], capture_output=True, text=True,
                          env=environment, check=True).stdout
    return tuple(re.findall(r"^mca:btl:velo:param:btl_velo_flow_control:enumerator:value:\d+:(\w+)", text, re.MULTILINE))


POLICIES = offered_policies()


def own_parameters(policy, slots):
    """What makes a mailbox of a policy as tight as one of `slots` slots for each peer."""
    return {
        "rnr": {"btl_velo_preposted_buffers": slots},
        "mvapich_static": {"btl_velo_preposted_buffers": slots},
        "mvapich_dynamic": {"btl_velo_initial_buffers": min(4, max(slots - 2, 1))},
        "lazy": {"btl_velo_lazy_slots": 2 * slots, "btl_velo_lazy_peers": 2},
    }.get(policy, {})


@dataclasses.dataclass(frozen=True)
class Flow:
    policy: str
    slots: int
    extra: tuple = ()

    @property
    def params(self):
        if TRANSPORT != "velo":
            return {}
        return {"btl_velo_flow_control": self.policy, "btl_velo_slots_per_peer": self.slots,
                **own_parameters(self.policy, self.slots), **dict(self.extra)}

    def __str__(self):
        words = [self.policy, str(self.slots), *(f"{key.removeprefix('btl_velo_')}_{value}" for key, value in self.extra)]
        return "-".join(words)


# What stands for all policies and mailbox sizes in the tests whose subject is neither.
USUAL_POLICY, USUAL_SLOTS = "dynamic", 8


def is_usual(flow, values):
    """Whether the flow stands for the others of a test. One that leaves the usual policy out is about each that it names."""
    sizes = [other.slots for other in values if other.policy == flow.policy]
    return (flow.policy == USUAL_POLICY or all(other.policy != USUAL_POLICY for other in values)) and \
        flow.slots == (USUAL_SLOTS if USUAL_SLOTS in sizes else sizes[0])


IN_PACKETS = (("btl_velo_by_reference", "never"),)


def flows(*slots, in_packets=(), policies=SLOT_POLICIES, always=False):
    """A decorator that runs a test under each policy with each mailbox size (slots per peer); with those of `in_packets` nothing
    goes by reference, so that long messages wait for their credits. Those for which another stands are marked as part of the matrix;
    `always`: not those of `in_packets`."""
    values = [Flow(policy, count, extra) for sizes, extra in ((slots, ()), (in_packets, IN_PACKETS)) for count in sizes
              for policy in policies if policy in SLOT_POLICIES or count == min(sizes)]
    if LAYER == "mtl":
        # The flow control is the same; what differs is above it.
        values = [flow for flow in values if flow.policy == "dynamic" or flow.slots == min(slots + in_packets)]
    if TRANSPORT != "velo":
        values = values[:1]
    return pytest.mark.parametrize("flow", [
        pytest.param(flow, id=str(flow), marks=[] if (always and flow.extra) or is_usual(flow, values) else pytest.mark.matrix)
        for flow in values])


def every_flow(*slots, **how):
    """The same under every policy that the plugin offers: for what any policy might break."""
    return flows(*slots, policies=POLICIES, **how)


velo_only = pytest.mark.skipif(TRANSPORT != "velo" or LAYER != "btl", reason="about btl/velo itself")
# What any BTL must pass, and has nothing to do with what carries the messages: windows, ob1.
of_the_btl = pytest.mark.skipif(LAYER != "btl", reason="nothing of the MTL is in it")
mtl_only = pytest.mark.skipif(TRANSPORT != "velo" or LAYER != "mtl", reason="about mtl/velo itself")
any_velo = pytest.mark.skipif(TRANSPORT != "velo", reason="about velo itself")
