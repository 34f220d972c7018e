"""What a person is told of a script: README.md, and the lines of the command. Nothing is left out without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grpo_studio import __version__
from grpo_studio.config import RunConfig
from grpo_studio.resume_rules import changes, flat
from grpo_studio.script_export.facts import Recorded, ScriptFacts
from grpo_studio.shown import shown


def command_of(config: RunConfig) -> str:
    """How the script is started: plain words, whatever the settings hold."""
    scale = config.scale
    if config.world_size == 1:
        return "python train.py"
    several = ""
    if scale.machines > 1:
        several = (
            f" --num_machines {scale.machines} --machine_rank RANK --main_process_ip ADDRESS "
            f"--main_process_port {scale.main_process_port}"
        )
    return f"accelerate launch --num_processes {config.world_size}{several} train.py"


def differences(
    config: RunConfig, first: RunConfig, told: Recorded, facts: ScriptFacts, unknown: Sequence[str]
) -> list[str]:
    """All that the script does in another way than the run, or not at all: one sentence each.

    Args:
        first: the settings of the run's first attempt.
        unknown: names that verifiers import and that no installed package provides.
    """
    return [
        *_of_attempts(config, first, told),
        *_of_training(config, facts),
        *_of_engine(config),
        *_left_out(config),
        *(f"a verifier imports {name}, which no installed package provides: add it to requirements.txt"
          for name in unknown),
    ]  # fmt: skip


def _of_attempts(config: RunConfig, first: RunConfig, told: Recorded) -> Iterator[str]:
    if len(told.attempts) == 1:
        return
    times = len(told.attempts) - 1
    often = "1 time" if times == 1 else f"{times} times"
    yield f"the run was resumed {often}; the script begins at step 0 and goes through"
    if changed := changes(flat(first), flat(config)):
        named = ", ".join(str(one) for one in changed[:6]) + (" and more" if len(changed) > 6 else "")
        yield f"settings were changed when it was resumed, and the script has the newest: {named}"


def _of_training(config: RunConfig, facts: ScriptFacts) -> Iterator[str]:
    if facts.cut:
        yield facts.cut
    if config.memory.loss_backend != "trl":
        yield (
            f"the loss is TRL's own, where the run had the {config.memory.loss_backend} backend: the same up to the "
            "rounding of its numbers, and in bfloat16 that is seen sooner; it takes more memory"
            if config.memory.loss_backend == "liger"
            else "the loss is TRL's own, where the run had the full backend: the same up to the rounding of its numbers"
        )
    if isinstance(facts.model, str) and facts.revision is None:
        yield "the run named no revision of the model, so the script takes the newest as well; set REVISION to pin it"
    if config.scale.strategy == "fsdp":
        yield "what leaves the FSDP model is cast to bfloat16 by accelerate, where the run kept it in float32"


def _of_engine(config: RunConfig) -> Iterator[str]:
    if config.rollout.engine == "vllm_server":
        yield (
            "the run's vLLM server is not part of the script: start one first with `trl vllm-serve --model MODEL`, or "
            "give its address as vllm_server_base_url"
        )
    if config.uses_vllm:
        yield "vLLM does not sample the same tokens again on another card or in another version"
        if config.rollout.sync_canary:
            yield "engine and trainer are not compared after a weight sync (rollout.sync_canary)"


def _left_out(config: RunConfig) -> Iterator[str]:
    limits, report, kept = config.limits, config.report, config.checkpoint
    if config.dataset.held_out:
        yield "held-out rows are neither trained on nor scored (dataset.held_out, evaluation)"
    named = {"hours": limits.hours, "cost": limits.cost, "tokens": limits.tokens, "abstained": limits.abstained}
    if asked := [f"limits.{name}" for name, value in named.items() if value is not None]:
        yield f"nothing stops or pauses it early ({', '.join(asked)})"
    if kept.every and (kept.keep_best or kept.keep_every):
        yield f"of its checkpoints the newest {kept.keep} are kept, and no others (checkpoint.keep_best, keep_every)"
    if report.hub_repo is not None:
        yield "the final weights are not pushed to the Hub (report.hub_repo)"
    if config.alerts:
        yield "alerts are not raised (alerts)"


def readme(run: str, config: RunConfig, facts: ScriptFacts, told: Recorded, found: Sequence[str]) -> str:
    """The text of README.md; `run` is plain words, `found` what `differences` gave."""
    model = _code(facts.model) if isinstance(facts.model, str) else "the model in model/"
    rewards = "\n".join(
        f"- {_code(reward.label)}: {_code(reward.verifier)} from rewards/, weight {reward.weight:g}"
        for reward in config.rewards
    )
    return f"""# The run {run} as a TRL script

    pip install -r requirements.txt
    {command_of(config)}

It trains {model} on data.jsonl ({len(facts.rows):,} rows, from {_code(config.dataset.source)}) and prints each step's
mean reward and the mean of each verifier. Checkpoints and the final weights go to output/.

{rewards}

| file | what it is |
|---|---|
| train.py | settings, rewards, trainer: the file to read and to change |
| data.jsonl | the training rows, in the run's order: prompt, question, columns that the verifiers take |
| rewards/ | the verifiers as they judged the run: plain functions |
| run_support/ | code of GRPO Studio {__version__}: what verifiers import, the processes that run them, dead_groups.py |
| requirements.txt | the versions that the run had; what it did not record, as installed when this was written |

## What is the same

Settings, data, its order, prompts, chat template, seed, verifiers and their time limits. On the same device with the
same versions the first steps give the same rewards; rounding that differs between devices in time samples other tokens.
Besides TRL's own rules the script keeps those of the run, each marked in train.py: a completion that a verifier
abstained on has no reward, groups of equal rewards have exact zeros as advantages, and a step in which nothing can be
learned changes no weight.
{_trained_on(told)}
## What differs

{chr(10).join(f"- {one}" for one in found) or "Nothing that is known."}
"""


def _trained_on(told: Recorded) -> str:
    """Device and Python of the run, as a paragraph; nothing of a run that recorded neither."""
    device = "a CPU" if told.device is not None and told.device.startswith("cpu") else None
    parts = [f"on {_code(told.card)}" if told.card else f"on {device}" if device else ""]
    parts += [f"with Python {told.versions['python']}" if "python" in told.versions else ""]
    said = " ".join(part for part in parts if part)
    return f"\nThe run trained {said}.\n" if said else ""


def _code(text: str) -> str:
    return f"`{shown(text, 200).replace('`', chr(39))}`"
