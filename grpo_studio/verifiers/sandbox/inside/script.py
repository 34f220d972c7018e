"""Runs a submitted program once for each input: a fresh fork with that input on its standard input.

What it prints goes back as it is, and is compared elsewhere; what it should print is never here.
"""

from __future__ import annotations

import os
import select
import sys

from grpo_studio.verifiers.sandbox.inside import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LARGEST_ERROR = 4000


def main(source: int, sink: int, settings: Mapping[str, Any]) -> None:
    """The program's text comes first, then one input a frame; each is answered by (status, output, errors)."""
    text = wire.receive(source).decode("utf-8", "surrogatepass")
    try:
        code = compile(text, "<submission>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        wire.send(sink, wire.encode(("failed", f"{type(error).__name__}: {error}"[:300])))
        return
    folder = settings["folder"]
    before = set(os.listdir(folder))  # of Python itself, where it is installed below /tmp
    wire.send(sink, wire.encode(("loaded",)))
    while frame := wire.receive(source):
        answer = _run(code, wire.decode(frame), settings["output"], (source, sink))
        _clear(folder, before)
        wire.send(sink, wire.encode(answer))


def _clear(folder: str, before: set[str]) -> None:
    """Take away what a program left, so that the next input begins as the first did.

    What cannot be taken away stays: that is no fault of the program, and what it finds then is its own.
    """
    import contextlib
    import shutil

    with contextlib.suppress(OSError):
        if os.stat(folder).st_uid == os.getuid():  # else the program cannot have shut it either
            os.chmod(folder, 0o700)
        for name in set(os.listdir(folder)) - before:
            path = f"{folder}/{name}"
            with contextlib.suppress(OSError):
                if os.path.isdir(path) and not os.path.islink(path):
                    _open_up(path)
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.unlink(path)


def _open_up(path: str) -> None:
    """Make each folder below one that can be listed and emptied."""
    os.chmod(path, 0o700)
    for root, folders, _ in os.walk(path):
        for name in folders:
            if not os.path.islink(f"{root}/{name}"):
                os.chmod(f"{root}/{name}", 0o700)


def _run(code: Any, given: bytes, most: int, channels: tuple[int, int]) -> tuple[Any, ...]:
    given_read, given_write = os.pipe()
    out_read, out_write = os.pipe()
    error_read, error_write = os.pipe()
    child = os.fork()
    if child == 0:
        for place, channel in enumerate((given_read, out_write, error_write)):
            os.dup2(channel, place)
        for channel in {*channels, given_read, given_write, out_read, out_write, error_read, error_write} - {0, 1, 2}:
            os.close(channel)
        _as_main(code)
    for channel in (given_read, out_write, error_write):
        os.close(channel)
    os.set_blocking(given_write, False)
    try:
        output, errors = _exchange(child, given, given_write, (out_read, error_read), most)
    finally:
        for channel in (out_read, error_read):
            os.close(channel)
    if output is None:
        return "flood", b"", b""  # the whole sandbox is ended for it
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, bytes(output), bytes(errors[-LARGEST_ERROR:])


def _as_main(code: Any) -> None:
    """Run as a script does, its standard streams made anew, and end as one does; never returns."""
    status = 1
    try:
        sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape")
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape")
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
        module = type(sys)("__main__")
        sys.modules["__main__"] = module
        sys.argv = ["submission.py"]
        exec(code, module.__dict__)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    try:
        _finish()
    finally:
        os._exit(status & 255)


def _finish() -> None:
    import atexit
    import threading

    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does: wait for threads, then the hooks
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _exchange(
    child: int, given: bytes, given_write: int, outs: tuple[int, int], most: int
) -> tuple[bytearray | None, bytearray]:
    """Feed the input and collect both outputs until the program ends; None for an output over the cap."""
    output, errors, rest = bytearray(), bytearray(), memoryview(given)
    poll = select.poll()
    for channel in outs:
        poll.register(channel, select.POLLIN)
    poll.register(given_write, select.POLLOUT)
    feeding, open_channels, ended = True, set(outs), False
    while open_channels:
        # Something that the program started may hold its output open: after its end only what is there counts.
        ready = poll.poll(0 if ended else 20)
        if ended and not any(channel in open_channels for channel, _ in ready):
            break
        for channel, _ in ready:
            if channel == given_write and feeding:
                rest, feeding = _feed(given_write, rest)
                if not feeding:
                    poll.unregister(given_write)
                    os.close(given_write)
            elif channel in open_channels:
                data = os.read(channel, 1 << 16)
                if not data:
                    open_channels.discard(channel)
                    poll.unregister(channel)
                (output if channel == outs[0] else errors).extend(data)
        if len(output) > most or len(errors) > most:
            return None, errors
        ended = ended or os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    if feeding:
        os.close(given_write)
    return output, errors


def _feed(channel: int, rest: memoryview) -> tuple[memoryview, bool]:
    try:
        rest = rest[os.write(channel, rest[: 1 << 16]) :]
    except BlockingIOError:
        return rest, True
    except OSError:  # the program does not read it
        return rest, False
    return rest, len(rest) > 0
