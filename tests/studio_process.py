"""Run the command line of GRPO Studio as a person does: in a process of its own, with a home folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TINY_RUN = (
    "--set", "algorithm.steps=3", "--set", "algorithm.prompts_per_step=2", "--set", "algorithm.group_size=4",
    # What a random model writes has a letter of these now and then, so that its groups are not all dead.
    "--set", "rewards=[{verifier: regex_match, params: {pattern: '[a-m]', match: search}}]",
)  # fmt: skip


def studio(
    *arguments: str, home: Path, timeout: float = 120, cwd: Path = ROOT, **env: str
) -> subprocess.CompletedProcess[str]:
    """`python -m grpo_studio ARGUMENTS` with that home folder."""
    paths = {"GRPO_STUDIO_HOME": str(home), "GRPO_STUDIO_CACHE": str(home / "cache"), "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, **paths, **env}
    return subprocess.run(
        [sys.executable, "-m", "grpo_studio", *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def tiny_train(model: Path, home: Path, *more: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`train` with the tiny model and few, small steps."""
    command = (
        "train",
        "--preset",
        "quickstart",
        "--set",
        f"model.id={model}",
        "--set",
        "dataset.held_out=4",
        *TINY_RUN,
    )
    return studio(*command, *more, "--json", home=home, **env)


def as_json(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Stdout as the one JSON document that it has to be."""
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def wait_for(condition: Callable[[], bool], limit: float = 90, what: str = "the condition") -> None:
    """Look again and again until it holds; fails after `limit` seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {limit:g} s"
        time.sleep(0.1)
