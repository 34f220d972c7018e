"""The limits of a sandbox, and the command and environment that make one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grpo_studio.verifiers.sandbox import places


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use: bytes, seconds of CPU, processes and threads; `output` is bytes that it prints."""

    memory: int = 1024 * 1024**2
    cpu_seconds: int = 10
    processes: int = 32
    file_size: int = 64 * 1024**2
    output: int = 1024**2


@dataclass(frozen=True)
class Way:
    """How a sandbox is made: by this bwrap, or without one (None); `drop_root`: root becomes another user in it."""

    bwrap: str | None
    drop_root: bool


def environment(folder: str) -> Mapping[str, str]:
    """The whole of it: nothing is passed on. Hashes are fixed, so that the same code gives the same result."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


@cache
def bwrap_command(way: Way, limits: Limits) -> tuple[str, ...]:
    """The words before the program: all namespaces its own, and the least of the file system, read-only."""
    assert way.bwrap is not None
    spaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    spaces += ["--hostname", "sandbox", "--die-with-parent", "--new-session"]
    if way.drop_root:  # root's own user name space comes after its change of user
        spaces += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        spaces += ["--unshare-user"]
    own = ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", "/dev/shm"):
        own += ["--perms", "1777", "--size", str(limits.file_size), "--tmpfs", folder]
    paths = [*places.top_folders(), *places.readable()]
    # bwrap gives folders on the way to a path to root alone, and another user would not get through.
    parents = {str(parent) for path in paths for parent in Path(path).parents} - {"/", "/tmp"}
    seen = [part for path in sorted(parents) for part in ("--perms", "0755", "--dir", path)]
    seen += [part for path in paths for part in ("--ro-bind", path, path)]
    seen += [part for target, path in places.links() for part in ("--symlink", target, path)]
    # The own folders first: an environment under /tmp is to be seen in the private one.
    return (way.bwrap, *spaces, *own, *seen, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--")
