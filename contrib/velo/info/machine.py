"""What of this machine Velo can use: everything is tried, nothing is concluded from versions or settings."""

import ctypes
import errno
import fcntl
import mmap
import os
import re
import socket
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ..processors import cores
from .apart import Refused, apart, first_line, read_memory_of_another

# A process's mailbox among up to 16 on a node, as docs/parameters.md has it; the outbox comes to that.
MAILBOX_BYTES = 516 << 10
_XPMEM_PERMIT_MODE = 1
_MULTICAST_GROUP = "239.64.0.1"
_MULTICAST_SECONDS = 1.0
_SIOCGIFFLAGS, _SIOCGIFADDR = 0x8913, 0x8915
_IFF_UP, _IFF_LOOPBACK, _IFF_MULTICAST = 0x1, 0x8, 0x1000


@dataclass
class Mechanism:
    name: str
    works: bool
    detail: str  # what was found, or why it does not work
    remedy: str = None  # where it does not work


def mechanisms(installed):
    """Those of `installed` on this machine."""
    tried = []
    for name, question, remedy in (
            ("shared memory", lambda: _shared_memory(installed), None),
            ("CMA", _cma, None),
            ("XPMEM", lambda: _xpmem(installed), "not needed; with the kernel module: configure --with-xpmem=DIR, and let the user open /dev/xpmem"),
            ("UCX", lambda: _ucx(installed), "processes on other nodes: --mca btl_velo_network none --mca btl velo,tcp"),
            ("hwloc", lambda: _hwloc(installed), "not needed on one NUMA node; apt-get install libhwloc-dev, and configure again"),
            ("IP multicast", _multicast, "broadcasts between nodes do not use it"),
            ("library copy", _library_copy, f"with any transport: mpirun -x GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold={1 << 30} ...")):
        try:
            tried.append(Mechanism(name, True, question()))
        except (Refused, OSError) as refusal:
            tried.append(Mechanism(name, False, str(refusal), getattr(refusal, "remedy", None) or remedy))
    return tried


_MAKE_ROOM = {errno.ENOENT: "mount a tmpfs there", errno.EROFS: "mount it writable", errno.EACCES: "let this user write there",
              errno.EPERM: "let this user write there", errno.ENOSPC: "enlarge it", errno.EDQUOT: "raise the quota"}
_OTHER_DIRECTORY = "name a directory of another tmpfs: --mca btl_velo_backing_directory DIR"


def _shared_memory(installed):
    if not os.path.exists("/proc/self/fd"):
        raise Refused("there is no /proc, through which processes find each other's memory", "mount it: mount -t proc proc /proc")
    directory = installed.parameters.get("backing_directory") or "/dev/shm"
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            os.posix_fallocate(file.fileno(), 0, 1)
    except OSError as error:
        first = _MAKE_ROOM.get(error.errno)
        raise Refused(f"{directory}: {error.strerror}", f"{first}, or {_OTHER_DIRECTORY}" if first else _OTHER_DIRECTORY) from None
    room = os.statvfs(directory)
    free, size = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
    each = MAILBOX_BYTES + int(installed.parameters.get("outbox") or 0)
    ranks = cores()
    with_coll = f", with coll velo {_size(2 * each)} and its boards" if "coll" in installed.components else ""
    text = f"{directory}: {_size(free)} free of {_size(size)}; a process takes {_size(each)}{with_coll}"
    if free < ranks * each:
        raise Refused(f"{text}: too little for {ranks} processes", f"enlarge it, or {_OTHER_DIRECTORY}")
    if with_coll and free < ranks * 2 * each:
        raise Refused(f"{text}: too little for {ranks} processes with coll velo", f"leave coll velo out, enlarge it, or {_OTHER_DIRECTORY}")
    return text


def _cma():
    try:
        read_memory_of_another()
    except (Refused, OSError) as refusal:
        scope, filtered = first_line("/proc/sys/kernel/yama/ptrace_scope"), _is_filtered()
        found = (f"kernel.yama.ptrace_scope is {scope}" if scope else "no kernel.yama.ptrace_scope",
                 "a seccomp filter is in force" if filtered else "no seccomp filter")
        remedy = "large messages are copied through the mailbox; containers: --cap-add SYS_PTRACE"
        if scope and scope != "0":
            remedy += ", or sysctl kernel.yama.ptrace_scope=0"
        raise Refused(f"process_vm_readv: {refusal} ({', '.join(found)})", remedy) from refusal
    return "one process reads another's memory"


def _is_filtered():
    try:
        return re.search(r"^Seccomp:\t[^0]", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE) is not None
    except OSError:
        return False


def _library(installed, name, feature):
    if not (library := installed.library(name)):
        raise Refused(f"this Velo was built without {feature}" if installed.libraries else "no plugin that could use it")
    return installed.libraries[library] or library


def _xpmem(installed):
    library = _library(installed, "xpmem", "XPMEM")

    def share():
        xpmem = ctypes.CDLL(library, use_errno=True)
        xpmem.xpmem_make.restype = ctypes.c_longlong
        xpmem.xpmem_make.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        if xpmem.xpmem_make(None, ctypes.c_size_t(-1).value, _XPMEM_PERMIT_MODE, 0o600) < 0:
            raise Refused(f"xpmem_make: {os.strerror(ctypes.get_errno())}; is the kernel module xpmem loaded?")

    apart(share)
    return "a process can make its memory attachable"


class _UcpParams(ctypes.Structure):
    """UCX's ucp_params_t, whose field_mask says that no other field counts; room for those of later versions."""

    _fields_ = [("field_mask", ctypes.c_uint64), ("features", ctypes.c_uint64), ("others", ctypes.c_uint64 * 30)]


_UCP_PARAM_FIELD_FEATURES, _UCP_FEATURE_AM = 1, 64
_WITHIN_A_NODE = {"self", "sysv", "posix", "cma", "xpmem", "knem"}


def _ucx(installed):
    library = _library(installed, "ucp", "UCX")
    version, found = apart(lambda: _open_ucx(library))
    networks = sorted({resource for resource in found if resource.split("/")[0] not in _WITHIN_A_NODE and not resource.endswith("/lo")})
    if not networks:
        raise Refused(f"UCX {version} finds no network (UCX_TLS and UCX_NET_DEVICES choose among them)")
    return f"{version}: {', '.join(networks)}"


def _open_ucx(library):
    """What UCX finds to communicate with, as TRANSPORT/DEVICE: it says so only in print."""
    ucp, libc = ctypes.CDLL(library), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    major, minor, release = (ctypes.c_uint() for _ in range(3))
    ucp.ucp_get_version(ctypes.byref(major), ctypes.byref(minor), ctypes.byref(release))
    settings, context = ctypes.c_void_p(), ctypes.c_void_p()
    ucp.ucp_config_read(None, None, ctypes.byref(settings))
    parameters = _UcpParams(_UCP_PARAM_FIELD_FEATURES, _UCP_FEATURE_AM)
    status = ucp.ucp_init_version(major, minor, ctypes.byref(parameters), settings, ctypes.byref(context))
    if status != 0:
        ctypes.CDLL("libucs.so.0").ucs_status_string.restype = ctypes.c_char_p
        raise Refused(f"ucp_init: {ctypes.CDLL('libucs.so.0').ucs_status_string(status)}")
    with tempfile.NamedTemporaryFile() as file:
        stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
        ucp.ucp_context_print_info(context, stream)
        libc.fclose(stream)
        resources = [line.split()[-1] for line in file.read().decode().splitlines() if " resource " in line]
    return f"{major.value}.{minor.value}.{release.value}", resources


_HWLOC_NUMA_DEPTH = -3


def _hwloc(installed):
    library = _library(installed, "hwloc", "hwloc")

    def count():
        hwloc = ctypes.CDLL(library)
        topology = ctypes.c_void_p()
        if hwloc.hwloc_topology_init(ctypes.byref(topology)) != 0 or hwloc.hwloc_topology_load(topology) != 0:
            raise Refused("it cannot load the topology of this machine")
        return hwloc.hwloc_get_nbobjs_by_depth(topology, _HWLOC_NUMA_DEPTH)

    return f"{cores()} cores to run on, NUMA nodes: {apart(count)}"


def _multicast():
    """A datagram to a group on the interface that Velo would take, heard there: what switches do with it shows between nodes."""
    interface, address = _interface()
    own = socket.inet_aton(address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        listener.bind((_MULTICAST_GROUP, 0))
        listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(_MULTICAST_GROUP) + own)
        listener.settimeout(_MULTICAST_SECONDS)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        sender.sendto(b"velo-info", (_MULTICAST_GROUP, listener.getsockname()[1]))
        try:
            listener.recv(64)
        except TimeoutError as silence:
            raise Refused(f"{interface}: a datagram to a group was not received") from silence
    return f"{interface} ({address}) receives multicast; a job on several nodes checks the others"


def _interface():
    for _, name in socket.if_nameindex():
        request = struct.pack("256s", name.encode())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            flags = struct.unpack_from("H", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request), 16)[0]
            if flags & _IFF_UP and flags & _IFF_MULTICAST and not flags & _IFF_LOOPBACK:
                try:
                    return name, socket.inet_ntoa(fcntl.ioctl(any_socket, _SIOCGIFADDR, request)[20:24])
                except OSError:  # it has no address
                    continue
    raise Refused("no interface that is up, multicasts and has an IPv4 address")


# Open MPI copies so between buffers, whatever carries messages (docs/known-issues.md).
_COPIED_BYTES, _COPIES = 16 << 10, 100
_SLOW = 2.0


def _library_copy():
    if max(_copy_usec(16), _copy_usec(1)) > _SLOW * _copy_usec(64):
        raise Refused(f"more than {_SLOW:g} times slower for some addresses, because of the processor's string instruction")
    return "equally fast for all addresses"


def _copy_usec(behind):
    """The shortest of several series, of copies to where the last twelve bits of the address are `behind` those of the source."""
    page = mmap.PAGESIZE
    with mmap.mmap(-1, 2 * (_COPIED_BYTES + 2 * page)) as memory:
        hold = ctypes.c_char.from_buffer(memory)
        source = ctypes.addressof(hold)
        target = source + _COPIED_BYTES + 2 * page + behind
        series = []
        for _ in range(10):
            begin = time.perf_counter()
            for _ in range(_COPIES):
                ctypes.memmove(target, source, _COPIED_BYTES)
            series.append((time.perf_counter() - begin) / _COPIES * 1e6)
        del hold
    return min(series)


def _size(number):
    for unit in ("KiB", "MiB", "GiB"):
        number /= 1024
        if number < 1024 or unit == "GiB":
            return f"{number:.3g} {unit}"
    return None
