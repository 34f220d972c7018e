"""`python tests/rollouts/colocated_engine.py MODEL FOLDER`: TRL's GRPOTrainer with a real vLLM engine in its process.

Trains two steps and then plays with the weight sync; prints what it saw as one line of JSON, the last of its output.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main(model: str, folder: Path) -> dict[str, Any]:
    from grpo_studio.config import RolloutSettings
    from grpo_studio.training.vllm_cpu import prepare_vllm_on_cpu

    prepare_vllm_on_cpu()
    from grpo_studio.training.phases import PhaseClock
    from grpo_studio.training.sync_canary import SyncCanary

    began = time.perf_counter()
    trainer = make_trainer(model, folder)
    seen: dict[str, Any] = {"seconds_to_build": time.perf_counter() - began, "port": int(os.environ["MASTER_PORT"])}
    trainer._clock = PhaseClock()
    events: list[str] = []
    settings = RolloutSettings(engine="vllm_colocate", canary_bound=0.01)
    canary = SyncCanary(trainer, trainer.processing_class, settings, lambda kind, message, data: events.append(kind))
    before = engine_weights(trainer)
    trainer.train()
    seen |= {"trained": canary.take(), "sync_seconds": trainer._clock.seconds["sync"]}
    name = "sampling/sampling_logp_difference/max"
    seen["sampler_differences"] = [row[name] for row in trainer.state.log_history if name in row]
    trainer.vllm_generation.sync_weights()
    after = engine_weights(trainer)
    seen["engine_moved"] = max(float((after[name] - before[name]).abs().max()) for name in before)
    seen["engine_differs"] = farthest(trainer, after)
    canary.take()
    seen |= play_with_the_sync(trainer, canary, events)
    return seen


def play_with_the_sync(trainer: Any, canary: Any, events: list[str]) -> dict[str, Any]:
    """Change the trainer's weights, first with a sync that brings nothing across, then with a true one."""
    import torch

    from grpo_studio.errors import RolloutError

    true_sync = canary._plain_sync
    with torch.no_grad():
        trainer.model.lm_head.weight.add_(torch.randn_like(trainer.model.lm_head.weight) * 0.1)
    canary._plain_sync = lambda: None
    trainer.vllm_generation.sync_weights()
    seen: dict[str, Any] = {"stale": canary.take(), "stale_events": list(events)}
    canary._settings = canary._settings.model_copy(update={"canary_stops": True})
    try:
        trainer.vllm_generation.sync_weights()
    except RolloutError as error:
        seen["refusal"] = str(error)
    canary._plain_sync = true_sync
    canary.take()
    trainer.vllm_generation.sync_weights()
    return seen | {"synced": canary.take(), "events": events}


def make_trainer(model: str, folder: Path) -> Any:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    arguments = GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        max_steps=2,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=8,
        learning_rate=1e-2,
        use_vllm=True,
        vllm_mode="colocate",
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        model_init_kwargs={"dtype": "float32"},
    )
    rows = [{"prompt": [{"role": "user", "content": f"What is {n} + 4?"}]} for n in range(16)]
    return GRPOTrainer(model=model, args=arguments, train_dataset=Dataset.from_list(rows), reward_funcs=count_sevens)


def count_sevens(completions: list[Any], **columns: Any) -> list[float]:
    return [float(len(completion[0]["content"]) % 7) for completion in completions]


def engine_weights(trainer: Any) -> dict[str, Any]:
    model = trainer.vllm_generation.llm.llm_engine.model_executor.driver_worker.model_runner.model
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def farthest(trainer: Any, engine: dict[str, Any]) -> float:
    """The greatest difference between trainer and engine over all weights that both hold under one name."""
    ours = {name: value.detach() for name, value in trainer.model.named_parameters() if name in engine}
    assert len(ours) > 5
    return max(float((engine[name][: len(value)] - value).abs().max()) for name, value in ours.items())


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
