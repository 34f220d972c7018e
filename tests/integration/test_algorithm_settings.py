"""Every setting that `check` accepts reaches TRL and trains: real trainer, tiny model, two steps each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trained_here import trainer_of

from grpo_studio.settings import Settings

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")

Trained = Callable[..., dict[str, dict[int, float | None]]]


@pytest.fixture
def trained(tiny_model: Path, settings: Settings) -> Trained:
    """Train in this process; gives the recorded metrics by name and step."""
    train = trainer_of(tiny_model, settings)
    return lambda *overrides: train(*overrides).metrics


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
        [
            "algorithm.mask_truncated=true",
            "algorithm.max_completion_length=60",
            "rewards=[{verifier: regex_match, params: {pattern: '^.?[a-m]', match: search}}]",
        ],
        ["algorithm.delta=2.0", "algorithm.epsilon_high=0.28"],
        ["algorithm.top_k=20", "algorithm.top_p=0.9", "algorithm.min_p=0.05", "algorithm.temperature=0.7"],
        ["algorithm.optimizer=adafactor", "algorithm.lr_schedule=cosine"],
        ["algorithm.optimizer=sgd", "algorithm.lr_schedule=linear", "algorithm.max_grad_norm=0"],
        ["memory.gradient_checkpointing=true", "memory.micro_batch=2"],
        ["model.dtype=float32", "model.attn_implementation=eager"],
        ["memory.chunk_size=1", "memory.micro_batch=4"],
        ["model.dtype=mixed", "algorithm.beta=0.04"],
        [
            "memory.loss_backend=full",
            "algorithm.temperature=0.7",
            "algorithm.extra={entropy_coef: 0.01, repetition_penalty: 1.1}",
        ],
        ["memory.loss_backend=trl", "algorithm.extra={top_entropy_quantile: 0.5, off_policy_mask_threshold: 0.5}"],
        ["algorithm.loss_type=sapo", "algorithm.extra={sapo_temperature_neg: 1.2, use_bias_correction_kl: true}"],
    ],
    ids=lambda overrides: overrides[0].partition(".")[2],
)
def test_settings_train(trained: Trained, overrides: list[str]) -> None:
    metrics = trained(*overrides)
    assert list(metrics["optim/loss"]) == [1, 2]
    assert all(value is not None for value in metrics["optim/loss"].values())
    assert metrics["policy/entropy"]  # of the steps in which a completion was in the update


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
    def course() -> list[float | None]:
        metrics = trained("algorithm.seed=7")
        return [*metrics["reward/mean"].values(), *metrics["optim/loss"].values()]

    assert course() == course()


@pytest.mark.parametrize("aggregation", ["sum_then_normalize", "normalize_then_sum"])
def test_dead_groups_have_no_advantage_under_either_aggregation(trained: Trained, aggregation: str) -> None:
    rewards = "[{verifier: regex_match, weight: 0.7, params: {pattern: '', match: search}}, {verifier: regex_match, name: letter, weight: 0.2, params: {pattern: '[a-m]', match: search}}]"
    metrics = trained(f"rewards={rewards}", f"algorithm.extra={{multi_objective_aggregation: {aggregation}}}")
    for step, share in metrics["group/mixed"].items():
        assert (metrics["group/effective_batch"][step] == 0) == (share == 0)
        assert (metrics["advantage/abs_mean"][step] == 0) == (share == 0)
