"""`python -m grpo_studio.training.probe_rollout_child PARENT SPEC`: sample and score one batch, and freeze it.

The batch is the first that a run of these settings trains on, made by the trainer that would train on it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from grpo_studio import data
from grpo_studio.config import RunConfig
from grpo_studio.errors import DataError
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.silent_writer import SilentWriter
from grpo_studio.training.adapters import require_targets
from grpo_studio.training.arguments import grpo_arguments
from grpo_studio.training.model_source import model_source
from grpo_studio.training.precision import effective_dtype
from grpo_studio.training.probe_batch import freeze, unmasked, widths, with_advantages
from grpo_studio.training.probe_channel import Channel, answer
from grpo_studio.training.probe_trainer import ProbeTrainer, probe_trainer
from grpo_studio.training.reward_setup import prepare_rewards
from grpo_studio.training.scored_batch import ScoredBatch, batch_metrics
from grpo_studio.training.tokenization import load_tokenizer
from grpo_studio.training.usable_rows import usable_rows

NO_ADVANTAGE = (
    "no group of the sampled batch told its completions apart (all advantages were 0, so was the gradient); advantages "
    "were replaced by a fixed pattern, evenly spread in each group with mean 0 and deviation 1: memory, time and the "
    "agreement of the backends are real, the size of loss and gradient means nothing"
)
ALL_MASKED = (
    "all sampled completions were cut off, and algorithm.mask_truncated masks such (the gradient was 0); they are used "
    "whole here"
)
SOME_DEAD = (
    "{dead} of {all} completions have advantage 0; they are kept in the passes here, so peak and time are those of a "
    "batch whose groups all teach"
)


def main(spec: dict[str, Any], channel: Channel) -> None:
    """Sample, score, freeze; tells what the batch is."""
    config, settings = RunConfig.model_validate(spec["config"]), Settings.from_env()
    folder = Path(spec["folder"])
    source = model_source(config, settings.cache, channel.tell)
    channel.tell("reading the data set")
    splits = data.load(config.dataset, config.rows_wanted())
    tokenizer = load_tokenizer(source, config.model.revision, config.model.chat_template)
    require_targets(source, config.model.revision, config.memory)
    samples = usable_rows(config, tokenizer, source, splits).splits.train
    arguments = grpo_arguments(config, folder / "rollout")
    judged = prepare_rewards(config, settings, RunFolder(folder / "rollout"), SilentWriter(attempt=1), arguments)
    try:
        channel.tell("loading the model")
        trainer, listening = probe_trainer(config, source, folder / "rollout", judged, samples, tokenizer)
        trainer.ready()
        channel.tell("sampling and scoring one batch")
        batch = _sampled(trainer)
    finally:
        judged.close()
    scored = listening.batch
    if scored is None:
        raise DataError("the trainer scored no batch; give a data set with more rows")
    batch, notes = _teaching(batch, config.algorithm.group_size)
    freeze(batch, Path(spec["batch"]))
    prompt, completion = widths(batch)
    mean_prompt = float(batch["prompt_mask"].sum(1).float().mean())
    channel.found(
        {"source": source, "dtype": effective_dtype(config.model), "prompt_tokens": prompt,
         "completion_tokens": completion, "batch": _facts(scored, mean_prompt), "notes": notes}
    )  # fmt: skip


def _teaching(batch: dict[str, Any], group_size: int) -> tuple[dict[str, Any], list[str]]:
    """The batch with a gradient to compare, and what was done for that."""
    notes = []
    if not batch["completion_mask"].any():
        batch = unmasked(batch)
        notes.append(ALL_MASKED)
    dead = int((batch["advantages"] == 0).sum())
    if dead == batch["advantages"].numel():
        batch = with_advantages(batch, group_size)
        notes.append(NO_ADVANTAGE)
    elif dead:
        notes.append(SOME_DEAD.format(dead=dead, all=batch["advantages"].numel()))
    return batch, notes


def _sampled(trainer: ProbeTrainer) -> dict[str, Any]:
    rows = next(iter(trainer.get_train_dataloader()), None)
    if not rows:
        raise DataError("the data set has too few rows for one batch; use fewer prompts a step")
    return trainer._generate_and_score_completions(rows)


def _facts(scored: ScoredBatch, prompt_tokens: float) -> dict[str, Any]:
    groups = scored.groups()
    metrics = batch_metrics(groups)
    return {
        "prompts": len(groups),
        "group_size": scored.group_size,
        "prompt_tokens_mean": prompt_tokens,
        "completion_tokens_mean": scored.tokens / len(scored.completions),
        "truncated": metrics["completion/truncated"],
        "reward_mean": metrics["reward/mean"],
        "reward_std": metrics["reward/std"],
        **{kind: metrics[f"group/{kind}"] for kind in ("mixed", "all_good", "all_bad")},
    }


if __name__ == "__main__":
    sys.exit(answer(sys.argv[1:], main))
