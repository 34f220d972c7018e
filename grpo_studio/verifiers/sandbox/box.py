"""One sandboxed process and its pipes, as its owner sees it: start, exchange frames by a deadline, end, tidy up.

Nothing here blocks without a limit. The process is sent its code only after it has said that it runs, and by then the
kernel ends it with its owner: an owner that dies at any moment, even by signal 9, leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

from grpo_studio.verifiers.sandbox import places
from grpo_studio.verifiers.sandbox.boot import BOOT, PACKAGE, codes
from grpo_studio.verifiers.sandbox.command import Limits, Way, bwrap_command, environment
from grpo_studio.verifiers.sandbox.inside import cage, wire

_LARGEST_FRAME = 2 * wire.LARGEST
_LOOK_EVERY = 0.1
_PAGE = os.sysconf("SC_PAGE_SIZE")
_numbers = count()
START_SECONDS = 20.0


class BoxEnded(Exception):
    """The sandbox ended, or broke the protocol."""


class BoxTimeout(Exception):
    """It did not answer in time."""


class BoxOverLimit(Exception):
    """It went past a limit that is watched from here, and was ended."""


class Box:
    """A started sandbox that runs the `main` of one module of `inside`; use it as a context manager."""

    def __init__(self, way: Way, entry: str, limits: Limits) -> None:
        """Start it. Raises BoxEnded (with what it printed) or BoxTimeout when it does not start."""
        self._way, self._limits, self._rest, self._printed = way, limits, b"", b""
        self._looked, self._closed = 0.0, False
        self._user = places.unprivileged_user(next(_numbers) * 61 + os.getpid()) if way.drop_root else None
        self._folder = "/tmp" if way.bwrap else tempfile.mkdtemp(prefix="grpo-studio-sandbox-")
        try:
            if self._user is not None and not way.bwrap:
                os.chown(self._folder, self._user, self._user)
            self._open()
            self._handshake(entry)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()

    def _open(self) -> None:
        sink_read, sink_write = os.pipe()
        try:
            python = [places.interpreter(), "-S", "-s", "-P", "-c", BOOT, str(sink_write)]
            command = [*bwrap_command(self._way, self._limits), *python] if self._way.bwrap else python
            self._child = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(sink_write,),
                cwd="/" if self._way.bwrap else self._folder,
                env=environment(self._folder),
                # A signal to the owner's group must not end the guard before it has ended all others.
                start_new_session=self._way.bwrap is None,
            )
        except BaseException:
            os.close(sink_read)
            raise
        finally:
            os.close(sink_write)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._to, self._from, self._prints = self._child.stdin.fileno(), sink_read, self._child.stdout.fileno()
        for channel in (self._to, self._from, self._prints):
            os.set_blocking(channel, False)

    def _handshake(self, entry: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        self.receive(deadline)
        settings: dict[str, Any] = {
            "package": PACKAGE,
            "bubblewrap": self._way.bwrap is not None,
            "user": self._user,
            "folder": self._folder,
            "readable": [*places.readable(), *places.top_folders()],
            "site": list(places.site_folders()),
            **vars(self._limits),
        }
        settings["processes"] += _counted_already(self._way, self._user)
        self.send(marshal.dumps((codes(entry, self._way.bwrap is None), entry, settings)), deadline)
        self.measures = self.receive(deadline).decode()

    def alive(self) -> bool:
        """Whether it still runs and was not closed."""
        return not self._closed and self._child.poll() is None

    def send(self, data: bytes, deadline: float) -> None:
        """Write one frame."""
        rest = memoryview(len(data).to_bytes(4, "big") + data)
        while rest:
            self._wait(self._to, select.POLLOUT, deadline)
            try:
                rest = rest[os.write(self._to, rest) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise BoxEnded(self._said()) from error

    def receive(self, deadline: float) -> bytes:
        """The next frame."""
        while True:
            size = int.from_bytes(self._rest[:4], "big")
            if len(self._rest) >= 4 and size > _LARGEST_FRAME:
                raise BoxEnded("it broke the protocol")
            if len(self._rest) >= 4 + size and len(self._rest) >= 4:
                data, self._rest = self._rest[4 : 4 + size], self._rest[4 + size :]
                return data
            self._wait(self._from, select.POLLIN, deadline)
            data = os.read(self._from, 1 << 18)
            if not data:
                raise BoxEnded(self._said())
            self._rest += data

    def _wait(self, channel: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(channel, event)
        poll.register(self._prints, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            ready = dict(poll.poll(max(0.0, min(left, _LOOK_EVERY)) * 1000))
            if self._prints in ready and not self._drain():
                poll.unregister(self._prints)
            if channel in ready:
                return
            if left <= 0:
                raise BoxTimeout
            self._look()

    def _drain(self) -> bool:
        data = os.read(self._prints, 1 << 18)
        self._printed += data
        if len(self._printed) > self._limits.output:
            raise BoxOverLimit(f"it printed more than {self._limits.output} bytes")
        return bool(data)

    def _look(self) -> None:
        """Watch what no kernel limit sums up: all processes of the sandbox together."""
        if time.monotonic() - self._looked < _LOOK_EVERY:
            return
        found = list(cage.descendants(self._child.pid))
        self._looked = time.monotonic()
        if len(found) > self._limits.processes + 4:
            raise BoxOverLimit(f"it started more than {self._limits.processes} processes")
        if sum(pages for _, pages in found) * _PAGE > self._limits.memory + 128 * 1024**2:
            raise BoxOverLimit(f"it used more than {self._limits.memory >> 20} MiB of memory")

    def _said(self) -> str:
        with contextlib.suppress(OSError, BoxOverLimit):
            self._drain()
        last = self._printed.decode("utf-8", "replace").strip().splitlines()[-1:]
        return last[0][:300] if last else "it ended"

    def close(self) -> None:
        """End it and all that it started; when this returns nothing of it is left. Safe to call again."""
        child: subprocess.Popen[bytes] | None = getattr(self, "_child", None)
        if child is not None and not self._closed:
            self._closed = True
            self._end(child)
            os.close(self._from)
            assert child.stdout is not None
            child.stdout.close()
        if not self._way.bwrap:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdin is not None
        with contextlib.suppress(OSError):
            child.stdin.close()  # without bwrap, the guard ends everything now and only then itself
        if self._way.bwrap:
            # The first process of the name space takes all others with it, and is reaped when they are gone.
            children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
            with contextlib.suppress(OSError, ValueError):
                for pid in children.read_text().split():
                    os.kill(int(pid), 9)
        if not _ends_within(child, 2.0 if self._way.bwrap else 30.0):
            child.kill()
        child.wait()


def _ends_within(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the end, without the growing naps of `Popen.wait`: this is paid once an item."""
    try:
        watch = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        return child.returncode is not None
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    ended = bool(poll.poll(seconds * 1000))
    os.close(watch)
    return ended


def _counted_already(way: Way, user: int | None) -> int:
    """How many processes and threads the kernel counts with the sandbox's: without a user name space of its own (and
    before Linux 5.14 in any case) all those of the same user."""
    if user is not None or os.getuid() == 0 or not sys.platform.startswith("linux"):
        return 0  # root's processes are not limited at all: they are watched
    with contextlib.suppress(ValueError):
        version = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
        if way.bwrap is not None and version >= (5, 14):
            return 0
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == os.getuid():
                found += len(os.listdir(process / "task"))
    return found
