"""Chat templates: the ready ones, and what any other must do before anything renders by it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from grpo_studio import chat_templates
from grpo_studio.chat_templates import READY, kind_of, one_of, template_text, verdict_on
from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import ConfigError, DataError, ModelError
from grpo_studio.training.model_files import context_length, counted_parameters
from grpo_studio.training.tokenization import (
    end_of_turn,
    load_tokenizer,
    prompt_for,
    render,
    stop_at_end_token,
    token_counts,
)

SYSTEM = {"role": "system", "content": "Be brief."}
QUESTION = {"role": "user", "content": "1 + 1?"}
ANSWER = {"role": "assistant", "content": "2"}
PLAIN_LOOP = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


@pytest.mark.parametrize("name", READY)
def test_each_ready_template_writes_all_turns_and_asks(tiny_model: Path, name: str) -> None:
    tokenizer = load_tokenizer(str(tiny_model), None, name)
    text = render(tokenizer, [SYSTEM, QUESTION, ANSWER, QUESTION])
    assert text.count("Be brief.") == 1
    assert text.count("1 + 1?") == 2
    assert text.index("Be brief.") < text.index("1 + 1?") < text.index("2\n" if "2\n" in text else "2")
    assert text.rstrip().endswith(("assistant", "Assistant:", "Answer:", "<|end_header_id|>"))
    assert verdict_on(READY[name].text).fault is None
    assert kind_of(name) == name


def test_text_is_decoded_as_it_is_without_a_warning(tiny_model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "cleaning")
    asked = folder / "tokenizer_config.json"
    asked.write_text(json.dumps(json.loads(asked.read_text()) | {"clean_up_tokenization_spaces": True}))
    tokenizer = load_tokenizer(str(folder))
    assert tokenizer.clean_up_tokenization_spaces is False
    assert tokenizer.decode(tokenizer("a , b .")["input_ids"]) == "a , b ."


@pytest.mark.parametrize("name", ["user_assistant", "question_answer"])
def test_a_template_in_plain_words_ends_answers_in_the_models_own_end_token(tiny_model: Path, name: str) -> None:
    tokenizer = load_tokenizer(str(tiny_model), None, name)
    assert tokenizer.eos_token == "<|im_end|>"
    assert f"2{tokenizer.eos_token}" in render(tokenizer, [QUESTION, ANSWER, QUESTION])


def test_the_end_token_of_a_chosen_template_ends_completions_and_the_old_one_still_pads(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(str(tiny_model), None, PLAIN_LOOP + "{{ '<|end|>' }}")
    assert tokenizer.eos_token == "<|end|>"
    assert tokenizer.pad_token == "<|end|>"
    own = load_tokenizer(str(tiny_model))
    assert (own.eos_token, end_of_turn(own)) == ("<|im_end|>", "<|im_end|>")
    spelt = load_tokenizer(str(tiny_model), None, "llama3")
    assert spelt.eos_token == "<|im_end|>", "<|eot_id|> is no token of this model"


def test_vllm_is_told_the_end_token_of_a_chosen_template(tiny_model: Path) -> None:
    class Arguments:
        def __init__(self) -> None:
            self.generation_kwargs: dict[str, Any] | None = {"stop_token_ids": [7], "seed": 1}

    model = {"chat_template": PLAIN_LOOP + "<|end|>"}
    config = RunConfig.model_validate({"model": model, "rollout": {"engine": "vllm_colocate"}})
    tokenizer = load_tokenizer(str(tiny_model), None, config.model.chat_template)
    chosen, own = Arguments(), Arguments()
    stop_at_end_token(chosen, config, tokenizer)
    assert chosen.generation_kwargs == {"stop_token_ids": [7, tokenizer.eos_token_id], "seed": 1}
    stop_at_end_token(own, RunConfig.model_validate({"rollout": {"engine": "vllm_colocate"}}), tokenizer)
    assert own.generation_kwargs == {"stop_token_ids": [7], "seed": 1}


def test_the_template_goes_with_the_tokenizer_that_is_saved(tiny_model: Path, tmp_path: Path) -> None:
    load_tokenizer(str(tiny_model), None, "user_assistant").save_pretrained(tmp_path)
    again = load_tokenizer(str(tmp_path))
    assert render(again, [QUESTION]).endswith("User: 1 + 1?\nAssistant:")
    load_tokenizer(str(tiny_model), None, "plain").save_pretrained(tmp_path / "plain")
    assert render(load_tokenizer(str(tmp_path / "plain")), [SYSTEM, QUESTION]) == "Be brief.\n\n1 + 1?"


@pytest.mark.parametrize(
    ("template", "what"),
    [
        ("chatlm", "no ready chat template and no Jinja text; did you mean chatml"),
        ("Question: {prompt}", "no ready chat template"),
        ("{{ messages[0].content", "does not compile: line 1"),
        ("{{ messages | nothing }}", "does not compile"),
        ("{{ nothing() }}", "fails on one short question: UndefinedError"),
        ("{{ raise_exception('only for cats') }}", "only for cats"),
        ("{{ raise_exception('\x1b[2J\u202ecats') }}", "\\x1b[2J\\u202ecats"),
        ("{{ 'Hello' }}", "leaves the user's message out; write"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
    ],
)
def test_what_is_no_template_is_told_in_one_line(template: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        template_text(template)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "; " in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ 'a' * 10 ** 10 }}",
        "{% if messages | length == 2 %}{% for a in range(99999) %}{{ 'many letters' }}{% endfor %}{% endif %}",
        "{% if messages[-1].content | length > 1000 %}{% for a in range(99999) %}lots{% endfor %}{% endif %}",
        " " * 600_000,
    ],
)
def test_a_template_that_would_never_end_is_ended(template: str) -> None:
    verdict = verdict_on(template + PLAIN_LOOP)
    assert verdict.harmful
    assert verdict.fault is not None
    assert verdict.fault.startswith("the chat template ")


def test_a_models_own_template_that_would_never_end_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(tiny_model))
    tokenizer.chat_template = "{% for a in range(99999) %}many letters{% endfor %}" + PLAIN_LOOP
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"set model\.chat_template to another"):
        load_tokenizer(str(tmp_path))
    assert render(load_tokenizer(str(tmp_path), None, "plain"), [QUESTION]) == "1 + 1?"


def test_a_models_own_code_is_neither_run_nor_asked_about(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Mine: pass\n")
    points = {
        "config.json": {"AutoConfig": "mine.Mine"},
        "tokenizer_config.json": {"AutoTokenizer": ["mine.Mine", None]},
    }
    for name, own in points.items():
        changed = {"model_type": "mine", "tokenizer_class": "Mine", "auto_map": own}
        (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | changed))
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "y")
    with pytest.raises(ModelError, match="cannot load the tokenizer"):
        load_tokenizer(str(folder))
    assert (context_length(str(folder)), counted_parameters(str(folder))) == (None, None)
    assert (asked, (tmp_path / "ran").exists()) == ([], False)


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{% if m.role != 'system' %}[{{ m.content }}]{% endif %}{% endfor %}",
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}[{{ messages[-1].content }}]",
        "{% set m = messages[0] %}[{{ m.content }}]",
    ],
    ids=["drops it", "refuses it", "takes it for the question"],
)
def test_a_system_message_is_not_lost_where_the_template_knows_none(tiny_model: Path, template: str) -> None:
    tokenizer = load_tokenizer(str(tiny_model), None, template)
    assert prompt_for(tokenizer, [SYSTEM, QUESTION]) == [{"role": "user", "content": "Be brief.\n\n1 + 1?"}]
    assert render(tokenizer, [SYSTEM, QUESTION]) == "[Be brief.\n\n1 + 1?]"
    assert render(tokenizer, [QUESTION]) == "[1 + 1?]"


def test_a_begin_token_is_written_where_the_model_expects_one(tiny_model: Path, tmp_path: Path) -> None:
    from tokenizers.processors import TemplateProcessing

    tokenizer = load_tokenizer(str(tiny_model))
    begin = ("<|im_start|>", tokenizer.bos_token_id)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<|im_start|> $A", special_tokens=[begin])
    tokenizer.save_pretrained(tmp_path)
    assert render(load_tokenizer(str(tmp_path), None, "question_answer"), [QUESTION]).startswith(
        "<|im_start|>Question:"
    )
    assert render(load_tokenizer(str(tiny_model), None, "question_answer"), [QUESTION]).startswith("Question:")
    assert render(load_tokenizer(str(tmp_path), None, PLAIN_LOOP), [QUESTION]) == "1 + 1?", "one's own text stands"


@pytest.mark.parametrize("choice", [None, "plain", "user_assistant"])
def test_counting_at_once_equals_counting_one_by_one(tiny_model: Path, choice: str | None) -> None:
    tokenizer = load_tokenizer(str(tiny_model), None, choice)
    texts = ["", "What is 3 + 4?", "ä 😀 \u202e", "<|im_end|> inside", "long " * 60, "7"]
    samples = [
        Sample((SYSTEM, {"role": "user", "content": text}), text, "1", {}, row) for row, text in enumerate(texts, 1)
    ]
    one_by_one = [
        len(tokenizer(render(tokenizer, sample.messages), add_special_tokens=choice == "plain")["input_ids"])
        for sample in samples
    ]
    assert token_counts(tokenizer, samples * 170) == one_by_one * 170


def test_a_row_that_the_template_refuses_is_named(tiny_model: Path) -> None:
    template = "{% for m in messages %}{% if 'x' in m.content %}{{ raise_exception('no x') }}{% endif %}{{ m.content }}{% endfor %}"
    tokenizer = load_tokenizer(str(tiny_model), None, template)
    rows = [
        Sample(({"role": "user", "content": text},), text, "1", {}, row) for row, text in ((3, "a"), (8, "x"), (9, "b"))
    ]
    with pytest.raises(DataError, match=r"row 8: .* \(user\): no x; mend the row"):
        token_counts(tokenizer, rows)


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        ("text", "text"),
        ([{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}], "d"),
        ({"default": "d", "rag": "r"}, "d"),
        ([{"name": "tool_use", "template": "t"}], None),
        ("  ", None),
        (None, None),
        ([1, None], None),
        (5, None),
    ],
)
def test_the_template_for_chats_is_found_among_several(stored: Any, found: str | None) -> None:
    assert one_of(stored) == found


def test_the_same_text_is_tried_once() -> None:
    text = PLAIN_LOOP + "once"
    verdict_on(text)
    before = chat_templates.verdict_on.cache_info().misses
    verdict_on(text)
    assert chat_templates.verdict_on.cache_info().misses == before
