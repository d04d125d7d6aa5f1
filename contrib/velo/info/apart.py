"""What is tried in a process of its own: libraries that crash or print, and questions to the kernel about two processes."""

import ctypes
import json
import os
import signal
import time
from pathlib import Path

_SECONDS = 20
_POLL_SECONDS = 0.005


class Refused(Exception):
    """The text says why something does not work here; `remedy` what helps, where that depends on it."""

    def __init__(self, text, remedy=None):
        super().__init__(text)
        self.remedy = remedy


def apart(question):
    """What `question` answers, in JSON's types, in a child. Raises Refused as it does, and where the child ends without an answer."""
    incoming, outgoing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(question, outgoing)
    os.close(outgoing)
    with open(incoming, "rb") as answers:
        status = _status_of(child)
        answer = answers.read()
    if status is None:
        raise Refused(f"no answer within {_SECONDS} s")
    if os.WIFSIGNALED(status):
        raise Refused(f"trying it ended with {signal.Signals(os.WTERMSIG(status)).name}")
    answer = json.loads(answer)
    if "refused" in answer:
        raise Refused(answer["refused"])
    return answer["told"]


def _status_of(child):
    """None: it has not ended in time, and is killed. What it answers fits into a pipe."""
    deadline = time.monotonic() + _SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(_POLL_SECONDS)


def _answer(question, outgoing):
    """Never returns."""
    try:
        # What libraries have to say is for nobody.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        answer = {"told": question()}
    except (Refused, OSError) as refusal:
        answer = {"refused": str(refusal)}
    except BaseException as error:  # pylint: disable=broad-exception-caught
        answer = {"refused": repr(error)}
    os.write(outgoing, json.dumps(answer).encode())
    os._exit(0)


def read_memory_of_another():
    """Lets one child of this process read the memory of another, as two ranks of a node are to each other. Raises OSError."""
    cookie = ctypes.create_string_buffer(os.urandom(16), 16)
    held, hold = os.pipe()
    holder = os.fork()
    if holder == 0:
        os.close(hold)
        os.read(held, 1)
        os._exit(0)
    try:
        apart(lambda: _read(holder, cookie))
    finally:
        os.close(hold)
        os.close(held)
        os.waitpid(holder, 0)


class _IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def _read(process, cookie):
    libc = ctypes.CDLL(None, use_errno=True)
    expected = cookie.raw
    taken = ctypes.create_string_buffer(len(expected))
    here, there = _IoVec(ctypes.addressof(taken), len(expected)), _IoVec(ctypes.addressof(cookie), len(expected))
    read = libc.process_vm_readv
    read.restype = ctypes.c_ssize_t
    read.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    if read(process, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) < 0:
        raise Refused(os.strerror(ctypes.get_errno()))
    if taken.raw != expected:
        raise Refused("it read something else than what is there")


def first_line(path):
    """None where there is no such file, or where it may not be read."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return None
