from __future__ import annotations

from collections.abc import Iterator

from grpo_studio.config import RunConfig
from grpo_studio.problem import Problem


def rollout_problems(config: RunConfig) -> Iterator[Problem]:
    yield from ()


def engine_problems(config: RunConfig, device_kind: str) -> Iterator[Problem]:
    yield from ()
