"""Run workers on the quickstart and read back their steps: what the benches share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from grpo_studio.config import RunConfig
from grpo_studio.config_files import read_preset, with_overrides
from grpo_studio.settings import BUNDLED_PRESETS
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.store.reader import RunReader

ROOT = Path(__file__).resolve().parent.parent


def quickstart_run(home: Path, overrides: Sequence[str], environment: Mapping[str, str], name: str) -> RunFolder:
    """Run the quickstart with changed settings in a worker with exactly these extra variables, to its end."""
    config = RunConfig.model_validate(with_overrides(read_preset("quickstart", [BUNDLED_PRESETS]), overrides))
    folder = create_run(home, config, name)
    with folder.log.open("wb") as log:
        subprocess.run(
            [sys.executable, "-m", "grpo_studio.worker", str(folder.path)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
            check=True,
        )
    return folder


def series(folder: RunFolder, name: str) -> dict[int, float]:
    """A metric by step."""
    with RunReader(folder.database) as reader:
        return dict(reader.rows("SELECT step, value FROM metric WHERE name = ? ORDER BY step", (name,)))
