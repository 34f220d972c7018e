"""The model card and the model's part of the check: from config and tokenizer alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from grpo_studio import model_facts
from grpo_studio.catalog import BUILTIN_MODELS
from grpo_studio.config import BUILTIN_MODEL, ModelSettings, RunConfig
from grpo_studio.errors import ModelError
from grpo_studio.model_card import ModelCard, _derived_dtype, model_card
from grpo_studio.model_preflight import model_problems
from grpo_studio.settings import Settings

if TYPE_CHECKING:
    from hub_stand_in import HubStandIn

pytest_plugins = ("hub_stand_in",)


@pytest.fixture(autouse=True)
def _nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_facts, "_OF_HUB", type(model_facts._OF_HUB)(16))


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model that a test may spoil."""
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def card_of(model: object, settings: Settings, **more: Any) -> ModelCard:
    return model_card(ModelSettings(id=str(model), **{"dtype": "float32", **more}), settings)


def change(path: Path, **changes: Any) -> None:
    data = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({key: value for key, value in (data | changes).items() if value is not None}))


def checked(model_id: object, settings: Settings, **sections: Any) -> tuple[list[str], list[str]]:
    raw = {**sections, "model": {"id": str(model_id), **sections.get("model", {})}}
    problems, notes = model_problems(RunConfig.model_validate(raw), settings)
    return [str(problem) for problem in problems], notes


def test_the_card_of_a_folder(model: Path, settings: Settings) -> None:
    (model / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\nlicense: other")
    card = card_of(model, settings).as_dict()
    templates = card.pop("templates")
    assert [set(entry) for entry in templates] == [{"name", "title"}] * len(templates)
    assert card == {
        "id": str(model),
        "kind": "local",
        "title": "model",
        "architecture": "LlamaForCausalLM",
        "parameters": card["parameters"],
        "vocabulary": 277,
        "context_length": 512,
        "dtype": "float32",
        "dtype_note": "0.00 GB of weights",
        "chat_template": "own",
        "pad_token": "<|end|>",
        "end_tokens": ["<|im_end|>"],
        "gated": None,
        "readable": True,
        "licence": "mit",
        "download_bytes": 0,
        "notes": [],
    }


def test_parameters_are_counted_from_the_config_where_no_file_tells_them(model: Path, settings: Settings) -> None:
    from_header = card_of(model, settings).parameters
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    assert card_of(model, settings).parameters == from_header


@pytest.mark.parametrize(
    ("more", "dtype", "note"),
    [
        ({"dtype": "mixed"}, "float32", "0.00 GB of weights; matrices are multiplied in bfloat16"),
        ({"dtype": "bfloat16"}, "bfloat16", "0.00 GB of weights"),
    ],
)
def test_the_dtype_is_the_one_that_will_be_loaded(
    model: Path, settings: Settings, more: dict[str, Any], dtype: str, note: str
) -> None:
    card = card_of(model, settings, **more)
    assert (card.dtype, card.dtype_note) == (dtype, note)


def test_a_dtype_that_is_left_to_the_machine_is_the_one_of_a_run(model: Path, settings: Settings) -> None:
    from grpo_studio.training.precision import effective_dtype

    left = ModelSettings(id=str(model))
    assert model_card(left, settings).dtype == effective_dtype(left)


@pytest.mark.slow
def test_a_child_that_is_asked_instead_says_the_same() -> None:
    assert _derived_dtype(False) == _derived_dtype(True)


def test_all_end_tokens_are_shown_and_a_missing_pad_token_is_told(model: Path, settings: Settings) -> None:
    change(model / "generation_config.json", eos_token_id=[2, 0, 9])
    change(model / "tokenizer_config.json", pad_token=None)
    card = card_of(model, settings)
    assert card.end_tokens == ["<|im_end|>", "<|end|>", "token 9"]
    assert card.pad_token == "<|im_end|>"
    assert any("no pad token: <|im_end|> pads, and still ends a completion" in note for note in card.notes)


def test_a_base_model_offers_the_choice_of_a_template(model: Path, settings: Settings) -> None:
    (model / "chat_template.jinja").unlink()
    card = card_of(model, settings)
    assert card.chat_template == "none"
    assert any("plain text; model.chat_template offers others, such as chatml" in note for note in card.notes)
    for choice, kind in (
        ("plain", "plain"),
        ("user_assistant", "user_assistant"),
        ("{{ messages[0].content }}", "custom"),
    ):
        chosen = card_of(model, settings, chat_template=choice)
        assert (chosen.chat_template, chosen.notes) == (kind, [])


def test_end_tokens_of_a_chosen_template_are_added_or_missed(model: Path, settings: Settings) -> None:
    added = card_of(model, settings, chat_template="{% for m in messages %}{{ m.content }}<|end|>{% endfor %}")
    assert added.end_tokens == ["<|end|>", "<|im_end|>"]
    missed = card_of(model, settings, chat_template="llama3")
    assert missed.end_tokens == ["<|im_end|>"]
    assert any("no token <|eot_id|>" in note and "end at <|im_end|> alone" in note for note in missed.notes)


def test_an_own_template_that_ends_in_another_token_is_told(model: Path, settings: Settings) -> None:
    change(model / "tokenizer_config.json", eos_token="<|end|>")
    for name in ("config.json", "generation_config.json"):
        change(model / name, eos_token_id=0)
    assert any(
        "ends an answer in <|im_end|>, which is not among its end tokens (<|end|>)" in note
        for note in card_of(model, settings).notes
    )


def test_the_built_in_model_is_known_before_it_is_fetched(settings: Settings) -> None:
    card = card_of(BUILTIN_MODEL, settings)
    built_in = BUILTIN_MODELS[BUILTIN_MODEL]
    assert (card.parameters, card.download_bytes) == (built_in.parameters, built_in.wheel_bytes)
    assert (card.chat_template, card.end_tokens, card.pad_token) == ("own", ["<|im_end|>"], "<|endoftext|>")
    problems, notes = checked(BUILTIN_MODEL, settings)
    assert problems == []
    assert [note for note in notes if "fetched" in note] == notes


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda m: (m / "config.json").write_text("{"), "its config.json is damaged"),
        (lambda m: (m / "config.json").write_text("[" * 100_000), "its config.json is damaged"),
        (lambda m: (m / "config.json").write_bytes(b"\xff\xfe\x00"), "its config.json is damaged"),
        (lambda m: (m / "config.json").write_text("[1]"), "its config.json holds list"),
        (lambda m: (m / "tokenizer_config.json").write_text("nope"), "its tokenizer_config.json is damaged"),
        (lambda m: (m / "generation_config.json").write_text(""), "its generation_config.json is damaged"),
        (lambda m: (m / "config.json").write_text("{}"), "names no model_type"),
        (lambda m: (m / "tokenizer.json").unlink(), "has no tokenizer files"),
        (lambda m: change(m / "config.json", model_type="t5"), "of the type 't5'"),
        (lambda m: change(m / "config.json", model_type=7), "names no model_type"),
        (
            lambda m: change(m / "config.json", model_type="brandnew", auto_map={"AutoModel": "m.M"}),
            "needs Python code of its own (brandnew), which is never run here",
        ),
        (lambda m: change(m / "config.json", architectures=["LlamaForSequenceClassification"]), "no head that writes"),
        (
            lambda m: (m / "chat_template.jinja").write_text("{% for a in range(99999) %}many{% endfor %}"),
            "the model's own chat template writes over",
        ),
    ],
)
def test_what_is_wrong_with_a_model_is_found_before_it_is_loaded(
    model: Path, settings: Settings, spoil: Any, what: str
) -> None:
    spoil(model)
    problems, _ = checked(model, settings)
    assert len(problems) == 1
    assert what in problems[0]
    assert "\n" not in problems[0]


def test_odd_values_in_small_files_cost_only_the_fact(model: Path, settings: Settings) -> None:
    change(model / "config.json", vocab_size=True, max_position_embeddings="512", architectures="Llama")
    change(model / "generation_config.json", eos_token_id={"a": 1})
    change(model / "tokenizer_config.json", eos_token=["x"], pad_token={"content": "<|end|>"}, added_tokens_decoder=[1])
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"[]")
    (model / "README.md").write_bytes(b"---\nlicense: [\xff]\n---\n")
    card = card_of(model, settings)
    assert (card.vocabulary, card.context_length, card.licence) == (None, None, None)
    assert card.pad_token == "<|end|>"
    assert card.end_tokens == ["<|im_end|>"], "the config's own"


def test_known_code_of_its_own_is_a_note(model: Path, settings: Settings) -> None:
    change(model / "config.json", auto_map={"AutoModelForCausalLM": "modeling.Mine"})
    problems, notes = checked(model, settings)
    assert problems == []
    assert any("Python code of its own, which is never run here" in note for note in notes)


def test_template_and_context_are_judged_with_the_run(model: Path, settings: Settings) -> None:
    assert "did you mean chatml?" in checked(model, settings, model={"chat_template": "chatlm"})[0][0]
    longest = {"max_completion_length": 512}
    assert "context of 512 must hold the prompt too; use 256" in checked(model, settings, algorithm=longest)[0][0]
    template = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    asked = {"model": {"chat_template": template}, "dataset": {"system_prompt": "Be brief."}}
    problems, notes = checked(model, settings, **asked)
    assert problems == []
    assert any("put at the head of the user's message" in note for note in notes)


# On the Hub.


def test_a_hub_model_costs_its_small_files_alone(hub: HubStandIn, tiny_model: Path, settings: Settings) -> None:
    hub.add("model", "alice/tiny", tiny_model, info={"cardData": {"license": "mit"}, "safetensors": {"total": 5000}})
    card = card_of("alice/tiny", settings)
    assert (card.kind, card.parameters, card.licence, card.gated, card.readable) == ("hub", 5000, "mit", False, True)
    assert (card.chat_template, card.end_tokens, card.context_length) == ("own", ["<|im_end|>"], 512)
    weights = (tiny_model / "model.safetensors").stat().st_size
    assert card.download_bytes is not None
    assert card.download_bytes >= weights
    assert not any("model.safetensors" in line for line in hub.asked)
    asked = len(hub.asked)
    card_of("alice/tiny", settings)
    assert len(hub.asked) == asked, "the same form asks again and again"


def test_a_model_in_the_cache_costs_nothing_more_and_needs_no_network(
    hub: HubStandIn, tiny_model: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import snapshot_download

    hub.add("model", "alice/tiny", tiny_model)
    snapshot_download("alice/tiny")
    assert card_of("alice/tiny", settings).download_bytes == 0
    monkeypatch.setattr(model_facts, "_OF_HUB", type(model_facts._OF_HUB)(16))
    hub.fault = "down"
    card = card_of("alice/tiny", settings)
    assert card.end_tokens == ["<|im_end|>"]
    assert any("read from this machine's copy: cannot reach the Hub" in note for note in card.notes)


def test_a_gated_model_has_a_card_that_says_so(hub: HubStandIn, tiny_model: Path, settings: Settings) -> None:
    hub.add("model", "alice/gated", tiny_model, gated=True, info={"safetensors": {"total": 5000}})
    card = card_of("alice/gated", settings)
    assert (card.gated, card.readable, card.parameters, card.chat_template) == (True, False, 5000, None)
    assert any("gated" in note for note in card.notes)
    assert "is gated" in checked("alice/gated", settings)[0][0]


def test_a_gated_model_opens_with_a_token(hub: HubStandIn, tiny_model: Path, settings: Settings) -> None:
    hub.add("model", "alice/gated", tiny_model, gated=True)
    hub.log_in()
    card = card_of("alice/gated", settings)
    assert (card.gated, card.readable, card.chat_template) == (True, True, "own")
    assert checked("alice/gated", settings)[0] == []


def test_what_the_hub_cannot_give_is_told_in_different_words(hub: HubStandIn, settings: Settings) -> None:
    with pytest.raises(ModelError, match="the Hub has no model alice/none"):
        card_of("alice/none", settings)
    hub.add("model", "alice/broken", {"config.json": "{"})
    with pytest.raises(ModelError, match=r"its config\.json is damaged"):
        card_of("alice/broken", settings)
    hub.add("model", "alice/empty", {"config.json": '{"model_type": "llama"}', "tokenizer.json": "{}"})
    assert any("no weights that transformers loads" in line for line in checked("alice/empty", settings)[0])
    hub.fault = "down"
    with pytest.raises(ModelError, match="cannot reach the Hub"):
        card_of("alice/other", settings)
