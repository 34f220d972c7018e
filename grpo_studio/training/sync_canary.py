"""Do engine and trainer still mean the same weights? A fixed prompt is sampled from the engine after a weight sync, and
the trainer gives the same tokens its own log-probs. A sync that is stale, partial or lossy shows in the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import broadcast_object_list

from grpo_studio.engine_settings import RolloutSettings
from grpo_studio.errors import RolloutError
from grpo_studio.training.scoring_mode import scoring_mode

PROMPT = "A canary in a coal mine warns of"
TOKENS = 8
SEED = 0
METRIC = "policy/canary_difference"

Tell = Callable[[str, str, dict[str, float]], None]
"""Takes the kind of an event, its message and its figures."""


@dataclass(frozen=True)
class Sample:
    """What the engine made of the prompt: token ids, and the log-prob of each in nats, at temperature 1."""

    tokens: list[int]
    logps: list[float]


class SyncCanary:
    """Times every weight sync of a trainer's vLLM engine as the phase `sync`, and compares after each k-th.

    With several processes all of them compare, since a sharded model needs them all; they agree on the greatest
    difference. `tell(kind, message, data)` is called when the bound is passed, and again once it has been met between.
    """

    def __init__(self, trainer: Any, tokenizer: Any, settings: RolloutSettings, tell: Tell) -> None:
        self._trainer = trainer
        self._settings = settings
        self._tell = tell
        self._prompt: list[int] = tokenizer(PROMPT, add_special_tokens=False)["input_ids"]
        self._syncs = 0
        self._drifted = False
        self._differences: list[float] = []
        self._plain_sync: Callable[[], None] = trainer.vllm_generation.sync_weights
        trainer.vllm_generation.sync_weights = self._sync

    def take(self) -> dict[str, float]:
        """The greatest difference since the last call, in nats a token, by its metric's name; empty without one."""
        differences, self._differences = self._differences, []
        return {METRIC: _greatest(differences)} if differences else {}

    def _sync(self) -> None:
        with self._trainer._clock.phase("sync"):
            self._plain_sync()
            self._syncs += 1
            every = self._settings.sync_canary
            if every and self._syncs % every == 0:
                self._judge(self._compare())

    def _compare(self) -> float:
        generation = self._trainer.vllm_generation
        sample = _sample_server if generation.mode == "server" else _sample_colocated
        theirs = sample(generation, self._prompt)
        ours = trainer_logps(self._trainer, self._prompt, theirs.tokens)
        here = mean_difference(theirs.logps, ours)
        accelerator = self._trainer.accelerator
        if accelerator.num_processes == 1:
            return here
        return _greatest(accelerator.gather(torch.tensor([here], device=accelerator.device)).tolist())

    def _judge(self, difference: float) -> None:
        """Raises RolloutError when the difference is past the bound and that is to stop the run."""
        self._differences.append(difference)
        bound = self._settings.canary_bound
        drifted = not difference <= bound
        if drifted and not self._drifted:
            data = {"difference": difference, "bound": bound, "sync": self._syncs}
            self._tell("canary_drift", drift_message(difference, bound), data)
        self._drifted = drifted
        if drifted and self._settings.canary_stops:
            raise RolloutError(drift_message(difference, bound))


def mean_difference(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """Mean absolute difference of two rows of log-probs of the same tokens, in nats a token; NaN when one is NaN.

    Raises:
        ValueError: the rows are empty or of different lengths.
    """
    if not theirs:
        raise ValueError("no token to compare")
    return math.fsum(abs(a - b) for a, b in zip(theirs, ours, strict=True)) / len(theirs)


def drift_message(difference: float, bound: float) -> str:
    """What a difference past the bound means, in one line."""
    return (
        f"engine and trainer differ by {difference:.3g} nats a token on the canary's prompt, and "
        f"rollout.canary_bound is {bound:g}: the weights did not reach the engine whole, or it computes otherwise"
    )


@torch.no_grad()
def trainer_logps(trainer: Any, prompt: list[int], tokens: list[int]) -> list[float]:
    """Log-probs of `tokens` after `prompt` in the trainer's present weights, at temperature 1; dropout is off for it.

    A forward of the model by itself: a collective when the model is sharded.
    """
    model = trainer.model
    ids = torch.tensor([prompt + tokens], device=trainer.accelerator.device)
    with scoring_mode(model), trainer.accelerator.autocast():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    predicted = logits[0, len(prompt) - 1 : -1].float().log_softmax(-1)
    return predicted.gather(-1, ids[0, len(prompt) :, None]).squeeze(-1).tolist()


def _sample_colocated(generation: Any, prompt: list[int]) -> Sample:
    from vllm import SamplingParams

    how = SamplingParams(temperature=1.0, max_tokens=TOKENS, logprobs=0, seed=SEED, ignore_eos=True)
    [answer] = generation.llm.generate([{"prompt_token_ids": prompt}], sampling_params=how, use_tqdm=False)
    sampled = answer.outputs[0]
    tokens = list(sampled.token_ids)
    return Sample(tokens, [step[token].logprob for token, step in zip(tokens, sampled.logprobs, strict=True)])


def _sample_server(generation: Any, prompt: list[int]) -> Sample:
    """One process asks; all get the answer."""
    answers: list[Sample | None] = [None]
    if generation.accelerator.is_main_process:
        extra = {"seed": SEED, "ignore_eos": True}
        output = generation.vllm_client.generate(
            [prompt], temperature=1.0, max_tokens=TOKENS, logprobs=0, generation_kwargs=extra
        )
        logps = [math.nan if step[0] is None else step[0] for step in output["logprobs"][0]]
        answers = [Sample(output["completion_ids"][0], logps)]
    broadcast_object_list(answers, from_process=0)
    answer = answers[0]
    if answer is None:
        raise RolloutError("the canary's sample did not come from the first process; see the log of the vLLM server")
    return answer


def _greatest(values: Sequence[float]) -> float:
    """The greatest of some values; NaN as soon as one is."""
    return math.nan if any(math.isnan(value) for value in values) else max(values)
