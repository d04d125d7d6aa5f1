"""What of the machine's processors there is to use."""

import functools
import os
from pathlib import Path


@functools.lru_cache
def cores():
    """Cores that may be used; the threads of a core are one."""
    return len({_threads_of_core(cpu) for cpu in os.sched_getaffinity(0)})


def _threads_of_core(cpu):
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return str(cpu)
