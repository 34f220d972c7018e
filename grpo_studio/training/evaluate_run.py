"""Score a run's own held-out rows after the fact, with the weights of one of its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from grpo_studio import data
from grpo_studio.checkpoints import Checkpoint
from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import DataError, ModelError
from grpo_studio.progress import Progress
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.records import GroupRecord
from grpo_studio.training.checkpoint_model import load_model
from grpo_studio.training.evaluation import RowScorer
from grpo_studio.training.generation import end_tokens
from grpo_studio.training.model_source import model_source
from grpo_studio.training.precision import autocasts
from grpo_studio.training.reward_setup import kept_rewards
from grpo_studio.training.tokenization import load_tokenizer
from grpo_studio.training.usable_rows import usable_rows


def evaluate_checkpoint(
    config: RunConfig,
    settings: Settings,
    folder: RunFolder,
    checkpoint: Checkpoint | None,
    tell: Callable[[str], None],
    progress: Progress,
) -> list[GroupRecord]:
    """The groups that an evaluation during the run would record: `evaluation.rows` greedy ones, then sampled ones.

    Args:
        config: the run's; `evaluation` says how many rows and samples.
        checkpoint: None is the model as it was before training.
        tell: called with what is being made ready.
        progress: told of the completions.

    Raises:
        StudioError: model, data or verifiers cannot be used, or the device has too little memory.
    """
    rows = _held_out_rows(config, settings, tell)
    model, tokenizer = load_model(config, settings, checkpoint, tell)
    judged = kept_rewards(config, settings, folder, model.device, tell)
    try:
        scorer = RowScorer(
            tokenizer,
            judged,
            config,
            tuple(end_tokens(model, tokenizer)),
            config.algorithm.extra.get("chat_template_kwargs") or {},
            done=_counted(len(rows) * (1 + config.evaluation.samples), progress),
        )
        with torch.autocast(model.device.type, torch.bfloat16, enabled=autocasts(config.model)):
            step = 0 if checkpoint is None else checkpoint.step
            return [*scorer.greedy(model, rows), *scorer.sampled(model, rows, step)]
    except torch.cuda.OutOfMemoryError as error:
        raise ModelError(
            "the device has too little memory to complete the held-out rows; stop what else runs on it"
        ) from error
    finally:
        judged.close()


def _held_out_rows(config: RunConfig, settings: Settings, tell: Callable[[str], None]) -> Sequence[Sample]:
    """As a session splits and filters them, so no row that was trained on."""
    tell("reading the data set")
    source = model_source(config, settings.cache, tell)
    tokenizer = load_tokenizer(source, config.model.revision, config.model.chat_template)
    splits = data.load(config.dataset, config.rows_wanted())
    rows = usable_rows(config, tokenizer, source, splits).splits.held_out[: config.evaluation.rows]
    if not rows:
        raise DataError("this run holds no rows out, so there is nothing to score; set dataset.held_out of a new run")
    return rows


def _counted(total: int, progress: Progress) -> Callable[[int], None]:
    done = [0]

    def count(more: int) -> None:
        done[0] += more
        progress(f"completed {done[0]:,} of {total:,}", done[0] / total)

    return count
