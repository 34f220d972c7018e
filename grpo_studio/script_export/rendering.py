"""train.py from its template. Text of a run enters it as Python literals alone, and is never looked at again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from grpo_studio.config import RunConfig
from grpo_studio.lora_targets import ALL_LINEAR, target_names
from grpo_studio.script_export.facts import ScriptFacts
from grpo_studio.script_export.literals import literal

TEMPLATE = Path(__file__).with_name("train.template")
_PLACE = re.compile(r"@@([A-Z_]+)@@")
_IF = re.compile(r"#\[if (\w+)\]")
COMMENTS: Final = {
    "num_generations": "G: completions of one prompt",
    "max_completion_length": "tokens after which a completion is cut off",
    "beta": "weight of the KL term; 0: no reference model",
    "per_device_train_batch_size": "completions in one pass of one process",
    "gradient_accumulation_steps": "passes before the optimizer steps: together the completions of a step",
    "num_iterations": "optimizer steps on each batch of completions",
    "reward_weights": "in the order of REWARDS",
    "shuffle_dataset": "data.jsonl is in the order in which the run took its rows",
    "seed": "of the weights of an adapter, of sampling and of the order of rows",
    "mask_truncated_completions": "leave completions that were cut off out of the loss",
}


def script(config: RunConfig, facts: ScriptFacts, run: str, command: str) -> str:
    """The text of train.py. `run` and `command` go into comments, so they must be plain words.

    Raises:
        ConfigError: a setting is no plain data.
    """
    lines = "".join(_chosen(TEMPLATE.read_text("utf-8"), _parts(config, facts)))
    places = _places(config, facts) | {"RUN": run, "COMMAND": command}
    return _PLACE.sub(lambda found: places[found[1]], lines)


def _parts(config: RunConfig, facts: ScriptFacts) -> set[str]:
    """The parts of the template that this run needs."""
    local = isinstance(facts.model, Path)
    wanted = {
        "cpu": facts.on_cpu,
        "no_hub": local and config.report.to == "none",
        "lora": config.memory.adapter != "none",
        "qlora": config.memory.adapter == "qlora",
        "skip_dead": config.effective_skip_dead_groups(),
        "template": facts.template is not None and not facts.plain,
        "plain": facts.plain,
        "end_token": facts.end_token is not None,
    }
    return {name for name, needed in wanted.items() if needed}


def _places(config: RunConfig, facts: ScriptFacts) -> dict[str, str]:
    memory, targets = config.memory, target_names(config.memory.lora_targets)
    rewards = [
        {"name": reward.label, "verifier": reward.verifier, "weight": reward.weight, "params": dict(reward.params)}
        for reward in config.rewards
    ]
    return {
        "MODEL": 'str(HERE / "model")' if isinstance(facts.model, Path) else literal(facts.model),
        "REVISION": literal(facts.revision),
        "REWARDS": literal(rewards),
        "SETTINGS": "\n".join(_settings(facts.grpo)),
        "LORA_RANK": literal(memory.lora_rank),
        "LORA_ALPHA": literal(memory.lora_alpha),
        "LORA_DROPOUT": literal(memory.lora_dropout),
        "LORA_TARGETS": literal(ALL_LINEAR if targets is None else list(targets)),
        "DTYPE": facts.dtype,
        "END_TOKEN": literal(facts.end_token),
    }


def _settings(grpo: Mapping[str, Any]) -> Iterator[str]:
    yield "        output_dir=str(OUTPUT),"
    for name, value in grpo.items():
        comment = f"  # {COMMENTS[name]}" if name in COMMENTS else ""
        yield f"        {name}={literal(value, 8)},{comment}"


def _chosen(text: str, parts: set[str]) -> Iterator[str]:
    """The lines whose conditions, which may lie in each other, all hold."""
    states: list[bool] = []
    for line in text.splitlines(keepends=True):
        mark = line.strip()
        if found := _IF.fullmatch(mark):
            states.append(found[1] in parts)
        elif mark == "#[else]":
            states[-1] = not states[-1]
        elif mark == "#[end]":
            states.pop()
        elif all(states):
            yield line
