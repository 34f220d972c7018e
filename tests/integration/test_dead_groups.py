"""Groups that teach nothing cost nothing and change nothing, by every loss backend; see training/dead_groups.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from frozen_batch import BACKENDS, LOSS_TYPES, PLAIN, Setting, difference, norm, small_work, trained
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from grpo_studio import rules
from grpo_studio.errors import ConfigError

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")

SKIP, KEEP = "memory.skip_dead_groups=true", "memory.skip_dead_groups=false"
HALF_DEAD = ((1.0, 0.0, 0.5, 0.0), (1.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 0.0))
LIVE_ROWS = [*range(4), *range(8, 12)]
DEAD = ((1.0,) * 4, (0.0,) * 4)
CORE_LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")  # each is divided by something else
ADAM = (
    "algorithm.optimizer=adamw_torch", "algorithm.learning_rate=0.01", "algorithm.max_grad_norm=1",
    "algorithm.extra={weight_decay: 0.1}",
)  # fmt: skip


@pytest.fixture(scope="module")
def setting(tiny_model: Path) -> Iterator[Setting]:
    with small_work():
        yield Setting(tiny_model)


def watch_rows(trainer: Any) -> list[int]:
    """Rows of each pass through the model, as it goes."""
    rows: list[int] = []

    def note(module: Any, args: Any, kwargs: Any) -> None:
        rows.append(kwargs["input_ids"].shape[0])

    trainer.model.register_forward_pre_hook(note, with_kwargs=True)
    return rows


def by_loss_type(core: Sequence[str]) -> list[Any]:
    return [pytest.param(name, marks=[] if name in core else [pytest.mark.slow]) for name in LOSS_TYPES]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("micro_batch", [16, 4, 2])
@pytest.mark.parametrize("loss_type", by_loss_type(CORE_LOSS_TYPES))
def test_gradients_and_normalisers_do_not_change(
    setting: Setting, backend: str, micro_batch: int, loss_type: str
) -> None:
    """With old log-probs that differ, two passes, and micro-batches of which some are half and some wholly dead."""
    level = "sequence" if loss_type == "luspo" else "token"
    options = [
        f"algorithm.loss_type={loss_type}", f"algorithm.importance_sampling_level={level}",
        f"memory.micro_batch={micro_batch}", "algorithm.steps=2", "algorithm.num_iterations=2",
    ]  # fmt: skip
    batch = setting.batch(4, rewards=HALF_DEAD)
    trainer = setting.trainer(backend, batch, overrides=[*options, SKIP])
    rows = watch_rows(trainer)
    skipped, kept = trained(trainer), setting.run(backend, batch, *options, KEEP)
    passes = 16 // micro_batch
    assert len(rows) == 2 * passes
    assert 2 * len(LIVE_ROWS) <= sum(rows) < 2 * 16
    assert [len(losses) for losses in skipped.losses] == [passes, passes]
    for step in range(2):
        assert skipped.losses[step] == pytest.approx(kept.losses[step], rel=1e-5, abs=1e-6)
        assert norm(kept.gradients[step]) > 1e-3
        assert difference(skipped.gradients[step], kept.gradients[step]) < 1e-5
    if micro_batch == 2:
        assert 0.0 in skipped.losses[0]  # one that is wholly dead
        assert rows.count(1) > 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dapo"])
def test_what_the_mask_takes_out_is_left_out_too(setting: Setting, backend: str, loss_type: str) -> None:
    options = [f"algorithm.loss_type={loss_type}", "memory.micro_batch=8"]
    batch = setting.batch(4, rewards=HALF_DEAD, truncated=(0, 1, 5))
    trainer = setting.trainer(backend, batch, overrides=[*options, SKIP])
    rows = watch_rows(trainer)
    skipped, kept = trained(trainer), setting.run(backend, batch, *options, KEEP)
    assert sum(rows) == len(LIVE_ROWS) - 2
    assert skipped.losses[0] == pytest.approx(kept.losses[0], rel=1e-5, abs=1e-6)
    assert difference(skipped.gradients[0], kept.gradients[0]) < 1e-5


@pytest.mark.parametrize("backend", BACKENDS)
def test_metrics_are_over_the_kept_completions_and_say_so(setting: Setting, backend: str) -> None:
    batch = setting.batch(4, rewards=HALF_DEAD)
    kept = {name: value[LIVE_ROWS] if value.dim() else value for name, value in batch.items()}
    ours = setting.run(backend, batch, "memory.micro_batch=4", SKIP).recorded[0]
    mask = kept["completion_mask"]
    assert ours["policy/completions"] == len(LIVE_ROWS)
    assert ours["policy/tokens"] == mask.sum() < batch["completion_mask"].sum()
    ratio = (setting.logps_of(kept) - kept["old_per_token_logps"]).exp()
    assert ours["policy/ratio_mean"] == pytest.approx(ratio[mask.bool()].mean().item(), abs=1e-5)
    alone = setting.run(backend, kept, KEEP).recorded[0]
    names = [name for name in ours if name.startswith("policy/")]
    assert {name: ours[name] for name in names} == pytest.approx({name: alone[name] for name in names}, abs=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loss_type", by_loss_type(["grpo", "dapo"]))
def test_a_step_without_a_living_completion_leaves_the_weights(setting: Setting, backend: str, loss_type: str) -> None:
    """Though the optimizer has momentum of a step before, and decays weights."""
    options = [f"algorithm.loss_type={loss_type}", "memory.micro_batch=4", "algorithm.steps=3", *ADAM]
    if loss_type == "luspo":
        options.append("algorithm.importance_sampling_level=sequence")
    live, dead = setting.batch(), setting.batch(rewards=DEAD)
    trainer = setting.trainer(backend, live, dead, live, overrides=[*options, SKIP])
    rows = watch_rows(trainer)
    course = trained(trainer)
    before, after, last = course.weights
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not any(torch.equal(after[name], last[name]) for name in after)
    assert rows[2:4] == [1, 1]
    assert course.losses[1] == [0.0, 0.0]
    assert [logs["grad_norm"] > 0 for logs in course.recorded] == [True, False, True]
    assert course.recorded[1]["grad_norm"] == 0
    assert [logs["policy/completions"] for logs in course.recorded] == [8, 0, 8]
    assert "policy/entropy" not in course.recorded[1]


def test_such_a_step_moves_the_weights_in_trl(setting: Setting) -> None:
    """What the test above would see if nothing were done."""
    live, dead = setting.batch(), setting.batch(rewards=DEAD)
    options = ["memory.micro_batch=4", "algorithm.steps=2", *ADAM]
    before, after = trained(setting.trainer(PLAIN, live, dead, overrides=options)).weights
    assert not any(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_dead_groups_from_the_start(setting: Setting, backend: str) -> None:
    course = trained(setting.trainer(backend, setting.batch(rewards=DEAD), overrides=[*ADAM, SKIP]))
    fresh = dict(setting.model.named_parameters())
    assert all(torch.equal(course.weights[0][name], fresh[name]) for name in fresh)
    assert course.recorded[0]["loss"] == 0
    assert course.recorded[0]["grad_norm"] == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_with_a_kl_term_they_stay(setting: Setting, backend: str) -> None:
    """Empty means: where it changes nothing; an explicit wish is refused."""
    beta = "algorithm.beta=0.04"
    batch = setting.batch(4, rewards=HALF_DEAD, reference=True)
    trainer = setting.trainer(backend, batch, overrides=[beta, "memory.skip_dead_groups=null"])
    rows = watch_rows(trainer)
    trained(trainer)
    assert rows == [16]
    problems = rules.inspect(setting.config(backend, beta, SKIP).model_dump(mode="json")).problems
    assert [problem.field for problem in problems] == ["memory.skip_dead_groups"]
    assert rules.inspect(setting.config(backend, SKIP).model_dump(mode="json")).problems == []


def test_without_a_kl_term_they_go_by_default(setting: Setting) -> None:
    trainer = setting.trainer("trl", setting.batch(4, rewards=HALF_DEAD), overrides=["memory.skip_dead_groups=null"])
    rows = watch_rows(trainer)
    trained(trainer)
    assert rows == [8]


def test_with_a_router_loss_they_stay(setting: Setting) -> None:
    model = Qwen3MoeForCausalLM(
        Qwen3MoeConfig(
            vocab_size=300, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
            head_dim=8, moe_intermediate_size=8, num_experts=4, num_experts_per_tok=2, router_aux_loss_coef=0.1,
            output_router_logits=True,
        )
    )  # fmt: skip
    batch = setting.batch(4, rewards=HALF_DEAD)
    trainer = setting.trainer("trl", batch, overrides=["memory.skip_dead_groups=null"], model=model)
    rows = watch_rows(trainer)
    trained(trainer)
    assert rows == [16]
    with pytest.raises(ConfigError, match="router loss"):
        setting.trainer("trl", batch, overrides=[SKIP], model=model)


# --- what counts as dead: exact zeros, though rewards are float32 ---


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_equal_rewards_give_exact_zeros(setting: Setting, scale: str) -> None:
    """The float32 mean of seven times 0.3 is not 0.3."""
    options = ["algorithm.group_size=7", f"algorithm.scale_rewards={scale}", SKIP]
    rewards = [[0.3] * 7, [1, 0, 0, 0.3, 0.3, 0.3, 0.3]]
    plain = setting.sampling_trainer(PLAIN, rewards, *options)
    rounded = plain._generate_and_score_completions([{"prompt": "a", "sample": 0}] * 14)["advantages"]
    assert rounded[:7].abs().min() > 0
    trainer = setting.sampling_trainer("liger", rewards, *options)
    rows = watch_rows(trainer)
    course = trained(trainer)
    exact = [row.advantage for row in course.scored[0].completions]
    assert exact[:7] == [0.0] * 7
    assert exact[7:] == rounded[7:].tolist()
    assert 0.0 not in exact[7:]
    assert sum(rows) == 7


def test_an_abstention_does_not_count_for_or_against(setting: Setting) -> None:
    rewards = [[0.3, None, 0.3, 0.3], [0.3, None, 0.3, 0.5]]
    trainer = setting.sampling_trainer("liger", rewards, SKIP)
    rows = watch_rows(trainer)
    course = trained(trainer)
    advantages = [row.advantage for row in course.scored[0].completions]
    assert advantages[:4] == [0.0] * 4
    assert [value == 0 for value in advantages[4:]] == [False, True, False, False]
    assert sum(rows) == 3
    assert course.recorded[0]["policy/completions"] == 3
