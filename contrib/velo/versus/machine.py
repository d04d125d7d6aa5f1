"""The machine in words."""

import os
import platform
import shutil

from ..process import environment, run_limited
from ..processors import cores

_ASK_SECONDS = 10


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


def line(machine):
    usable = machine["usable_cores"]
    of_all = "" if usable == machine["cpus"] else f" usable, {machine['cpus']} CPUs in all"
    ucx = f", UCX {machine['ucx']}" if machine["ucx"] else ""
    return f"{machine['cpu']}, {usable} cores{of_all}, {machine['kernel']}, {machine['system']}{ucx}"


def _cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            fields = dict(text.split(":", 1) for text in file.read().split("\n\n")[0].splitlines() if ":" in text)
    except OSError:
        return platform.machine()
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    if "model name" not in fields:
        return platform.machine()
    numbers = [f"{key} {fields[name]}" for key, name in (("family", "cpu family"), ("model", "model")) if name in fields]
    virtual = ", virtual" if "hypervisor" in fields.get("flags", "").split() else ""
    return f"{fields['model name']} ({' '.join(numbers)}{virtual})"


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
