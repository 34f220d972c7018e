"""The sync canary: what it compares, when it looks, and what it tells. The models are real; a second one is the engine."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_studio.config import RolloutSettings
from grpo_studio.errors import RolloutError
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.sync_canary import METRIC, TOKENS, SyncCanary, mean_difference, trainer_logps


class Engine:
    """Samples greedily from a model of its own by the method of TRL's client; `sync_weights` copies the trainer's."""

    mode = "server"

    def __init__(self, trainer: Any, model: Any) -> None:
        self.accelerator = trainer.accelerator
        self.vllm_client = self
        self.syncs = 0
        self.drops = False
        self._trainer, self._model = trainer, model

    def sync_weights(self) -> None:
        self.syncs += 1
        if not self.drops:
            self._model.load_state_dict(self._trainer.model.state_dict())

    @torch.no_grad()
    def generate(self, prompts: list[list[int]], max_tokens: int, **how: Any) -> dict[str, Any]:
        [prompt], tokens, logps = prompts, [], []
        for _ in range(max_tokens):
            row = self._model(torch.tensor([prompt + tokens])).logits[0, -1].log_softmax(-1)
            tokens.append(int(row.argmax()))
            logps.append([float(row.max())])
        return {"completion_ids": [tokens], "logprobs": [logps]}


class Accelerator(SimpleNamespace):
    def autocast(self) -> torch.autocast:
        return torch.autocast("cpu", enabled=False)


class Bench:
    """A trainer as far as the canary looks at it, its engine, and what was told."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        model = AutoModelForCausalLM.from_pretrained(folder)
        accelerator = Accelerator(device=torch.device("cpu"), num_processes=1, is_main_process=True)
        self.trainer = SimpleNamespace(model=model.train(), accelerator=accelerator, _clock=PhaseClock())
        self.engine = Engine(self.trainer, AutoModelForCausalLM.from_pretrained(folder))
        self.trainer.vllm_generation = self.engine
        self.told: list[tuple[str, str, dict[str, float]]] = []
        tokenizer = AutoTokenizer.from_pretrained(folder)
        rollout = RolloutSettings(engine="vllm_server", **settings)
        self.canary = SyncCanary(self.trainer, tokenizer, rollout, lambda *event: self.told.append(event))

    def train(self) -> None:
        with torch.no_grad():
            weight = self.trainer.model.lm_head.weight
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))


def test_the_difference_is_the_mean_of_absolute_ones() -> None:
    assert mean_difference([-1.0, -2.0, -3.0], [-1.5, -1.0, -3.0]) == pytest.approx(0.5)
    assert mean_difference([-1.0], [-1.0]) == 0
    assert math.isnan(mean_difference([-1.0, math.nan], [-1.0, -1.0]))


@pytest.mark.parametrize(("theirs", "ours"), [([], []), ([-1.0], [-1.0, -2.0])])
def test_rows_that_do_not_fit_are_no_comparison(theirs: list[float], ours: list[float]) -> None:
    with pytest.raises(ValueError, match=r"no token|argument 2 is longer"):
        mean_difference(theirs, ours)


def test_the_trainers_log_probs_are_those_of_the_plain_logits(tiny_model: Path) -> None:
    bench = Bench(tiny_model)
    prompt, tokens = [5, 6, 7], [8, 9]
    with torch.no_grad():
        rows = bench.trainer.model(torch.tensor([prompt + tokens])).logits[0].log_softmax(-1)
    expected = [float(rows[2, 8]), float(rows[3, 9])]
    assert trainer_logps(bench.trainer, prompt, tokens) == pytest.approx(expected, abs=1e-6)
    assert bench.trainer.model.training


def test_after_a_true_sync_both_agree(tiny_model: Path) -> None:
    bench = Bench(tiny_model)
    bench.train()
    bench.engine.sync_weights()
    assert bench.engine.syncs == 1
    assert bench.canary.take()[METRIC] < 1e-5
    assert bench.told == []
    assert bench.trainer._clock.seconds["sync"] > 0


def test_a_stale_engine_is_told_once_until_it_has_caught_up(tiny_model: Path) -> None:
    bench = Bench(tiny_model, canary_bound=0.01)
    bench.train()
    bench.engine.drops = True
    bench.engine.sync_weights()
    bench.engine.sync_weights()
    difference = bench.canary.take()[METRIC]
    assert difference > 0.01
    [(kind, message, data)] = bench.told
    assert kind == "canary_drift"
    assert f"differ by {difference:.3g} nats a token" in message
    assert "rollout.canary_bound is 0.01" in message
    assert data == {"difference": pytest.approx(difference), "bound": 0.01, "sync": 1}
    bench.engine.drops = False
    bench.engine.sync_weights()
    assert bench.canary.take()[METRIC] < 1e-5
    bench.train()
    bench.engine.drops = True
    bench.engine.sync_weights()
    assert [event[2]["sync"] for event in bench.told] == [1, 4]


def test_a_drift_ends_the_run_when_it_is_to(tiny_model: Path) -> None:
    bench = Bench(tiny_model, canary_bound=0.01, canary_stops=True)
    bench.engine.sync_weights()
    bench.train()
    bench.engine.drops = True
    with pytest.raises(RolloutError, match="engine and trainer differ by"):
        bench.engine.sync_weights()
    assert len(bench.told) == 1


def test_a_nan_is_a_drift(tiny_model: Path) -> None:
    bench = Bench(tiny_model)
    with torch.no_grad():
        bench.trainer.model.lm_head.weight.fill_(math.nan)
    bench.engine.drops = True
    bench.engine.sync_weights()
    assert math.isnan(bench.canary.take()[METRIC])
    assert len(bench.told) == 1


@pytest.mark.parametrize(("every", "looks"), [(0, 0), (1, 6), (2, 3), (4, 1)])
def test_it_looks_after_every_so_many_syncs(tiny_model: Path, every: int, looks: int) -> None:
    bench = Bench(tiny_model, sync_canary=every)
    compared = 0
    for _ in range(6):
        bench.engine.sync_weights()
        compared += len(bench.canary.take())
    assert bench.engine.syncs == 6
    assert compared == looks


def test_metrics_are_taken_once(tiny_model: Path) -> None:
    bench = Bench(tiny_model)
    assert bench.canary.take() == {}
    bench.engine.sync_weights()
    assert list(bench.canary.take()) == [METRIC]
    assert bench.canary.take() == {}


def test_the_prompt_is_long_enough_to_say_something(tiny_model: Path) -> None:
    bench = Bench(tiny_model)
    assert len(bench.canary._prompt) > 4
    assert TOKENS == 8
