"""Attempts at a run of the tiny model in this process: one that is killed at a step, one that goes on, one left alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.settings import Settings
from grpo_studio.stopping import Outcome, StopFlag
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.store.reader import RunReader, current
from grpo_studio.store.writer import RunWriter

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # as in a worker on a CPU

TIMED = ("time/", "memory/", "throughput/")


class KilledError(BaseException):
    """Ends an attempt in the midst of a step, as SIGKILL does: nothing that would tidy up is told why."""


class _KilledAt(RunWriter):
    """A writer whose attempt ends before the figures of a step are committed."""

    def __init__(self, path: Path, attempt: int, step: int) -> None:
        super().__init__(path, attempt)
        self._last = step

    def phase_times(self, step: int, seconds: Mapping[str, float]) -> None:
        if step == self._last:
            raise KilledError
        super().phase_times(step, seconds)


def runs_in(home: Path, model: Path) -> Runs:
    """Runs of the model below a home folder of their own."""
    paths = {"GRPO_STUDIO_HOME": str(home), "GRPO_STUDIO_CACHE": str(home / "cache")}
    return Runs(model, Settings.from_env(os.environ | paths))


class Runs:
    """Runs of one home folder: 2 prompts x G = 4, 12 steps, a checkpoint every 5, unless overrides say otherwise."""

    def __init__(self, model: Path, settings: Settings) -> None:
        self._model = model
        self._settings = settings

    def config(self, *overrides: str) -> RunConfig:
        base = {
            "model": {"id": str(self._model)},
            "dataset": {"held_out": 3, "prompt_template": "{prompt}"},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {
                "steps": 12, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 6,
                "learning_rate": 1e-2, "lr_schedule": "linear",
            },
            "checkpoint": {"every": 5},
        }  # fmt: skip
        return RunConfig.model_validate(with_overrides(base, overrides))

    def create(self, *overrides: str) -> RunFolder:
        return create_run(self._settings.runs_dir, self.config(*overrides), "resumed")

    def attempt(
        self, folder: RunFolder, attempt: int = 1, *, killed_at: int | None = None, stop: StopFlag | None = None
    ) -> Outcome | None:
        """Work at an attempt by the session that a worker runs; None when it was killed."""
        from grpo_studio.training.session import Session

        path = folder.database
        with closing(RunWriter(path, attempt) if killed_at is None else _KilledAt(path, attempt, killed_at)) as writer:
            try:
                return Session(folder.config(), self._settings, folder, writer, stop or StopFlag()).run()
            except KilledError:
                return None

    def left_alone(self, *overrides: str) -> RunFolder:
        folder = self.create(*overrides)
        self.attempt(folder)
        return folder

    def killed_and_resumed(self, step: int, checkpoint: int, *overrides: str) -> RunFolder:
        folder = self.create(*overrides)
        assert self.attempt(folder, killed_at=step) is None
        self.resume(folder, checkpoint)
        return folder

    def resume(self, folder: RunFolder, checkpoint: int, attempt: int = 2) -> Outcome | None:
        begin(folder, checkpoint, attempt)
        return self.attempt(folder, attempt)


def begin(folder: RunFolder, checkpoint: int, attempt: int = 2) -> None:
    """Begin an attempt as `resume` does."""
    with closing(RunWriter(folder.database, attempt)) as writer:
        writer.attempt_began(checkpoint, f"checkpoint-{checkpoint}", "resumed")


def metrics(folder: RunFolder) -> dict[tuple[str, int], float | None]:
    """All current metrics by name and step, but those that tell of time and memory."""
    with RunReader(folder.database) as reader:
        found = reader.rows(f"SELECT name, step, value FROM metric WHERE {current(reader)}")
    kept = [(name, step, value) for name, step, value in found if not name.startswith(TIMED)]
    by_step = {(name, step): value for name, step, value in kept}
    assert len(by_step) == len(kept), "a metric is current twice"
    return by_step


def completions(folder: RunFolder) -> list[tuple[Any, ...]]:
    """All current completions in order, with what they were rewarded."""
    with RunReader(folder.database) as reader:
        return reader.rows(
            "SELECT g.step, g.split, g.prompt, c.idx, c.text, c.tokens, c.reward, c.advantage FROM prompt_group g "
            f"JOIN completion c ON c.group_id = g.id WHERE {current(reader, 'g')} ORDER BY g.step, g.split, g.id, c.idx"
        )


def events(folder: RunFolder, attempt: int) -> list[tuple[str, str]]:
    with RunReader(folder.database) as reader:
        return [(event.kind, event.message) for event in reader.events() if event.attempt == attempt]


def assert_same(one: RunFolder, other: RunFolder) -> None:
    """Same metrics to 1e-6 at every step, same prompts, texts and rewards."""
    mine, theirs = metrics(one), metrics(other)
    assert mine.keys() == theirs.keys()
    for key, value in mine.items():
        expected = theirs[key]
        if value is None or expected is None:
            assert value is expected, key
        else:
            assert abs(value - expected) <= 1e-6 * max(1.0, abs(expected)), (key, value, expected)
    assert completions(one) == completions(other)
