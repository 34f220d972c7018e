"""What the model card of an export says, gathered from the run's record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from grpo_studio import __version__, queries, versions
from grpo_studio.checkpoints import Checkpoint
from grpo_studio.config import RunConfig
from grpo_studio.errors import StoreError
from grpo_studio.exporting.card_evaluation import Evaluated, evaluated_at
from grpo_studio.exporting.curve import Point
from grpo_studio.exporting.origin import Origin, dataset_of, origin_of, settings_that_differ
from grpo_studio.exporting.redaction import Redaction
from grpo_studio.run_facts import setup_of, versions_in
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader

Kind = Literal["adapter", "merged", "whole"]
REWARD = "reward/mean"


@dataclass(frozen=True)
class CardFacts:
    """All that a card is made of. `settings` is YAML; `setup` is what the run recorded of itself as it began."""

    run: str
    kind: Kind
    origin: Origin
    dataset: str
    dataset_id: str | None
    rewards: Sequence[tuple[str, str, float]]
    checkpoint: str
    step: int
    steps: int
    settings: str
    loss: str
    adapter: str
    saved_dtype: str
    setup: Mapping[str, Any] = field(default_factory=dict)
    curve: Sequence[Point] = ()
    evaluated: Evaluated | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    program: str = __version__


def card_facts(
    folder: RunFolder, settings: Settings, checkpoint: Checkpoint, kind: Kind, saved_dtype: str, ask_hub: bool = False
) -> CardFacts:
    """Gather them. A record that cannot be read leaves its part out: the weights can still be carried away.

    Raises:
        ConfigError: the run's settings cannot be read.
    """
    config, redaction, setup = folder.config(), Redaction.of_environment(), recorded_setup(folder)
    source, source_id = dataset_of(config, ask_hub)
    told = settings_that_differ(config, redaction)
    return CardFacts(
        run=folder.run_id,
        kind=kind,
        origin=origin_of(config, settings, ask_hub),
        dataset=redaction.text(source),
        dataset_id=source_id,
        rewards=[(redaction.text(reward.label), reward.verifier, reward.weight) for reward in config.rewards],
        checkpoint=checkpoint.name,
        step=checkpoint.step,
        steps=config.algorithm.steps,
        settings=yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=100),
        loss=config.algorithm.loss_type,
        adapter=_adapter(config),
        saved_dtype=saved_dtype,
        setup=setup,
        curve=_curve(folder, checkpoint.step),
        evaluated=evaluated_at(folder, config, checkpoint),
        versions=_versions(checkpoint, setup),
    )


def recorded_setup(folder: RunFolder) -> dict[str, Any]:
    """As `run_facts.setup_of`; empty when the record cannot be read."""
    try:
        with RunReader(folder.database) as reader:
            return setup_of(reader)
    except StoreError:
        return {}


def _adapter(config: RunConfig) -> str:
    memory = config.memory
    if memory.adapter == "none":
        return ""
    name = {"lora": "LoRA", "qlora": "QLoRA"}[memory.adapter]
    return f"{name}, rank {memory.lora_rank}, alpha {memory.lora_alpha:g}, on {memory.lora_targets}"


def _curve(folder: RunFolder, last: int) -> list[Point]:
    try:
        with RunReader(folder.database) as reader, reader.snapshot():
            values = queries.metrics(reader, [REWARD], queries.steps(reader))[REWARD].dropna()
    except StoreError:
        return []
    return [(step, value) for step, value in zip(values.index.tolist(), values.tolist(), strict=True) if step <= last]


def _versions(checkpoint: Checkpoint, setup: Mapping[str, Any]) -> dict[str, str]:
    """Those that trained, as recorded; of a record that tells none, those that are installed here.

    The program itself has a line of its own in the card.
    """
    trained = versions_in(setup) | dict(checkpoint.manifest.versions) or versions.installed()
    return {name: version for name, version in trained.items() if name != "grpo_studio"}
