"""Every setting that `check` accepts reaches TRL and trains: real trainer, tiny model, two steps each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.settings import Settings
from grpo_studio.stopping import StopFlag
from grpo_studio.store.folder import create_run
from grpo_studio.store.reader import RunReader
from grpo_studio.store.writer import RunWriter

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

Trained = Callable[..., dict[str, dict[int, float | None]]]


@pytest.fixture
def trained(tmp_path: Path, tiny_model: Path, settings: Settings) -> Trained:
    """Train in this process; gives the recorded metrics by name and step."""

    def train(*overrides: str) -> dict[str, dict[int, float | None]]:
        from grpo_studio.training.session import Session

        base = {
            "model": {"id": str(tiny_model)},
            "dataset": {"held_out": 0, "prompt_template": "{prompt}"},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {
                "steps": 2, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 6, "learning_rate": 1e-3,
            },
        }  # fmt: skip
        config = RunConfig.model_validate(with_overrides(base, overrides))
        folder = create_run(settings.runs_dir, config, "settings")
        writer = RunWriter(folder.database, attempt=1)
        try:
            Session(config, settings, folder, writer, StopFlag()).run()
        finally:
            writer.close()
        metrics: dict[str, dict[int, float | None]] = {}
        with RunReader(folder.database) as reader:
            for name, step, value in reader.rows("SELECT name, step, value FROM metric"):
                metrics.setdefault(name, {})[step] = value
        return metrics

    return train


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"])
def test_every_loss_type_trains(trained: Trained, loss_type: str) -> None:
    metrics = trained(f"algorithm.loss_type={loss_type}")
    assert list(metrics["optim/loss"]) == [1, 2]
    assert all(value is not None for value in metrics["optim/loss"].values())


@pytest.mark.parametrize(
    "overrides",
    [
        ["algorithm.scale_rewards=batch"],
        ["algorithm.scale_rewards=none"],
        ["algorithm.importance_sampling_level=sequence"],
        ["algorithm.mask_truncated=true"],
        ["algorithm.delta=2.0", "algorithm.epsilon_high=0.28"],
        ["algorithm.top_k=20", "algorithm.top_p=0.9", "algorithm.min_p=0.05", "algorithm.temperature=0.7"],
        ["algorithm.optimizer=adafactor", "algorithm.lr_schedule=cosine"],
        ["algorithm.optimizer=sgd", "algorithm.lr_schedule=linear", "algorithm.max_grad_norm=0"],
        ["memory.gradient_checkpointing=true", "memory.micro_batch=2"],
        ["model.dtype=float32", "model.attn_implementation=eager"],
    ],
    ids=lambda overrides: overrides[0].partition(".")[2],
)
def test_settings_train(trained: Trained, overrides: list[str]) -> None:
    metrics = trained(*overrides)
    assert list(metrics["optim/loss"]) == [1, 2]
    assert all(value is not None for value in metrics["optim/loss"].values())


def test_the_learning_rate_follows_its_schedule(trained: Trained) -> None:
    rates = trained("algorithm.steps=4", "algorithm.lr_schedule=constant_with_warmup", "algorithm.warmup_ratio=0.5")[
        "optim/lr"
    ]
    assert [rates[step] for step in (1, 2, 3, 4)] == pytest.approx([0.0, 5e-4, 1e-3, 1e-3])


def test_with_several_iterations_a_group_belongs_to_the_step_that_made_it(trained: Trained) -> None:
    metrics = trained("algorithm.steps=4", "algorithm.num_iterations=2", "algorithm.learning_rate=0.01")
    assert list(metrics["reward/mean"]) == [1, 3]
    assert list(metrics["optim/loss"]) == [1, 2, 3, 4]
    ratios = metrics["policy/ratio_mean"]
    assert ratios[1] == pytest.approx(1.0, abs=1e-5)
    assert ratios[2] != pytest.approx(1.0, abs=1e-5)


def test_a_reference_model_gives_a_kl_that_grows_from_zero(trained: Trained) -> None:
    kl = trained("algorithm.beta=0.1", "algorithm.learning_rate=0.01")["policy/kl"]
    assert kl[1] == pytest.approx(0.0, abs=1e-6)
    assert kl[2] is not None
    assert kl[2] > 0


def test_the_same_seed_gives_the_same_run(trained: Trained) -> None:
    def course(**_: Any) -> list[float | None]:
        metrics = trained("algorithm.seed=7")
        return [*metrics["reward/mean"].values(), *metrics["optim/loss"].values()]

    assert course() == course()
