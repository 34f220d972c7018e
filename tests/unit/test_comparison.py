"""The card of PPO, DPO and GRPO: its memory is that of the hand figures."""

from __future__ import annotations

import json

import pytest

from grpo_studio.errors import ModelError
from grpo_studio.memory.comparison import ROWS, comparison, comparison_lines
from grpo_studio.memory.hand_figures import QWEN3_8B, hand_figures


def test_there_are_three_methods_with_their_models() -> None:
    held = {method.name: [(model.name, model.trained) for model in method.models] for method in comparison()}
    policy, reference = ("policy", True), ("reference", False)
    assert held == {
        "ppo": [policy, ("value model", True), reference, ("reward model", False)],
        "dpo": [policy, reference],
        "grpo": [policy, reference],
    }
    grpo = comparison()[-1]
    assert grpo.models_text == "policy (trained), reference (frozen, optional)"


def test_memory_is_that_of_the_hand_figures() -> None:
    texts = {figure.name: figure.text for figure in hand_figures()}
    ppo, dpo, grpo = comparison()
    assert ppo.memory_text == f"{texts['ppo']} in all" == "295.2 GB in all"
    assert [figure.text for _, figure in dpo.memory] == [texts["full_with_reference"], texts["full"]]
    assert [figure.text for _, figure in grpo.memory] == ["147.6 GB", "131.2 GB", "16.8 GB", "4.5 GB"]


def test_memory_follows_from_the_models() -> None:
    """16 bytes for each parameter of a model that is trained, 2 for one that is not."""
    for method in comparison():
        wanted = sum(8_200_000_000 * (16 if model.trained else 2) for model in method.models)
        assert method.memory[0][1].exact == wanted


def test_another_model_has_other_memory() -> None:
    ppo, *_ = comparison({**QWEN3_8B, "num_hidden_layers": 18})
    assert ppo.memory[0][1].exact < 8_200_000_000 * 36
    with pytest.raises(ModelError):
        comparison({})


def test_every_row_is_told_of_every_method() -> None:
    for method in comparison():
        told = method.as_dict()
        assert all(told[row] for row in ROWS)
        assert json.loads(json.dumps(told)) == told
    lines = comparison_lines(comparison())
    assert len(lines) == 3 * (1 + len(ROWS))
    assert lines[0] == "PPO (arXiv 1707.06347)"
    assert lines[2] == "  memory: 295.2 GB in all"
