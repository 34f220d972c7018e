"""What is recorded of the policy, on numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from transformers import LlamaConfig, LlamaForCausalLM
from trl import GRPOConfig

from grpo_studio.training import policy_head
from grpo_studio.training.full_logits import full_token_logps
from grpo_studio.training.policy_head import token_statistics
from grpo_studio.training.policy_metrics import PolicyTally

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")

RATIOS = torch.tensor([[1.5, 0.7, 1.0], [1.3, 0.5, 9.0]])
MASK = torch.tensor([[1, 1, 1], [1, 1, 0]])
ENTROPIES = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 99.0]])
LOGPS = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -0.5, -7.0]])


def recorded(
    advantages: list[float] | None = None, reference: list[list[float]] | None = None, **settings: Any
) -> dict[str, float]:
    """The metrics of one micro-batch of two completions with 3 and 2 tokens."""
    inputs = {
        "completion_mask": MASK,
        "advantages": torch.tensor(advantages or [1.0, -1.0]),
        "old_per_token_logps": LOGPS - RATIOS.log(),
    }
    if reference is not None:
        inputs["ref_per_token_logps"] = LOGPS + torch.tensor(reference).log()
    tally = PolicyTally()
    tally.add(arguments(**settings), inputs, LOGPS, ENTROPIES)
    return tally.take(Accelerator(cpu=True))


def arguments(**settings: Any) -> GRPOConfig:
    both = {"loss_type": "dapo", "epsilon_high": settings.get("epsilon", 0.2)}
    return GRPOConfig("out", use_cpu=True, bf16=False, report_to="none", **{**both, **settings})


def test_entropy_and_ratio_are_means_over_tokens() -> None:
    metrics = recorded()
    assert metrics["policy/entropy"] == pytest.approx(15 / 5)
    assert metrics["policy/ratio_mean"] == pytest.approx((1.5 + 0.7 + 1.0 + 1.3 + 0.5) / 5)
    assert metrics["policy/tokens"] == 5
    assert metrics["policy/completions"] == 2


@pytest.mark.parametrize(
    ("advantages", "low", "high"),
    [
        ([1.0, -1.0], 1 / 5, 1 / 5),  # 0.5 below with a bad answer, 1.5 above with a good one
        ([-1.0, 1.0], 1 / 5, 1 / 5),  # 0.7 below with a bad, 1.3 above with a good one
        ([1.0, 1.0], 0, 2 / 5),
        ([-1.0, -1.0], 2 / 5, 0),
        ([0.0, 0.0], 0, 0),
    ],
)
def test_a_token_is_clipped_where_its_gradient_stops(advantages: list[float], low: float, high: float) -> None:
    metrics = recorded(advantages)
    assert metrics["policy/clip_low"] == pytest.approx(low)
    assert metrics["policy/clip_high"] == pytest.approx(high)


def test_the_bounds_are_those_of_the_settings() -> None:
    metrics = recorded([1.0, 1.0], epsilon=0.4, epsilon_high=0.4)
    assert metrics["policy/clip_high"] == pytest.approx(1 / 5)
    metrics = recorded([1.0, 1.0], epsilon=0.4, epsilon_high=0.6)
    assert metrics["policy/clip_high"] == 0
    assert recorded([-1.0, -1.0], epsilon=0.4)["policy/clip_low"] == pytest.approx(1 / 5)


def test_cispo_clamps_the_ratio_itself() -> None:
    metrics = recorded([1.0, 1.0], loss_type="cispo", epsilon_high=1.4)
    assert metrics["policy/clip_high"] == pytest.approx(1 / 5)
    assert "policy/clip_low" not in metrics


@pytest.mark.parametrize("loss_type", ["sapo", "vespo"])
def test_losses_that_do_not_clip_have_no_clip_fraction(loss_type: str) -> None:
    metrics = recorded(loss_type=loss_type)
    assert "policy/clip_low" not in metrics
    assert "policy/clip_high" not in metrics
    assert metrics["policy/ratio_mean"] == pytest.approx(1.0)


def test_per_sequence_the_ratio_is_the_geometric_mean() -> None:
    metrics = recorded(importance_sampling_level="sequence", loss_type="grpo")
    first, second = (1.5 * 0.7) ** (1 / 3), (1.3 * 0.5) ** (1 / 2)
    assert metrics["policy/ratio_mean"] == pytest.approx((first + second) / 2)
    assert metrics["policy/clip_low"] == 0  # 0.81 is within
    assert metrics["policy/entropy"] == pytest.approx(3)
    narrow = recorded(importance_sampling_level="sequence", loss_type="grpo", epsilon=0.1)
    assert narrow["policy/clip_low"] == pytest.approx(1 / 2)


@pytest.mark.parametrize(("corrected", "weight"), [(False, 1.0), (True, 1.5)])
def test_kl_is_the_k3_estimate(corrected: bool, weight: float) -> None:
    """q - ln q - 1 of the reference over the policy, 2 in the first token; times the ratio where the loss has it so."""
    metrics = recorded(reference=[[2.0, 1.0, 1.0], [1.0, 1.0, 5.0]], beta=0.1, use_bias_correction_kl=corrected)
    assert metrics["policy/kl"] == pytest.approx(weight * (1 - math.log(2)) / 5, abs=1e-6)


def test_without_a_reference_there_is_no_kl() -> None:
    assert "policy/kl" not in recorded()


def test_without_old_log_probs_the_ratio_is_one() -> None:
    tally = PolicyTally()
    tally.add(arguments(), {"completion_mask": MASK, "advantages": torch.ones(2)}, LOGPS, ENTROPIES)
    assert tally.take(Accelerator(cpu=True))["policy/ratio_mean"] == 1


def test_micro_batches_add_up_by_tokens_and_a_step_ends_with_take() -> None:
    settings, tally = arguments(), PolicyTally()
    accelerator = Accelerator(cpu=True)
    for rows in (slice(0, 1), slice(1, 2)):
        inputs = {"completion_mask": MASK[rows], "advantages": torch.ones(1)}
        tally.add(settings, inputs, LOGPS[rows], ENTROPIES[rows])
    metrics = tally.take(accelerator)
    assert metrics["policy/entropy"] == pytest.approx(3)  # and not the mean of 2 and 4.5
    assert metrics["policy/tokens"] == 5
    assert tally.take(accelerator) == {"policy/completions": 0, "policy/tokens": 0}


def test_a_completion_that_is_masked_out_does_not_count() -> None:
    tally = PolicyTally()
    mask = torch.tensor([[1, 1, 1], [0, 0, 0]])
    tally.add(
        arguments(importance_sampling_level="sequence", loss_type="grpo"),
        {"completion_mask": mask, "advantages": torch.ones(2), "old_per_token_logps": LOGPS - RATIOS.log()},
        LOGPS,
        ENTROPIES,
    )
    metrics = tally.take(Accelerator(cpu=True))
    assert metrics["policy/ratio_mean"] == pytest.approx((1.5 * 0.7) ** (1 / 3))
    assert metrics["policy/completions"] == 1
    assert metrics["policy/tokens"] == 3


# --- log-probs and entropies of tokens ---


def test_statistics_of_a_head_by_hand() -> None:
    """Logits (ln 1, ln 2, ln 5) in the first place, all equal in the second."""
    weight = torch.tensor([[0.0, 0.0], [math.log(2), 0.0], [math.log(5), 0.0]])
    hidden, ids, mask = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), torch.tensor([[2, 0]]), torch.ones(1, 2)
    logps, entropies = token_statistics(hidden, weight, None, ids, mask, 1.0)
    entropy = -sum(p * math.log(p) for p in (1 / 8, 2 / 8, 5 / 8))
    assert logps.tolist()[0] == pytest.approx([math.log(5 / 8), math.log(1 / 3)])
    assert entropies.tolist()[0] == pytest.approx([entropy, math.log(3)])
    halved, _ = token_statistics(hidden, weight, None, ids, mask, 0.5)
    assert halved[0, 0].item() == pytest.approx(math.log(25 / 30))
    biased, _ = token_statistics(
        hidden, weight, torch.tensor([0.0, 0.0, math.log(3)]), torch.full((1, 2), 2), mask, 1.0
    )
    assert biased[0].tolist() == pytest.approx([math.log(15 / 18), math.log(3 / 5)])


def test_neither_tiles_nor_masked_tokens_change_the_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    random = torch.Generator().manual_seed(0)
    hidden, weight = torch.randn(3, 5, 8, generator=random), torch.randn(11, 8, generator=random)
    ids = torch.randint(0, 11, (3, 5), generator=random)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    logits = (hidden @ weight.T / 0.8).log_softmax(-1)
    logps, entropies = logits.gather(-1, ids[..., None]).squeeze(-1), -(logits.exp() * logits).sum(-1)
    for most in (22, 1 << 20):  # two tokens at a time, or all
        monkeypatch.setattr(policy_head, "TOKEN_LOGITS", most)
        ours = token_statistics(hidden, weight, None, ids, mask, 0.8)
        assert torch.allclose(ours[0], logps * mask, atol=1e-5)
        assert torch.allclose(ours[1], entropies * mask, atol=1e-5)
    nothing = token_statistics(hidden, weight, None, ids, torch.zeros_like(mask), 0.8)
    assert [values.abs().sum().item() for values in nothing] == [0, 0]


def test_full_logits_give_the_same_statistics() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=40, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1,
        )
    )  # fmt: skip
    ids = torch.randint(0, 40, (2, 6))
    full = full_token_logps(model, ids, torch.ones_like(ids), 4, 1.3)
    hidden = model.model(ids).last_hidden_state[:, 1:-1]
    parted = token_statistics(hidden, model.lm_head.weight, None, ids[:, 2:], torch.ones(2, 4), 1.3)
    assert torch.allclose(full[0], parted[0], atol=1e-5)
    assert torch.allclose(full[1], parted[1], atol=1e-5)
    assert full[0].requires_grad
    assert not full[1].requires_grad
