"""Two made-up runs that are halves of a pair, written through the real RunWriter, equal until they are told to part."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from sample_run import SampleRun

from grpo_studio.config_files import dump_config
from grpo_studio.pair_records import PAIR_FILE
from grpo_studio.pair_settings import with_value
from grpo_studio.rules import inspect
from grpo_studio.store.folder import write_whole

PAIR_ID = "20261130-120000-sample-ab12"


class SamplePair:
    """Two runs of the same seed; `part()` lets B go its own way from the next step on."""

    def __init__(
        self, home: Path, field: str = "memory.loss_backend", values: tuple[Any, Any] = ("liger", "full"),
        pair: str = PAIR_ID, steps: int = 60,
    ) -> None:  # fmt: skip
        self.id, self.field, self.values = pair, field, values
        self.a, self.b = (SampleRun(home, name=f"sample-{side}", steps=steps) for side in "ab")
        for run, value in zip((self.a, self.b), values, strict=True):
            inspected = inspect(with_value(run.config.model_dump(mode="json"), field, value))
            assert inspected.config is not None, inspected.problems
            run.config = inspected.config
            write_whole(run.folder.config_path, dump_config(run.config))
        self.tell()

    def tell(self, **changed: Any) -> None:
        """Write both records."""
        runs = [self.a.folder.run_id, self.b.folder.run_id]
        for side, run in (("A", self.a), ("B", self.b)):
            record = {"pair": self.id, "side": side, "field": self.field, "values": list(self.values), "runs": runs}
            write_whole(run.folder.path / PAIR_FILE, json.dumps(record | changed))

    def begin(self) -> None:
        self.a.begin()
        self.b.begin()

    def part(self, seed: int = 99) -> None:
        self.b.random = random.Random(seed)

    def finish(self) -> None:
        for run in (self.a, self.b):
            end(run)


def end(run: SampleRun) -> None:
    """Its worker has told that all is done, and is gone."""
    run.end("run_finished", f"all {run.now} steps done")
    run.writer.close()
    process = run.folder.process()
    assert process is not None
    run.folder.write_process(replace(process, started="gone"))


def finished_pair(home: Path, steps: int = 40, equal: int = 12, **more: Any) -> SamplePair:
    """Both halves ended after the same steps; the first ones are equal."""
    pair = SamplePair(home, steps=steps, **more)
    pair.begin()
    for run in (pair.a, pair.b):
        run.advance(equal)
    pair.part()
    for run in (pair.a, pair.b):
        run.advance(steps - equal)
    pair.finish()
    return pair
