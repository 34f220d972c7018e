"""Commands of `python -m grpo_studio` that take long, run for the pages as child processes. No gradio here.

A page can do nothing that the command line cannot: it gives the same arguments, gets the command's JSON document, and
shows the last line of its stderr as progress or, when it fails, as the reason.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import IO, Any

from grpo_studio.child_environment import of_program
from grpo_studio.errors import StudioError, UsageError
from grpo_studio.exporting.redaction import Redaction
from grpo_studio.settings import PACKAGE_DIR, Settings
from grpo_studio.shown import shown, visible
from grpo_studio.ui.jobs import Answer, Job, Jobs
from grpo_studio.worker_process import kill_session

LONGEST_ANSWER = 16 << 20
"""Bytes of stdout that are taken; a command that prints more is ended."""
LONGEST_LINE = 2_000
LINES_KEPT = 8
LOOK_EVERY = 0.1
_SHARE = re.compile(r"(?P<what>.*\S)\s+(?P<percent>[0-9]{1,3})%", re.DOTALL)


class CommandError(StudioError):
    """A command failed; the message is its own."""


class CommandJobs:
    """Commands by the key that a browser gave each; a few work at once, the others wait for their turn."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._jobs = Jobs()

    def begin(self, key: str, arguments: list[str]) -> Answer:
        """Run a command, unless this key was begun already. The first argument is its name, a word of the program's.

        What a visitor names stands as `--option=VALUE` or after `--` (`on_run`), so that it cannot become an option.
        """
        command, *rest = arguments
        if not command.isidentifier():
            raise UsageError(f"{shown(command)} is no command; see python -m grpo_studio --help")
        line = [command, "--json", f"--runs-dir={self.settings.runs_dir}", *rest]
        if any("\0" in part for part in line):
            raise UsageError("a text with a null character cannot be given to a command; leave it out")
        return self._jobs.begin(key, command, lambda job: self._work(job, line))

    def progress(self, key: str) -> Answer:
        """How far the command is, or {"unknown": True}; its result, a JSON object, when it is done."""
        return self._jobs.progress(key)

    def cancel(self, key: str) -> Answer:
        """End the command and all that it started."""
        return self._jobs.cancel(key)

    def _work(self, job: Job, line: list[str]) -> Answer:
        with self._jobs.turn(job):
            job.report("starting")
            return _run(job, line, os.environ | of_program(self.settings) | {"PYTHONUNBUFFERED": "1"})


@lru_cache(maxsize=8)
def command_jobs_of(settings: Settings) -> CommandJobs:
    """The one CommandJobs of an app: what one page began, another can ask for."""
    return CommandJobs(settings)


def on_run(command: str, run_id: str, *options: str) -> list[str]:
    """The arguments of a command about a run; the id is never taken for an option."""
    return [command, *options, "--", run_id]


class _Output:
    """What a child prints, read as it comes: stdout whole up to a bound, of stderr only the last lines."""

    def __init__(self, child: subprocess.Popen[bytes], environment: Mapping[str, str]) -> None:
        self._child, self._redaction = child, Redaction.of_environment(environment)
        self._answer, self._lines = bytearray(), deque[str](maxlen=LINES_KEPT)
        self.too_long = False
        self._readers = [
            threading.Thread(target=self._read, args=(child.stdout, self._take_answer), daemon=True),
            threading.Thread(target=self._read, args=(child.stderr, self._take_lines), daemon=True),
        ]
        self._line = bytearray()
        for reader in self._readers:
            reader.start()

    def last_line(self) -> str:
        return self._lines[-1] if self._lines else ""

    def error(self) -> str:
        """The command's own words for its failure."""
        told = next((line for line in reversed(self._lines) if line.startswith("error: ")), self.last_line())
        return told.removeprefix("error: ")

    def answer(self) -> Any:
        """The JSON document. Raises ValueError when it is none."""
        return json.loads(self._redaction.text(self._answer.decode("utf-8", "replace")))

    def finish(self) -> None:
        """Wait until all of it is read; whoever still holds the pipes is dead by now."""
        for reader in self._readers:
            reader.join(timeout=5)

    def _read(self, pipe: IO[bytes], take: Any) -> None:
        with pipe:
            while block := os.read(pipe.fileno(), 1 << 16):
                take(block)
        take(b"\n")

    def _take_answer(self, block: bytes) -> None:
        room = LONGEST_ANSWER - len(self._answer)
        self._answer += block[: max(0, room)]
        self.too_long = self.too_long or len(block) > room

    def _take_lines(self, block: bytes) -> None:
        *whole, rest = re.split(rb"[\r\n]", bytes(self._line) + block)
        for line in whole:
            text = self._redaction.text(line.decode("utf-8", "replace")).strip()
            if text:
                self._lines.append(visible(text[:LONGEST_LINE]))
        self._line[:] = rest[:LONGEST_LINE]


def _run(job: Job, line: list[str], environment: dict[str, str]) -> Answer:
    lifeline, ours = os.pipe()
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "grpo_studio.ui.command_child", str(lifeline), *line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=PACKAGE_DIR.parent,
            start_new_session=True,
            pass_fds=[lifeline],
        )
        os.close(lifeline)
        output = _Output(child, environment)
        try:
            while child.poll() is None and not output.too_long:
                _tell(job, output.last_line())
                job.cancel.wait(LOOK_EVERY)
        finally:
            kill_session(child.pid)
            child.wait()
            output.finish()
    finally:
        os.close(ours)
    return _ended(child.returncode, output)


def _tell(job: Job, line: str) -> None:
    found = _SHARE.fullmatch(line)
    if found is not None:
        job.share(found["what"], int(found["percent"]) / 100)
    else:
        job.report(line or "starting")


def _ended(code: int, output: _Output) -> Answer:
    if output.too_long:
        raise CommandError(f"the command printed over {LONGEST_ANSWER >> 20} MB and was ended; use it in a terminal")
    if code < 0:
        hint = ", likely out of memory" if -code == signal.SIGKILL else ""
        raise CommandError(
            f"the command was killed by signal {-code}{hint}{_after(output.last_line())}; free memory and try again"
        )
    if code > 0:
        raise CommandError(output.error() or f"the command ended with exit code {code} and said nothing")
    try:
        answer = output.answer()
    except ValueError as error:
        raise CommandError(f"the command's answer cannot be read: {error}") from error
    return answer if isinstance(answer, dict) else {"rows": answer}


def _after(line: str) -> str:
    return f", last heard: {line}" if line else ""
