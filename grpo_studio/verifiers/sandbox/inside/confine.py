"""What a process gives up before it runs foreign code: resources, privileges, and (where no namespace does it) sight.

Everything here is inherited by whatever the process starts and cannot be taken back.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _CLONE_NEWUSER = 4, 38, 0x10000000


def limit(settings: Mapping[str, Any]) -> None:
    """The resource limits: bytes of memory and of one file, seconds of CPU, processes, open files."""
    import resource

    wanted = {
        "RLIMIT_AS": settings["memory"],
        "RLIMIT_CPU": settings["cpu_seconds"],
        "RLIMIT_FSIZE": settings["file_size"],
        "RLIMIT_NOFILE": 256,
        "RLIMIT_CORE": 0,
        "RLIMIT_NPROC": settings["processes"],
    }
    for name, value in wanted.items():
        what = getattr(resource, name)
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(what, (value, value))
        except (OSError, ValueError):  # macOS knows some of them by name only
            continue


def become(user: int) -> None:
    """Give up root for an unprivileged user that nothing belongs to."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def own_user_namespace() -> bool:
    """Where root made the other namespaces: one more, so that the limit of processes counts this sandbox only.

    Without it that limit counts all processes of the user, on the whole machine.
    """
    import ctypes

    user, libc = os.getuid(), ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # a change of user hides /proc/self from oneself
    if libc.unshare(_CLONE_NEWUSER) != 0:
        return False
    try:
        for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{user} {user} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(line)
    except OSError:
        return False
    finally:
        _drop_capabilities(libc)
    return True


def shut(readable: list[str], writable: list[str]) -> list[str]:
    """Without namespaces: no new privileges, no capabilities, and what this kernel offers of Landlock and seccomp.

    Returns what took effect, in words.
    """
    if not sys.platform.startswith("linux"):
        return []
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    measures = []
    if _landlock(libc, readable, writable):
        measures.append("files outside Python's own cannot be opened (Landlock)")
    if _seccomp(libc):
        measures.append("no network, no signals to other processes (seccomp)")
    _drop_capabilities(libc)
    return measures


def _drop_capabilities(libc: Any) -> None:
    import ctypes

    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())


_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_EXECUTE_AND_READ, _WRITE_TO_FILE, _ON_FILES = 0b1101, 0b10, 0b1100_0000_0000_0111
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}


def _landlock(libc: Any, readable: list[str], writable: list[str]) -> bool:
    import ctypes

    version = libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    rights = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    fields = [rights] + [3] * (version >= 4) + [3] * (version >= 6)  # files, TCP, abstract sockets and signals
    ruleset = libc.syscall(
        _CREATE, (ctypes.c_uint64 * len(fields))(*fields), ctypes.c_size_t(8 * len(fields)), ctypes.c_uint32(0)
    )
    if ruleset < 0:
        return False
    devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"]
    allowed = [(path, _EXECUTE_AND_READ) for path in readable] + [(path, rights) for path in writable]
    for path, access in allowed + [(path, _EXECUTE_AND_READ | _WRITE_TO_FILE) for path in devices]:
        try:
            file = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        access &= rights if os.path.isdir(path) else rights & _ON_FILES
        rule = access.to_bytes(8, sys.byteorder) + file.to_bytes(4, sys.byteorder)
        libc.syscall(_ADD, ruleset, 1, rule, ctypes.c_uint32(0))
        os.close(file)
    done = libc.syscall(_RESTRICT, ruleset, ctypes.c_uint32(0)) == 0
    os.close(ruleset)
    return bool(done)


# kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal, ptrace, process_vm_readv,
# process_vm_writev, pidfd_getfd, kcmp, socket, io_uring_setup, bpf, perf_event_open, keyctl, userfaultfd, unshare,
# setns, mount; and prlimit64
_REFUSED = {
    "x86_64": (
        0xC000003E,
        (62, 200, 234, 129, 297, 424, 101, 310, 311, 438, 312, 41, 425, 321, 298, 250, 323, 272, 308, 165),
        302,
    ),
    "aarch64": (
        0xC00000B7,
        (129, 130, 131, 138, 240, 424, 117, 270, 271, 438, 272, 198, 425, 280, 241, 219, 282, 97, 268, 40),
        261,
    ),
}
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # the latter: the call fails with EPERM
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06


def _seccomp(libc: Any) -> bool:
    """Refuse the system calls by which a process reaches others or the network."""
    import ctypes

    known = _REFUSED.get(os.uname().machine)
    if known is None:
        return False
    architecture, calls, set_limits = known
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _REFUSE), (_LOAD, 0, 0, 0)]
    program += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _REFUSE)]  # the x32 numbers of the same calls
    for call in calls:
        program += [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, _REFUSE)]
    # Limits of itself (process 0) may be read and lowered, those of others not.
    program += [(_EQUAL, 0, 3, set_limits), (_LOAD, 0, 0, 16), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _REFUSE)]
    program += [(_RETURN, 0, 0, _ALLOW)]
    code = b"".join(
        op.to_bytes(2, sys.byteorder) + bytes([yes, no]) + value.to_bytes(4, sys.byteorder)
        for op, yes, no, value in program
    )
    buffer = ctypes.create_string_buffer(code, len(code))
    address = ctypes.addressof(buffer)
    header = len(program).to_bytes(2, sys.byteorder) + bytes(6) + address.to_bytes(8, sys.byteorder)
    return bool(libc.prctl(22, 2, header, 0, 0) == 0)
