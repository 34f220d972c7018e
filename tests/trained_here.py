"""Train the tiny model in this process, by the session that a worker runs; read back what was recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.settings import Settings
from grpo_studio.stopping import Outcome, StopFlag
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.store.reader import RunReader
from grpo_studio.store.writer import RunWriter

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # as in a worker on a CPU


@dataclass(frozen=True)
class Trained:
    """A run's folder, how it ended, its metrics by name and step, its events as (kind, message, data)."""

    folder: RunFolder
    outcome: Outcome
    metrics: dict[str, dict[int, float | None]]
    events: list[tuple[str, str, dict[str, Any]]]

    def data(self, kind: str) -> dict[str, Any]:
        return next(data for name, _, data in self.events if name == kind)


Train = Callable[..., Trained]


def trainer_of(model: Path, settings: Settings) -> Train:
    """Two steps of 2 prompts x G = 4 unless overrides (`a.b=value`) say otherwise; raises what the session raises."""

    def train(*overrides: str) -> Trained:
        from grpo_studio.training.session import Session

        base = {
            "model": {"id": str(model)},
            "dataset": {"held_out": 0, "prompt_template": "{prompt}"},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {
                "steps": 2, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 6, "learning_rate": 1e-3,
            },
        }  # fmt: skip
        config = RunConfig.model_validate(with_overrides(base, overrides))
        folder = create_run(settings.runs_dir, config, "settings")
        writer = RunWriter(folder.database, attempt=1)
        try:
            outcome = Session(config, settings, folder, writer, StopFlag()).run()
        finally:
            writer.close()
        metrics: dict[str, dict[int, float | None]] = {}
        with RunReader(folder.database) as reader:
            for name, step, value in reader.rows("SELECT name, step, value FROM metric"):
                metrics.setdefault(name, {})[step] = value
            events = [
                (kind, message, json.loads(data) if data else {})
                for kind, message, data in reader.rows("SELECT kind, message, data FROM event")
            ]
        return Trained(folder, outcome, metrics, events)

    return train
