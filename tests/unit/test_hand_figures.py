"""The published hand figures for Qwen3-8B, to the digit, from the numbers of its config alone."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import grpo_studio
from grpo_studio.errors import ModelError
from grpo_studio.memory.comparison import hand_sums
from grpo_studio.memory.hand_figures import QWEN3_8B, HandFigure, hand_figures, hand_lines, shape_of

PACKAGED = Path(grpo_studio.__file__).parent / "model_configs" / "qwen--qwen3-8b.json"


def figure(name: str, config: Any = QWEN3_8B) -> HandFigure:
    return next(figure for figure in hand_figures(config) if figure.name == name)


def test_the_frozen_base_in_16_bits_takes_16_4_gb() -> None:
    assert figure("base_16_bit").text == "16.4 GB"


def test_lora_of_rank_8_on_all_linear_modules_has_21_8_m_parameters() -> None:
    found = figure("lora_parameters")
    assert found.text == "21.8 M parameters"
    attention = 8 * (2 * (4096 + 32 * 128) + 2 * (4096 + 8 * 128))
    assert found.exact == 36 * (attention + 3 * 8 * (4096 + 12288)) == 21_823_488


def test_the_trainable_state_of_that_takes_0_35_gb() -> None:
    assert figure("lora_state").text == "0.35 GB"
    assert figure("lora_state").exact == 21_823_488 * 16


def test_the_base_in_nf4_takes_4_1_gb_and_a_forecast_says_about_6() -> None:
    found = figure("base_nf4")
    assert found.text == "4.1 GB"
    assert "About 6.1 GB in a forecast: bitsandbytes keeps embeddings and head in 16 bits (2.5 GB)" in found.differs


def test_lora_takes_16_8_gb_in_all() -> None:
    """16.4 + 0.35, rounded up; the bytes themselves would give 16.7."""
    found = figure("lora_total")
    assert found.text == "16.8 GB"
    assert "16.4 + 0.35 = 16.75" in found.worked


def test_qlora_takes_4_5_gb_in_all() -> None:
    found = figure("qlora_total")
    assert found.text == "4.5 GB"
    assert "4.1 + 0.35 = 4.45" in found.worked
    assert "6.2 GB" in found.differs


def test_full_fine_tuning_takes_131_2_gb() -> None:
    assert figure("full").text == "131.2 GB"
    assert "65.6 GB" in figure("full").differs


def test_with_a_reference_in_16_bits_it_takes_147_6_gb() -> None:
    assert figure("full_with_reference").text == "147.6 GB"


def test_ppo_with_value_reference_and_reward_models_takes_295_2_gb() -> None:
    assert figure("ppo").text == "295.2 GB"


def test_the_kv_cache_takes_147_456_bytes_a_token() -> None:
    assert figure("kv_per_token").text == "147,456 bytes"
    assert figure("kv_per_token").value == 147_456


def test_the_kv_cache_of_8_sequences_of_1024_tokens_takes_1_2_gb() -> None:
    assert figure("kv_cache").text == "1.2 GB"
    assert figure("kv_cache").exact == 147_456 * 8 * 1024


def test_the_packaged_config_of_the_model_gives_the_same() -> None:
    assert hand_figures(json.loads(PACKAGED.read_text())) == hand_figures()


def test_parameters_are_those_of_the_model_but_for_its_norms() -> None:
    shape = shape_of(QWEN3_8B)
    norms = 36 * (2 * 4096 + 2 * 128) + 4096
    assert shape.linear_parameters + shape.embeddings == 8_190_735_360 - norms


def test_tied_embeddings_are_counted_once_and_missing_heads_are_derived() -> None:
    numbers = {key: value for key, value in QWEN3_8B.items() if key not in ("head_dim", "num_key_value_heads")}
    shape = shape_of({**numbers, "tie_word_embeddings": True})
    assert shape.embeddings == 151936 * 4096
    assert (shape.head_dim, shape.kv_heads) == (128, 32)


def test_a_smaller_model_has_figures_of_its_own() -> None:
    small = {**QWEN3_8B, "num_hidden_layers": 28, "hidden_size": 1024, "intermediate_size": 3072,
             "num_attention_heads": 16, "tie_word_embeddings": True}  # fmt: skip
    assert figure("base_16_bit", small).text == "1.2 GB"
    assert figure("kv_per_token", small).value == 114_688


@pytest.mark.parametrize("key", sorted(set(QWEN3_8B) - {"tie_word_embeddings", "head_dim", "num_key_value_heads"}))
@pytest.mark.parametrize("value", [None, 0, -1, 1.5, "4096", True, 10**12], ids=repr)
def test_a_number_that_no_model_has_is_refused_in_one_line(key: str, value: Any) -> None:
    with pytest.raises(ModelError, match=f"the config has {key} .*; it takes a whole number above 0") as caught:
        hand_figures({**QWEN3_8B, key: value})
    assert "\n" not in str(caught.value)


def test_each_figure_has_its_formula_its_sum_and_its_difference_as_text() -> None:
    figures = hand_figures()
    assert len({figure.name for figure in figures}) == len(figures) == 11
    for found in figures:
        assert found.formula
        assert str(found.value) in found.worked.replace(",", "") or found.name == "lora_parameters"
        assert found.differs.endswith(".")
        assert isinstance(found.value, Decimal)
    assert len(hand_lines(figures)) == 3 * len(figures)


def test_the_document_is_plain_json_and_its_lines_hold_every_figure() -> None:
    document, lines = hand_sums()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    told = {figure["name"]: figure["value"] for figure in document["figures"]}
    assert told["lora_total"] == 16.8
    assert told["kv_per_token"] == 147_456
    text = "\n".join(lines)
    assert all(figure["text"] in text for figure in document["figures"])
    assert all(method["title"] in text for method in document["comparison"])
