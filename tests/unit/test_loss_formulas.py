"""The published formulas written out, numbers worked out by hand, and every loss backend on both.

GRPO: DeepSeekMath, arXiv 2402.03300, eq. 3 and 4. DAPO: arXiv 2503.14476, eq. 8. Dr. GRPO: arXiv 2503.20783, section 3.1.
Only the sampler's tokens, the rewards and the two policies' distance are set; scoring, normalisation, the loss and its
gradient are the trainer's own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from frozen_batch import BACKENDS, LONGEST, PLAIN, Batch, Course, Setting, difference, small_work, trained

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")

REWARDS = [1, 0, 0, 1, 1, 0, 0, 0]
"""Mean 0.375, sample deviation 0.5175."""
RATIOS = [[1.0, 1.5], [0.5], [1.1], [0.7, 1.25], [1.0], [2.0, 0.9, 0.85], [1.0], [0.75]]
"""New policy over old, token by token: past the clip bounds both ways, with either sign of the advantage."""
REFERENCE = [[2.0, 1.0], [1.0], [1.0], [1.0, 1.0], [1.0], [0.5, 1.0, 1.0], [1.0], [1.0]]
"""Reference policy over the new one."""
GOOD, BAD = 0.625 / (0.51754917 + 1e-4), -0.375 / (0.51754917 + 1e-4)
"""Advantages; TRL adds 1e-4 to the deviation."""


@pytest.fixture(scope="module")
def setting(tiny_model: Path) -> Iterator[Setting]:
    with small_work():
        yield Setting(tiny_model)


# --- the formulas: (G, T) log-probs of the new, old and reference policy, (G,) advantages, (G, T) mask ---

Formula = Callable[..., torch.Tensor]


def clipped(new: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """The objective of each token (G, T): min(r A, clip(r, 1 - low, 1 + high) A)."""
    ratio = (new - old).exp()
    return torch.minimum(ratio * advantages[:, None], ratio.clamp(1 - low, 1 + high) * advantages[:, None])


def grpo(new: torch.Tensor, old: torch.Tensor, ref: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor) -> Any:
    """DeepSeekMath eq. 3, with the KL of eq. 4 at beta 0.1: the mean over completions of the mean over tokens."""
    kl = (ref - new).exp() - (ref - new) - 1
    objective = clipped(new, old, advantages, 0.2, 0.2) - 0.1 * kl
    return -((objective * mask).sum(1) / mask.sum(1)).mean()


def dapo(new: torch.Tensor, old: torch.Tensor, ref: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor) -> Any:
    """DAPO eq. 8: the mean over all tokens of the group, the upper bound further out, no KL."""
    return -(clipped(new, old, advantages, 0.2, 0.28) * mask).sum() / mask.sum()


def dr_grpo(
    new: torch.Tensor, old: torch.Tensor, ref: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor
) -> Any:
    """Dr. GRPO: divided by a constant length, for every completion the same; no KL. Advantages are not scaled."""
    return -(clipped(new, old, advantages, 0.2, 0.2) * mask).sum(1).mean() / LONGEST


CASES: dict[str, tuple[list[str], Formula, float]] = {
    # Means of the completions, in units of their advantage: 2.2/2 + 1.9/2 + 1 for the good ones,
    # 0.8 + 1.1 + 3.75/3 + 1 + 0.8 for the bad; KL of a token is q - ln q - 1.
    "grpo": (
        ["algorithm.loss_type=grpo", "algorithm.beta=0.1", "algorithm.extra={use_bias_correction_kl: false}"],
        grpo,
        -(3.05 * GOOD + 4.95 * BAD) / 8 + 0.1 * ((1 - math.log(2)) / 2 + (math.log(2) - 0.5) / 3) / 8,
    ),
    # All tokens: 1 + 1.28 + 0.7 + 1.25 + 1 and 0.8 + 1.1 + 3.75 + 1 + 0.8, of 12.
    "dapo": (
        ["algorithm.loss_type=dapo", "algorithm.epsilon_high=0.28"],
        dapo,
        -(5.23 * GOOD + 7.45 * BAD) / 12,
    ),
    # 5.1 and 7.45 tokens' worth, of 8 completions of up to 7.
    "dr_grpo": (
        ["algorithm.loss_type=dr_grpo", "algorithm.scale_rewards=none"],
        dr_grpo,
        -(5.1 * 0.625 - 7.45 * 0.375) / (8 * 7),
    ),
}  # fmt: skip


def test_the_numbers_themselves() -> None:
    assert [CASES[name][2] for name in CASES] == pytest.approx([-0.0093512, -0.0764675, -0.00703125], abs=2e-7)


@pytest.mark.parametrize("name", CASES)
def test_the_formulas_give_the_numbers(name: str) -> None:
    _, formula, expected = CASES[name]
    zero = torch.zeros(8, 3, dtype=torch.float64)
    scaled = name != "dr_grpo"
    advantages = torch.tensor([(GOOD if scaled else 0.625) if r else (BAD if scaled else -0.375) for r in REWARDS])
    loss = formula(zero, -_table(RATIOS).log(), _table(REFERENCE).log(), advantages.double(), _table(RATIOS, mask=True))
    assert loss.item() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("backend", [PLAIN, *BACKENDS])
@pytest.mark.parametrize("name", CASES)
def test_every_backend_gives_the_numbers(setting: Setting, name: str, backend: str) -> None:
    overrides, formula, expected = CASES[name]
    course, batch = run(setting, backend, overrides)
    assert course.loss(0) == pytest.approx(expected, abs=1e-6)
    assert difference(course.gradients[0], gradient(setting, formula, batch)) < 1e-4


@pytest.mark.parametrize("backend", [PLAIN, *BACKENDS])
def test_the_unbiased_kl_weighs_by_the_ratio(setting: Setting, backend: str) -> None:
    """TRL's default (DeepSeek-V3.2, arXiv 2512.02556): the KL of o6's first token counts twice, its ratio."""
    course, _ = run(setting, backend, ["algorithm.loss_type=grpo", "algorithm.beta=0.1"])
    kl = 0.1 * ((1 - math.log(2)) / 2 + 2 * (math.log(2) - 0.5) / 3) / 8
    assert course.loss(0) == pytest.approx(-(3.05 * GOOD + 4.95 * BAD) / 8 + kl, abs=1e-6)


# --- the advantages, by the trainer ---


@pytest.mark.parametrize("backend", BACKENDS)
def test_advantages_of_a_group(setting: Setting, backend: str) -> None:
    course, batch = run(setting, backend, [])
    group = course.scored[0].groups()[0]
    assert (group.reward_mean, group.reward_std) == pytest.approx((0.375, 0.5175), abs=1e-4)
    signs = [1.207 if reward else -0.724 for reward in REWARDS]
    assert batch["advantages"].tolist() == pytest.approx(signs, abs=5e-4)
    assert [row.advantage for row in course.scored[0].completions] == batch["advantages"].tolist()


@pytest.mark.parametrize(
    ("scale", "first", "second"),
    [
        ("group", 0.51754917, math.sqrt(2 / 7)),
        ("batch", math.sqrt(7 * 9 / 16 / 15), math.sqrt(7 * 9 / 16 / 15)),  # seven ones among sixteen
        ("none", None, None),
    ],
)
def test_what_advantages_are_divided_by(
    setting: Setting, scale: str, first: float | None, second: float | None
) -> None:
    """The sample deviation of the group, or of the batch; the mean taken off is always the group's."""
    rewards = [REWARDS, [1, 1, 0, 0, 1, 0, 1, 0]]
    trainer = setting.sampling_trainer("trl", rewards, "algorithm.group_size=8", f"algorithm.scale_rewards={scale}")
    advantages = trainer._generate_and_score_completions([{"prompt": "a", "sample": 0}] * 16)["advantages"].tolist()
    divisors = [1.0 if value is None else value + 1e-4 for value in (first, second)]
    assert advantages[:8] == pytest.approx([(reward - 0.375) / divisors[0] for reward in rewards[0]], abs=1e-5)
    assert advantages[8:] == pytest.approx([(reward - 0.5) / divisors[1] for reward in rewards[1]], abs=1e-5)


def test_an_abstention_is_left_out_of_mean_and_deviation(setting: Setting) -> None:
    """Those of 1, 0 and 0.5 are 0.5 and 0.5."""
    trainer = setting.sampling_trainer("trl", [[1, 0, None, 0.5]])
    advantages = trainer._generate_and_score_completions([{"prompt": "a", "sample": 0}] * 4)["advantages"].tolist()
    assert advantages == pytest.approx([0.5 / 0.5001, -0.5 / 0.5001, 0, 0], abs=1e-5)


# --- how the numbers are set up ---


def run(setting: Setting, backend: str, overrides: list[str]) -> tuple[Course, Batch]:
    """One step on the group of eight, with the old and the reference policy as far from the new one as above."""
    lengths = [len(row) for row in RATIOS]
    options = ["algorithm.group_size=8", *overrides]
    trainer = setting.sampling_trainer(backend, [REWARDS], *options, lengths=lengths)
    score, batches = trainer._generate_and_score_completions, []

    def scored(inputs: Any) -> Batch:
        batch = score(inputs)
        logps = setting.logps_of(batch)
        batch["old_per_token_logps"] = logps - _table(RATIOS).log().float()
        if "ref_per_token_logps" in batch:
            batch["ref_per_token_logps"] = logps + _table(REFERENCE).log().float()
        batches.append(batch)
        return batch

    trainer._generate_and_score_completions = scored
    return trained(trainer), batches[0]


def gradient(setting: Setting, formula: Formula, batch: Batch) -> dict[str, torch.Tensor]:
    """Of the formula through the model in double precision."""
    model = copy.deepcopy(setting.model).double()
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    start = batch["prompt_ids"].shape[1]
    logits = model(input_ids=ids, attention_mask=mask).logits[:, start - 1 : -1]
    new = logits.log_softmax(-1).gather(-1, batch["completion_ids"][..., None]).squeeze(-1)
    old, reference = new.detach() - _table(RATIOS).log(), new.detach() + _table(REFERENCE).log()
    formula(new, old, reference, batch["advantages"].double(), batch["completion_mask"]).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def _table(rows: list[list[float]], mask: bool = False) -> torch.Tensor:
    """(G, T) in double precision, 1 in empty places; or 1 and 0 for what is a token and what is not."""
    return torch.tensor(
        [([1.0] * len(row) if mask else row) + [0.0 if mask else 1.0] * (3 - len(row)) for row in rows],
        dtype=torch.float64,
    )
