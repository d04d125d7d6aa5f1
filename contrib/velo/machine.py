"""The machine in words."""

import os
import platform
import re
import shutil
from pathlib import Path

from .process import attempt, environment, run_limited
from .processors import cores

_ASK_SECONDS = 10
# The runs of an idle machine lie a few percent apart.
_BUSY_PERCENT = 25
_BUSY_LOAD = 0.5


def describe():
    return {
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "usable_cores": cores(),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _system(),
        "ucx": _ucx_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def text(machine):
    """What stands above all that was measured on it."""
    return "\n".join(filter(None, [line(machine), load_text(machine)]))


def load_text(machine):
    """Empty where nothing else ran."""
    return f"The machine was not idle (load {machine['load']}): measured under load." if machine["load"] > _BUSY_LOAD else ""


def noise_text(percent):
    """What follows from how far the runs of a point lie apart; empty where times can be compared."""
    return "That is too much for ratios to mean anything: repeat the series on an idle machine." if percent > _BUSY_PERCENT else ""


def line(machine):
    usable = machine["usable_cores"]
    of_all = "" if usable == machine["cpus"] else f" usable, {machine['cpus']} CPUs in all"
    ucx = f", UCX {machine['ucx']}" if machine["ucx"] else ""
    return f"{machine['cpu']}, {usable} cores{of_all}, {machine['kernel']}, {machine['system']}{ucx}"


def commit():
    """Of the tree that this program is run from; None: it is installed."""
    git = ["git", "-C", str(Path(__file__).resolve().parent), "describe", "--always", "--dirty", "--abbrev=10"]
    finished, failure = attempt(git, _ASK_SECONDS)
    return None if failure else finished.stdout.strip()


def _cpu_model():
    finished, failure = attempt(["env", "LC_ALL=C", "lscpu"], _ASK_SECONDS)
    fields = dict(re.findall(r"^ *([^:]+): +(.*)$", finished.stdout, re.MULTILINE))
    if failure or "Model name" not in fields:
        return platform.machine()
    numbers = [f"{key} {fields[name]}" for key, name in (("family", "CPU family"), ("model", "Model")) if name in fields]
    numbers += ["virtual"] if "Hypervisor vendor" in fields else []
    return f"{fields['Model name']} ({', '.join(numbers)})"


def _system():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown system")
    except OSError:
        return "unknown system"


def _ucx_version():
    if not (ucx_info := shutil.which("ucx_info")):
        return None
    words = run_limited([ucx_info, "-v"], environment(), _ASK_SECONDS).stdout.split()
    return words[words.index("Version") + 1] if "Version" in words[:-1] else None
