"""A copy of what a run recorded, at one moment, fit to leave this machine: whole databases, no tokens, no process."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path

from grpo_studio.disk import sized
from grpo_studio.errors import StoreError
from grpo_studio.exporting.archive_form import LOGS, belongs
from grpo_studio.exporting.redaction import Redaction
from grpo_studio.run_facts import facts_of, state_of
from grpo_studio.run_state import TERMINAL, RunState
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.log import tail
from grpo_studio.store.reader import RunReader
from grpo_studio.store.schema import make_plain, open_for_reading
from grpo_studio.store.writer import RunWriter

LONGEST_LOG = 8 << 20
NO_PROCESS = "archived"
"""Stands for the start of a worker's process: no process ever has it, so a copy is never taken for a living run."""


class Copy:
    """Makes the copy of a run in a new folder; `notes` tell what was left out or changed, `step` is its last one."""

    def __init__(self, folder: RunFolder, to: Path, redaction: Redaction) -> None:
        self._from, self._to, self._redaction = folder, RunFolder(to), redaction
        self.notes: list[str] = []
        self.step = 0

    @property
    def path(self) -> Path:
        return self._to.path

    def files(self) -> list[str]:
        """Names of all files of the copy."""
        found = (str(path.relative_to(self._to.path)) for path in self._to.path.rglob("*") if path.is_file())
        return sorted(name for name in found if belongs(name))

    def make(self) -> RunState:
        """Copy everything but checkpoints and exports; the state that the copy shows.

        Raises:
            StoreError: the run cannot be read.
        """
        before = facts_of(self._from)  # first: an end that comes in between is in the copy
        self._to.evaluations.mkdir(parents=True)
        self._copy_database(self._from.database, self._to.database)
        for path in sorted(self._from.evaluations.glob("*.db")):
            if belongs(f"evaluations/{path.name}"):
                self._copy_database(path, self._to.evaluations / path.name)
        for name in self._plain_files():
            self._copy_file(name)
        for name in LOGS:
            self._copy_log(name)
        self._copy_process()
        self._tell_its_end(before.alive, before.started)
        state = state_of(self._to)
        self.step = facts_of(self._to).step
        return state

    def _plain_files(self) -> Iterator[str]:
        top = [entry.name for entry in self._from.path.iterdir()]
        below = [str(path.relative_to(self._from.path)) for path in self._from.path.glob("verifiers/**/*")]
        for name in sorted([*top, *below]):
            path = self._from.path / name
            if belongs(name) and name not in ("run.db", "process.json", *LOGS) and path.is_file():
                if path.is_symlink():
                    self.notes.append(f"{name} is a link and was left out")
                else:
                    yield name

    def _copy_file(self, name: str) -> None:
        target = self._to.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self._redaction.bytes((self._from.path / name).read_bytes()))

    def _copy_log(self, name: str) -> None:
        path = self._from.path / name
        if not path.is_file() or path.is_symlink():
            return
        size, text = path.stat().st_size, tail(path, LONGEST_LOG)
        if size > LONGEST_LOG:
            left_out = f"the first {sized(size - len(text.encode()))} of {name} were left out"
            self.notes.append(left_out)
            text = f"[{left_out}]\n{text}"
        (self._to.path / name).write_text(self._redaction.text(text), encoding="utf-8")

    def _copy_process(self) -> None:
        """How the worker ended stays true in another installation; which process it was means nothing there."""
        record = self._from.process()
        if record is not None:
            self._to.process_path.write_text(json.dumps(asdict(replace(record, started=NO_PROCESS, host=NO_PROCESS))))

    def _copy_database(self, path: Path, target: Path) -> None:
        try:
            with closing(open_for_reading(path)) as source, closing(sqlite3.connect(target)) as copy:
                source.backup(copy)  # in one go, so of one moment, with what lies in the WAL
                copy.execute("PRAGMA journal_mode=DELETE")
                self._take_out_secrets(copy)
        except sqlite3.Error as error:
            raise StoreError(f"cannot copy {path}: {error}; see its log for what happened to it") from error

    def _take_out_secrets(self, copy: sqlite3.Connection) -> None:
        copy.execute("PRAGMA secure_delete=ON")
        copy.create_function("redacted", 1, lambda text: self._redaction.text(text) if isinstance(text, str) else text)
        changed = 0
        for (table,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for _, column, kind, *_ in copy.execute(f'PRAGMA table_info("{table}")').fetchall():
                if kind == "TEXT":
                    changed += copy.execute(
                        f'UPDATE "{table}" SET "{column}" = redacted("{column}") '
                        f'WHERE redacted("{column}") IS NOT "{column}"'
                    ).rowcount
        copy.commit()
        if changed:
            self.notes.append(f"{changed} recorded texts held a token or password, which was taken out")

    def _tell_its_end(self, alive: bool, started: bool) -> None:
        """A copy of a run that had not ended is told to be one; a worker that was gone without a word stays so."""
        with RunReader(self._to.database) as reader:
            newest, step = reader.newest_attempt().attempt, reader.last_step()
            kinds = {event.kind for event in reader.events() if event.attempt == newest}
        if kinds & set(TERMINAL) or (started and not alive):
            return
        message = f"archived after step {step}, while it was running; the run itself went on"
        if not started:
            message = "archived while it waited in the queue"
        writer = RunWriter(self._to.database, newest)
        writer.event("run_stopped", message, data={"archived": True})
        writer.close()
        make_plain(self._to.database)
        for left in ("run.db-wal", "run.db-shm"):
            with suppress(FileNotFoundError):
                (self._to.path / left).unlink()
        self.notes.append(message)
