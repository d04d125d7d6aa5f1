"""A mount namespace with an empty /dev/shm, watched from outside."""

import os
import subprocess

import pytest

HOLD = 'mount -t tmpfs -o size="$1" tmpfs /dev/shm && echo mounted && exec sleep 3600'


class PrivateShm:
    def __init__(self, holder, enter):
        self._holder = holder
        self.enter = enter  # words before a command that is to run in there
        self.path = f"/proc/{holder.pid}/root/dev/shm"

    @classmethod
    def open(cls, size):
        for namespaces in (["-m"], ["-m", "-U", "-r"]):
            holder = subprocess.Popen(["unshare", *namespaces, "sh", "-c", HOLD, "sh", size], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if holder.stdout.readline().strip() == "mounted":
                user = ["-U", "--preserve-credentials"] if "-U" in namespaces else []
                # With the holder's root: in a chroot, the mount namespace alone would lead out of it.
                return cls(holder, ["nsenter", "-t", str(holder.pid), *user, "-m", "-r", f"-w{os.getcwd()}"])
            holder.kill()
            holder.wait()
        pytest.skip("no mount namespace permitted here (unshare -m, unshare -mUr)")

    def names(self):
        return sorted(os.listdir(self.path))

    def bytes_used(self):
        """Counts files without a name, too."""
        status = os.statvfs(self.path)
        return (status.f_blocks - status.f_bfree) * status.f_frsize

    def close(self):
        self._holder.kill()
        self._holder.wait()
