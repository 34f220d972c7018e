"""Prompts shown as the model will see them: special tokens, what does not show, the true length."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.errors import DataError, ModelError
from grpo_studio.preview import RenderedPrompt, preview
from grpo_studio.prompt_parts import clipped, escaped, visible
from grpo_studio.settings import Settings
from grpo_studio.training.tokenization import load_tokenizer

BEGIN, END = ["<|im_start|>", "special"], ["<|im_end|>", "special"]
ASKS = [BEGIN, ["assistant\n", "text"]]


def shown(
    rows: list[dict[str, Any]], folder: Path, model: Path, settings: Settings, **sections: Any
) -> list[RenderedPrompt]:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    raw = {
        "model": {"id": str(model), **sections.pop("model_section", {})},
        "dataset": {"source": str(path), **sections.pop("dataset", {})},
        **sections,
    }
    return preview(RunConfig.model_validate(raw), settings)


def test_special_tokens_and_what_does_not_show_stand_apart(
    tmp_path: Path, tiny_model: Path, settings: Settings
) -> None:
    row = {"question": "a\u202eb\tc\n<|im_end|>", "answer": "2 + 3 is 5\n#### 5", "other": 1}
    [prompt] = shown([row], tmp_path, tiny_model, settings)
    assert prompt.parts == [
        BEGIN,
        ["user\na", "text"],
        ["\\u202e", "control"],
        ["b", "text"],
        ["\\t", "control"],
        ["c\n", "text"],
        END,  # as the model reads it, who wrote it is no matter
        END,
        ["\n", "text"],
        *ASKS,
    ]
    assert prompt.text == "<|im_start|>user\na\u202eb\tc\n<|im_end|><|im_end|>\n<|im_start|>assistant\n"
    tokenizer = load_tokenizer(str(tiny_model))
    assert prompt.tokens == len(tokenizer(prompt.text, add_special_tokens=False)["input_ids"])
    assert (prompt.gold, prompt.answer) == ("5", "2 + 3 is 5\n#### 5")


def test_earlier_turns_and_one_system_message_are_rendered(
    tmp_path: Path, tiny_model: Path, settings: Settings
) -> None:
    turns = [("system", "Old."), ("user", "1?"), ("assistant", "one"), ("user", "2?")]
    row = {"prompt": [{"role": role, "content": text} for role, text in turns], "answer": "2"}
    [prompt] = shown([row], tmp_path, tiny_model, settings, dataset={"system_prompt": "New."})
    assert "".join(text for text, _ in prompt.parts) == (
        "<|im_start|>system\nNew.<|im_end|>\n<|im_start|>user\n1?<|im_end|>\n<|im_start|>assistant\none<|im_end|>\n"
        "<|im_start|>user\n2?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_plain_text_shows_the_begin_token_that_the_tokenizer_adds(
    tmp_path: Path, tiny_model: Path, settings: Settings
) -> None:
    from tokenizers.processors import TemplateProcessing

    model = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    tokenizer = load_tokenizer(str(tiny_model))
    begin = ("<|im_start|>", tokenizer.bos_token_id)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<|im_start|> $A", special_tokens=[begin])
    tokenizer.save_pretrained(model)
    [prompt] = shown(
        [{"prompt": "a", "answer": "b"}], tmp_path, model, settings, model_section={"chat_template": "plain"}
    )
    assert (prompt.parts, prompt.tokens, prompt.text) == ([BEGIN, ["a", "text"]], 2, "a")


def test_a_long_prompt_is_cut_for_showing_and_counted_whole(
    tmp_path: Path, tiny_model: Path, settings: Settings
) -> None:
    question = "first " + "a b " * 10_000 + "last"
    [prompt] = shown([{"prompt": question, "answer": "1"}], tmp_path, tiny_model, settings)
    whole = "".join(text for text, _ in prompt.parts)
    assert len(whole) < 10_000
    assert whole.startswith("<|im_start|>user\nfirst a b ")
    assert whole.endswith("a b last<|im_end|>\n<|im_start|>assistant\n")
    left = len(question) + len("<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n") - 9_000
    assert [f"[… {left:,} characters …]", "control"] in prompt.parts
    assert prompt.tokens > 20_000


def test_arguments_of_the_template_are_those_of_the_run(tmp_path: Path, tiny_model: Path, settings: Settings) -> None:
    template = "{{ messages[0].content }}{% if thinking %}<think>{% endif %}"
    [prompt] = shown(
        [{"prompt": "a", "answer": "b"}],
        tmp_path,
        tiny_model,
        settings,
        model_section={"chat_template": template},
        algorithm={"extra": {"chat_template_kwargs": {"thinking": True}}},
    )
    assert prompt.text == "a<think>"


def test_rows_without_a_usable_prompt_are_passed_over(tmp_path: Path, tiny_model: Path, settings: Settings) -> None:
    rows = [{"prompt": text, "answer": "1"} for text in ("", "a", None, "b", "c", "d")]
    assert [prompt.row for prompt in shown(rows, tmp_path, tiny_model, settings)] == [2, 4, 5]
    with pytest.raises(DataError, match="none of the first 2 rows"):
        shown([{"prompt": "", "answer": "1"}, {"prompt": None, "answer": "1"}], tmp_path, tiny_model, settings)


def test_no_more_than_the_first_rows_are_read(tmp_path: Path, tiny_model: Path, settings: Settings) -> None:
    good = [{"prompt": f"a{number}", "answer": "1"} for number in range(250)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in good) + "not JSON\n")
    config = RunConfig.model_validate({"model": {"id": str(tiny_model)}, "dataset": {"source": str(path)}})
    assert len(preview(config, settings)) == 3


def test_a_template_that_is_edited_is_read_again(tmp_path: Path, tiny_model: Path, settings: Settings) -> None:
    model = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    rows = [{"prompt": "a", "answer": "b"}]
    before = shown(rows, tmp_path, model, settings)[0].text
    (model / "chat_template.jinja").write_text("Asked: {{ messages[0].content }}")
    assert (before.startswith("<|im_start|>"), shown(rows, tmp_path, model, settings)[0].text) == (True, "Asked: a")


def test_a_model_that_was_not_fetched_yet_is_told(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(ModelError, match="fetched when a run starts"):
        shown([{"prompt": "a", "answer": "b"}], tmp_path, Path("builtin:smollm2-135m-instruct"), settings)


@pytest.mark.parametrize(
    ("text", "as_shown"),
    [
        ("a\nb", "a\nb"),
        ("\x00\x1b[31m\r", "\\x00\\x1b[31m\\r"),
        ("\u200b\u200d\u2060\ufeff", "\\u200b\\u200d\\u2060\\ufeff"),
        ("\u202a\u202e\u2066\u2069\u061c", "\\u202a\\u202e\\u2066\\u2069\\u061c"),
        ("\u00a0\u3000\u2028\u00ad", "\\xa0\\u3000\\u2028\\xad"),
        ("\ud800", "\\ud800"),
        ("\U000e0041\U000f0000\ue000", "\\U000e0041\\U000f0000\\ue000"),
        ("\u3164\u115f\ufe0f", "\\u3164\\u115f\\ufe0f"),
        ("é ß 漢 😀 \u0301 ∑", "é ß 漢 😀 \u0301 ∑"),
    ],
)
def test_what_does_not_show_is_written_as_an_escape(text: str, as_shown: str) -> None:
    assert escaped(text) == as_shown
    assert "".join(part for part, _ in visible(text, ())) == as_shown


def test_nothing_is_lost_between_parts() -> None:
    text = "one<s>two\x00<s>"
    assert visible(text, [(0, 0, "<b>"), (3, 6, "<s>"), (10, 13, "<s>")]) == [
        ["<b>", "special"],
        ["one", "text"],
        ["<s>", "special"],
        ["two", "text"],
        ["\\x00", "control"],
        ["<s>", "special"],
    ]
    parts = [["abc", "text"], ["<s>", "special"], ["def", "text"]]
    assert clipped(parts, 5, 4) == parts
    assert clipped(parts, 4, 2) == [
        ["abc", "text"],
        ["<", "special"],
        ["[… 3 characters …]", "control"],
        ["ef", "text"],
    ]
