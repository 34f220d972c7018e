"""What the script of a run is made of, as far as it takes the libraries: its prompts, its template, TRL's settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from trl import GRPOConfig
from trl.trainer.utils import RepeatSampler

from grpo_studio import data
from grpo_studio.catalog import locate
from grpo_studio.chat_templates import PLAIN
from grpo_studio.config import RunConfig
from grpo_studio.errors import DataError
from grpo_studio.script_export.facts import Recorded, ScriptFacts, ScriptRow
from grpo_studio.settings import Settings
from grpo_studio.store.writer import storable
from grpo_studio.training.arguments import grpo_settings
from grpo_studio.training.model_source import model_source
from grpo_studio.training.precision import effective_dtype
from grpo_studio.training.tokenization import load_tokenizer, prompt_for, stop_at_end_token
from grpo_studio.training.usable_rows import usable_rows

MOST_ROWS = 20_000
"""A larger data set is cut to the rows that the steps take."""
NOT_WRITTEN = ("output_dir", "hub_model_id", "vllm_group_port")
SERVER = "http://127.0.0.1:8000"
"""Where `trl vllm-serve` answers unless it is told otherwise."""


def script_facts(config: RunConfig, settings: Settings, told: Recorded, tell: Callable[[str], None]) -> ScriptFacts:
    """Read model, tokenizer and data as the run did.

    Raises:
        StudioError: one of them is gone, or the data is not what the run was trained on.
    """
    source = model_source(config, settings.cache, tell)
    tell("reading the data set")
    splits = data.load(config.dataset, config.rows_wanted())
    tokenizer = load_tokenizer(source, config.model.revision, config.model.chat_template)
    samples = usable_rows(config, tokenizer, source, splits).splits.train
    dtype, on_cpu = _number_format(config, told)
    grpo = script_settings(config, dtype, on_cpu, tokenizer)
    _require_same_rows(config, samples, told, grpo)
    taken, cut = rows_in_use(config, samples, grpo)
    chosen = config.model.chat_template
    template = tokenizer.chat_template
    return ScriptFacts(
        grpo=grpo,
        model=Path(source) if locate(config.model.id, settings.cache).kind != "hub" else source,
        revision=config.model.revision,
        template=template if isinstance(template, str) else None,
        plain=chosen == PLAIN,
        end_token=tokenizer.eos_token if chosen not in (None, PLAIN) else None,
        dtype=dtype,
        on_cpu=on_cpu,
        rows=[ScriptRow(prompt_for(tokenizer, one.messages), one.question, one.columns) for one in taken],
        cut=cut,
    )


def _number_format(config: RunConfig, told: Recorded) -> tuple[str, bool]:
    """The format of the weights and whether the run was on a CPU, as recorded; before that, as it would be here."""
    on_cpu = not torch.cuda.is_available() if told.device is None else told.device.startswith("cpu")
    known = config.model.dtype is None and told.dtype in ("float32", "bfloat16")
    return str(told.dtype) if known else effective_dtype(config.model), on_cpu


def script_settings(config: RunConfig, dtype: str, on_cpu: bool, tokenizer: Any) -> dict[str, Any]:
    """The fields of GRPOConfig that the script sets, in the order of the run's own."""
    checkpoint = config.checkpoint
    model = {
        "dtype": dtype,
        "attn_implementation": config.model.attn_implementation,
        "revision": config.model.revision,
    }
    found = grpo_settings(config, Path("output")) | {
        "model_init_kwargs": {name: value for name, value in model.items() if value is not None},
        "use_cpu": on_cpu,
        "bf16": config.model.dtype == "mixed" or (not on_cpu and dtype == "bfloat16"),
        "dataloader_pin_memory": not on_cpu,
        "save_strategy": "steps" if checkpoint.every else "no",
        "save_steps": checkpoint.every or config.algorithm.steps,
        "save_total_limit": checkpoint.keep,
        "logging_steps": 1,
        "disable_tqdm": True,
        "report_to": config.report.to,
    }
    if config.rollout.engine == "vllm_server":
        found["vllm_server_base_url"] = config.rollout.server_url or SERVER
    asked = SimpleNamespace(generation_kwargs=found.get("generation_kwargs"))
    stop_at_end_token(asked, config, tokenizer)
    found["generation_kwargs"] = asked.generation_kwargs
    empty = {name for name, field in GRPOConfig.__dataclass_fields__.items() if field.default is None}
    return {
        name: value
        for name, value in found.items()
        if name not in NOT_WRITTEN and not (value is None and name in empty)
    }


def _in_order(config: RunConfig, rows: int, grpo: dict[str, Any]) -> RepeatSampler:
    """The places of rows as TRL takes them, each once for a batch."""
    return RepeatSampler(
        range(rows),
        mini_repeat_count=1,
        batch_size=config.algorithm.prompts_per_step,
        shuffle=grpo.get("shuffle_dataset", True),
        seed=config.algorithm.seed,
    )


def _require_same_rows(config: RunConfig, samples: Sequence[data.Sample], told: Recorded, grpo: dict[str, Any]) -> None:
    """Compare with what was recorded: the number of rows, and the prompts of the first step.

    Raises:
        DataError: they differ.
    """
    again = f"{config.dataset.source} no longer gives the rows that this run was trained on"
    if told.train_rows is not None and told.train_rows != len(samples):
        raise DataError(
            f"{again}: {len(samples):,} rows to train on, and the run had {told.train_rows:,}; put the data set back "
            "as it was, or start a new run from what it is now"
        )
    first = itertools.islice(_in_order(config, len(samples), grpo), config.algorithm.prompts_per_step)
    if told.first_prompts and sorted(told.first_prompts) != sorted(storable(samples[at].question) for at in first):
        raise DataError(
            f"{again}: the prompts of the first step are others; put the data set back as it was, or start a new run "
            "from what it is now"
        )


def rows_in_use(
    config: RunConfig, samples: Sequence[data.Sample], grpo: dict[str, Any]
) -> tuple[Sequence[data.Sample], str]:
    """All rows, or of a large set those that the steps take, in that order; then `shuffle_dataset` is switched off."""
    prompts = config.algorithm.prompts_per_step
    needed = -(-config.algorithm.steps // config.algorithm.num_iterations) * prompts
    if len(samples) <= MOST_ROWS or needed >= len(samples) // prompts * prompts:
        return samples, ""
    taken = [samples[at] for at in itertools.islice(_in_order(config, len(samples), grpo), needed)]
    grpo["shuffle_dataset"] = False
    return taken, f"data.jsonl holds the {needed:,} of {len(samples):,} training rows that the steps take, in order"
