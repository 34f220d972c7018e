"""One frozen, scored batch, and real trainers that train on it: what the tests of the loss backends share.

Only sampling and scoring are replaced. The loop, the shuffling, the split into micro-batches, the normalisation and the
optimizer are those of TRL and transformers, for TRL's own plain trainer and for ours alike.
"""

from __future__ import annotations

import copy
import gc
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # as the worker does on a CPU, and before torch is imported

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOTrainer

from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.data import Sample
from grpo_studio.store.records import ScoreRecord
from grpo_studio.training.adapters import adapter_arguments
from grpo_studio.training.arguments import grpo_arguments
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.scored_batch import ScoredBatch
from grpo_studio.training.trainer import StudioTrainer

PLAIN = "plain"
"""TRL's own trainer, without any of ours: what the backends are compared with."""
BACKENDS = ("trl", "full", "liger")
LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")
GROUP = 4
LONGEST = 7
PROMPT_LENGTHS = (5, 3, 4, 2)
COMPLETION_LENGTHS = (4, 7, 1, 5, 6, 2, 7, 3, 3, 6, 2, 4, 5, 1, 4, 6)
REWARDS = ((1.0, 0.0, 0.5, 0.0), (1.0, 1.0, 0.0, 0.25), (0.0, 0.0, 0.0, 1.0), (0.2, 0.9, 0.4, 0.1))
Batch = dict[str, torch.Tensor]


@dataclass
class Course:
    """What a run on frozen batches did, one entry an optimizer step.

    Args:
        losses: the loss of each micro-batch, as it went into backward.
        gradients: by parameter name, before the optimizer's step and without clipping.
        logs: what TRL logged.
        recorded: what our trainer told its listener of each step; empty for TRL's own.
        scored: what it told of each batch that it scored.
        weights: after the step, by parameter name.
    """

    losses: list[list[float]] = field(default_factory=list)
    gradients: list[dict[str, torch.Tensor | None]] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)
    recorded: list[dict[str, Any]] = field(default_factory=list)
    scored: list[ScoredBatch] = field(default_factory=list)
    weights: list[dict[str, torch.Tensor]] = field(default_factory=list)

    def loss(self, step: int) -> float:
        return sum(self.losses[step])


class Setting:
    """A model with its tokenizer, loaded once and copied for every run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def config(self, backend: str = "trl", *overrides: str, prompts: int = 2) -> RunConfig:
        """The configuration of a run on the batch of so many prompts; plain gradient descent, unclipped gradients."""
        base = {
            "model": {"id": str(self.folder), "dtype": "float32"},
            "algorithm": {
                "prompts_per_step": prompts, "group_size": GROUP, "max_completion_length": LONGEST, "steps": 1,
                "learning_rate": 0.5, "optimizer": "sgd", "max_grad_norm": 0.0,
            },
            "memory": {"loss_backend": "trl" if backend == PLAIN else backend, "skip_dead_groups": False},
        }  # fmt: skip
        return RunConfig.model_validate(with_overrides(base, overrides))

    def batch(
        self,
        prompts: int = 2,
        *,
        rewards: Sequence[Sequence[float]] = REWARDS,
        reference: bool = False,
        ratio: str | None = None,
        truncated: Sequence[int] = (),
        temperature: float = 1.0,
        noise: float = 0.4,
        drift: float = 0.0,
    ) -> Batch:
        """What TRL makes of sampled and scored completions, here from fixed random tokens.

        Prompts and completions have unequal lengths. The old log-probs are the model's own with noise that takes some
        tokens past either clip bound, for advantages of either sign.

        Args:
            prompts: groups of GROUP completions.
            rewards: one row a prompt, of the scores that advantages are made from.
            reference: also give a reference policy's log-probs.
            ratio: also give vLLM's importance-sampling ratio, one a `token` or one a `sequence`.
            truncated: completions that the mask takes out whole.
            noise: deviation of the tokens' log-ratios, in nats.
            drift: log-ratio of whole completions, up and down in turn.
        """
        count = prompts * GROUP
        random = torch.Generator().manual_seed(5)
        vocabulary = self.model.config.get_text_config().vocab_size
        completions = _padded([_tokens(n, vocabulary, random) for n in COMPLETION_LENGTHS[:count]], left=False)
        asked = [_tokens(n, vocabulary, random) for n in PROMPT_LENGTHS[:prompts]]
        prompt = _padded([row for row in asked for _ in range(GROUP)], left=True)
        mask = completions[1].clone()
        mask[list(truncated)] = 0
        logps = self.logps(prompt, (completions[0], mask), temperature)
        spread = torch.randn(logps.shape, generator=random) * noise
        spread[0::2] -= drift
        spread[1::2] += drift
        batch = {
            "prompt_ids": prompt[0],
            "prompt_mask": prompt[1],
            "completion_ids": completions[0],
            "completion_mask": mask,
            "advantages": advantages(torch.tensor(rewards[:prompts])),
            "num_items_in_batch": mask.sum(),
            "old_per_token_logps": logps + spread,
        }
        if reference:
            batch["ref_per_token_logps"] = logps + 0.5 * torch.randn(logps.shape, generator=random)
        if ratio is not None:
            shape = logps.shape if ratio == "token" else (count, 1)
            batch["importance_sampling_ratio"] = (0.3 * torch.randn(shape, generator=random)).exp()
        return batch

    @torch.no_grad()
    def logps(
        self, prompt: tuple[torch.Tensor, ...], completion: tuple[torch.Tensor, ...], temperature: float = 1.0
    ) -> torch.Tensor:
        """Log-probs (B, C) of completions, written out."""
        ids, mask = (torch.cat(pair, dim=1) for pair in zip(prompt, completion, strict=True))
        logits = self.model(input_ids=ids, attention_mask=mask).logits[:, prompt[0].shape[1] - 1 : -1] / temperature
        return logits.log_softmax(-1).gather(-1, completion[0][..., None]).squeeze(-1)

    def logps_of(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Log-probs (B, C) of a batch's completions by the model as it was loaded."""
        sides = ((batch[f"{side}_ids"], batch[f"{side}_mask"]) for side in ("prompt", "completion"))
        return self.logps(*sides)

    def trainer(
        self,
        backend: str,
        *batches: Batch,
        overrides: Sequence[str] = (),
        model: Any = None,
    ) -> GRPOTrainer:
        """A trainer that gets the batches in turn where it would sample and score; its `course` tells what it does."""
        config = self.config(backend, *overrides, prompts=batches[0]["advantages"].shape[0] // GROUP)
        trainer = self._build(backend, config, _Judged([]), model)
        trainer.use_vllm = "importance_sampling_ratio" in batches[0]
        waiting = iter(batches)

        def scored(inputs: Any) -> Batch:
            torch.manual_seed(11)  # the shuffle that follows draws from the global generator
            return {name: value.clone() for name, value in next(waiting).items()}

        trainer._generate_and_score_completions = scored
        return trainer

    def sampling_trainer(
        self,
        backend: str,
        rewards: Sequence[Sequence[float | None]],
        *overrides: str,
        lengths: Sequence[int] = COMPLETION_LENGTHS,
    ) -> GRPOTrainer:
        """A trainer that scores and normalises by itself; only the sampler's tokens and the verifier's word are fixed.

        Completion i has `lengths[i]` tokens; those that are shorter than LONGEST end by themselves.
        """
        config = self.config(backend, *overrides, prompts=len(rewards))
        trainer = self._build(backend, config, _Judged([value for row in rewards for value in row]), None)
        random = torch.Generator().manual_seed(5)
        vocabulary, end = self.model.config.vocab_size, self.tokenizer.eos_token_id
        rows = [_tokens(n, vocabulary, random).tolist() for n in lengths]
        rows = [row if len(row) == LONGEST else [*row[:-1], end] for row in rows]

        def sampled(prompt_ids: list[Any], *args: Any, **kwargs: Any) -> tuple[list[list[int]], None]:
            torch.manual_seed(11)
            return rows[: len(prompt_ids)], None

        trainer._generate_single_turn = sampled
        return trainer

    def _build(self, backend: str, config: RunConfig, judged: _Judged, model: Any) -> GRPOTrainer:
        settings = grpo_arguments(config, Path(tempfile.gettempdir()) / "frozen-batch")
        settings.model_init_kwargs = None  # the model is loaded already
        course = Course()
        prompts = config.algorithm.prompts_per_step * 4
        common = {
            "model": copy.deepcopy(self.model if model is None else model),
            "args": settings,
            "train_dataset": Dataset.from_dict({"prompt": ["a"] * prompts, "sample": [0] * prompts}),
            "processing_class": self.tokenizer,
            "callbacks": [_Watch(course)],
            **adapter_arguments(config.memory, "float32"),
        }
        samples = [Sample((), "a", None, {})]
        if backend == PLAIN:
            trainer = GRPOTrainer(reward_funcs=judged.functions(samples), **common)
        else:
            trainer = StudioTrainer(
                config=config, judged=judged, samples=samples, clock=PhaseClock(), listener=_Listener(course), **common
            )  # fmt: skip
        trainer.course = course
        _watch_losses(trainer, course)
        return trainer

    def run(self, backend: str, batch: Batch, *overrides: str, model: Any = None) -> Course:
        """Train on one batch; `backend` is PLAIN or one of BACKENDS."""
        return trained(self.trainer(backend, batch, overrides=overrides, model=model))


def trained(trainer: GRPOTrainer) -> Course:
    """Let it train to its end; what it did."""
    trainer.train()
    return trainer.course


@contextmanager
def small_work() -> Iterator[None]:
    """What a tiny model wants: one thread, and a garbage collector that does not walk through all of torch."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        torch.set_num_threads(threads)


def advantages(rewards: torch.Tensor) -> torch.Tensor:
    """Rewards (P, G) to advantages (P*G): less the group's mean, over its sample deviation, as TRL writes it."""
    return ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)).flatten()


def norm(gradient: Mapping[str, torch.Tensor | None]) -> float:
    """Euclidean norm over all parameters, in double precision; a parameter without a gradient counts as 0."""
    squares = (value.double().square().sum().item() for value in gradient.values() if value is not None)
    return math.sqrt(math.fsum(squares))


def difference(ours: Mapping[str, torch.Tensor | None], theirs: Mapping[str, torch.Tensor | None]) -> float:
    """Norm of the difference of two gradients over the norm of the second."""
    assert ours.keys() == theirs.keys()
    apart = {name: _less(ours[name], theirs[name]) for name in theirs}
    return norm(apart) / norm(theirs)


def _less(ours: torch.Tensor | None, theirs: torch.Tensor | None) -> torch.Tensor | None:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    return ours.double() - theirs.double()


def _tokens(count: int, vocabulary: int, random: torch.Generator) -> torch.Tensor:
    return torch.randint(3, vocabulary, (count,), generator=random)


def _padded(rows: list[torch.Tensor], left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and mask, with zeros to the left or right."""
    width = max(len(row) for row in rows)

    def pad(row: torch.Tensor) -> torch.Tensor:
        gap = torch.zeros(width - len(row), dtype=row.dtype)
        return torch.cat([gap, row] if left else [row, gap])

    return torch.stack([pad(row) for row in rows]), torch.stack([pad(torch.ones_like(row)) for row in rows])


def _watch_losses(trainer: GRPOTrainer, course: Course) -> None:
    train_one = trainer.training_step

    def training_step(*args: Any, **kwargs: Any) -> torch.Tensor:
        loss = train_one(*args, **kwargs)
        course.losses[-1].append(loss.item())
        return loss

    trainer.training_step = training_step


class _Watch(TrainerCallback):
    def __init__(self, course: Course) -> None:
        self._course = course

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._course.losses.append([])

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        named = kwargs["model"].named_parameters()
        self._course.gradients.append(
            {name: None if value.grad is None else value.grad.clone() for name, value in named if value.requires_grad}
        )

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        named = kwargs["model"].named_parameters()
        self._course.weights.append({name: value.detach().clone() for name, value in named})

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if "loss" in logs:
            self._course.logs.append(dict(logs))


class _Listener:
    def __init__(self, course: Course) -> None:
        self._course = course

    def batch_scored(self, step: int, batch: Any) -> None:
        self._course.scored.append(batch)

    def step_done(self, step: int, logs: dict[str, Any]) -> None:
        self._course.recorded.append(dict(logs))


class _Judged:
    """Fixed rewards in the place of a verifier's."""

    def __init__(self, rewards: Sequence[float | None]) -> None:
        self._rewards = list(rewards)

    def functions(self, samples: Sequence[Sample]) -> list[Any]:
        def reward(completions: Sequence[Any], **columns: Any) -> list[float | None]:
            return self._rewards[: len(completions)]

        return [reward]

    def latest(self) -> list[tuple[ScoreRecord, ...]]:
        return [(ScoreRecord("reward", value, 1.0),) for value in self._rewards]
