"""Writes a run's checkpoints: beside their place, the manifest last, renamed when whole; deletes those that may go.

With several processes all of them call it together. One a machine lays out the folder, since a machine has its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol

from accelerate.utils import gather_object

from grpo_studio import disk, versions
from grpo_studio.checkpoint_files import clear_leftovers, discard, put_in_place, staging_of
from grpo_studio.checkpoints import Manifest, newest_resumable, those_that_may_go, whole_checkpoints, write_manifest
from grpo_studio.config import RunConfig
from grpo_studio.errors import CheckpointError, DiskFullError
from grpo_studio.resume_rules import config_hash, settings_that_matter
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader, current
from grpo_studio.store.writer import finite_or_none
from grpo_studio.training.checkpointing_size import needed_bytes
from grpo_studio.training.checkpointing_state import load_run, save_run
from grpo_studio.training.resuming_from import ResumePoint, reading

SHARDED = ("fsdp", "zero2", "zero3")
"""Strategies whose processes meet while they save, so that one that fails cannot wait to tell the others."""


class Account(Protocol):
    """What a checkpoint has to tell of the run, at the moment of a save."""

    scores: dict[int, float | None]
    baseline: Mapping[str, float | None]

    def state(self) -> dict[str, Any]: ...

    def restore(self, step: int, state: Mapping[str, Any]) -> None: ...


class Checkpointer:
    """The checkpoints of one attempt, which itself goes on from `point` when there is one."""

    def __init__(
        self,
        folder: RunFolder,
        config: RunConfig,
        attempt: int,
        data: Mapping[str, Any],
        point: ResumePoint | None,
        account: Account,
    ) -> None:
        self.point = point
        self._folder = folder
        self._config = config
        self._attempt = attempt
        self._data = data
        self._account = account

    def begin(self, trainer: Any) -> None:
        """Clear away what an earlier worker left half-done, and take back what the run had counted.

        Raises:
            CheckpointError: it cannot be read, or another machine would go on from another step.
        """
        if trainer.args.should_save:
            clear_leftovers(self._folder.checkpoints)
        if self.point is None:
            return
        if trainer.accelerator.num_processes > 1 and len(steps := set(gather_object([self.point.step]))) > 1:
            raise CheckpointError(
                f"the machines would go on from different steps: {', '.join(map(str, sorted(steps)))}; "
                f"delete the later checkpoints, so that all go on from step {min(steps)}"
            )
        self._account.restore(self.point.step, {} if self.point.branch else self._saved(trainer))

    def _saved(self, trainer: Any) -> dict[str, Any]:
        point = self.point
        if point is None:
            return {}
        state, manifest = load_run(point), point.checkpoint.manifest
        with reading(point.checkpoint.path):
            trainer.live_steps = int(state["live_steps"])
        self._account.baseline = manifest.baseline
        with RunReader(self._folder.database) as reader:
            scored = reader.rows(
                f"SELECT value FROM metric WHERE name = 'eval/reward' AND step = ? AND {current(reader)}", (point.step,)
            )
        if scored:  # maybe after the checkpoint was saved, so the manifest need not know of it
            self._account.scores[point.step] = scored[-1][0]
        return state

    def save(self, trainer: Any, name: str, write: Callable[[Path], None], *, resumable: bool) -> Path:
        """Write a checkpoint by `write(folder)`, put it in place and delete those that may go; returns its folder.

        Raises:
            DiskFullError: there is no room, on any machine; nothing of it is left, and earlier ones are as they were.
        """
        place = self._folder.checkpoints / name
        staged = staging_of(self._folder.checkpoints, name)
        saver, needed = bool(trainer.args.should_save), needed_bytes(trainer, self._folder, resumable)
        try:
            self._together(trainer, lambda: self._prepare(needed, name) if saver else None)
            self._together(trainer, lambda: self._write(staged, write))
            self._together(trainer, lambda: self._finish(trainer, staged, place, resumable) if saver else None)
        except BaseException as error:
            if saver:
                rmtree(staged.parent, ignore_errors=True)
            if isinstance(error, Exception) and disk.is_disk_full(error):
                raise self._full(name, needed) from error
            raise
        return place

    def scored(self, place: Path, step: int) -> None:
        """Note a held-out score that came after the weights were saved."""
        if place.is_dir() and self._account.scores.get(step) is not None:
            write_manifest(place, self._manifest(step, resumable=False))

    def _prepare(self, needed: int, name: str) -> None:
        clear_leftovers(self._folder.checkpoints)
        self._folder.checkpoints.mkdir(exist_ok=True)
        disk.require_space(self._folder.checkpoints, needed, name)

    def _write(self, staged: Path, write: Callable[[Path], None]) -> None:
        staged.mkdir(parents=True, exist_ok=True)
        write(staged)

    def _finish(self, trainer: Any, staged: Path, place: Path, resumable: bool) -> None:
        if resumable:
            save_run(staged, self._account.state() | {"live_steps": trainer.live_steps})
        write_manifest(staged, self._manifest(trainer.state.global_step, resumable))
        put_in_place(staged, place)
        if resumable:
            for old in those_that_may_go(whole_checkpoints(self._folder), self._config.checkpoint):
                discard(old.path)

    def _together(self, trainer: Any, work: Callable[[], object]) -> None:
        """Do one's part and wait for the others; where one finds no room, all of them say so."""
        alone, failed = trainer.accelerator.num_processes == 1, ""
        try:
            work()
        except Exception as error:
            if alone or self._config.scale.strategy in SHARDED or not disk.is_disk_full(error):
                raise
            failed = str(error) or type(error).__name__
        if not alone and (first := next(filter(None, gather_object([failed])), "")):
            raise DiskFullError(first)

    def _full(self, name: str, needed: int) -> DiskFullError:
        """Told once what was half-written is gone, so that the free space is what the person finds."""
        checkpoints = self._folder.checkpoints
        told = disk.disk_full(checkpoints, name, needed if disk.free_bytes(checkpoints) < needed else None)
        what, _, fix = str(told).rpartition("; ")
        newest = newest_resumable(self._folder)
        left = "it has no earlier checkpoint" if newest is None else f"{newest.name} is whole, to resume from"
        return DiskFullError(f"{what}; {left}; {fix}")

    def _manifest(self, step: int, resumable: bool) -> Manifest:
        return Manifest(
            step=step,
            attempt=self._attempt,
            resumable=resumable,
            config_hash=config_hash(self._config),
            settings=settings_that_matter(self._config),
            data=self._data,
            score=finite_or_none(self._account.scores.get(step)),
            baseline={name: finite_or_none(value) for name, value in self._account.baseline.items()},
            versions=versions.of_this_process(),
            saved_at=time.time(),
        )
