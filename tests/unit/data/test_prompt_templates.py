"""The ready prompt templates ask for what the verifiers that they name can read."""

from __future__ import annotations

import re

import pytest

from grpo_studio.config import DatasetSettings, RunConfig
from grpo_studio.data import ColumnMapping, to_sample
from grpo_studio.data.prompt_templates import PROMPT_TEMPLATES, PromptTemplate
from grpo_studio.rules import inspect
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers import discover

REGISTRY = discover([BUNDLED_REWARDS])
ANSWERS = {
    "boxed": ("I add.\n\\boxed{12}", {"answer": "12"}),
    "think_answer": ("<think>I add.</think>\n<answer>12</answer>", {"answer": "12"}),
    "number": ("12", {"answer": "12"}),
    "countdown": ("<think>I try.</think>\n<answer>(1 + 2) / 3</answer>", {"answer": "1", "nums": [1, 2, 3]}),
}


def test_there_is_one_for_each_common_way_to_answer() -> None:
    assert list(PROMPT_TEMPLATES) == ["plain", "boxed", "think_answer", "number", "countdown"]
    assert len({template.title for template in PROMPT_TEMPLATES.values()}) == len(PROMPT_TEMPLATES)


@pytest.mark.parametrize("template", PROMPT_TEMPLATES.values(), ids=list(PROMPT_TEMPLATES))
def test_each_holds_the_question_once_and_is_a_valid_setting(template: PromptTemplate) -> None:
    assert template.template.count("{prompt}") == 1
    settings = {"prompt_template": template.template, "system_prompt": template.system_prompt}
    inspected = inspect(RunConfig().model_dump(mode="json") | {"dataset": settings})
    assert inspected.problems == []
    made = to_sample({"q": "1 {+} 1"}, DatasetSettings.model_validate(settings), ColumnMapping(("q",), "q", None))
    assert made is not None
    assert "1 {+} 1" in made.question
    assert [message["role"] for message in made.messages] == ["system"] * bool(template.system_prompt) + ["user"]


def test_the_plain_one_adds_nothing() -> None:
    made = to_sample({"q": "1"}, DatasetSettings(prompt_template=PROMPT_TEMPLATES["plain"].template), ColumnMapping(("q",), "q", None))  # fmt: skip
    assert made is not None
    assert made.messages == ({"role": "user", "content": "1"},)


@pytest.mark.parametrize("name", ["think_answer", "countdown"])
def test_the_tags_are_those_of_format_tags(name: str) -> None:
    said = PROMPT_TEMPLATES[name].template + (PROMPT_TEMPLATES[name].system_prompt or "")
    tags = list(dict.fromkeys(re.findall(r"<(\w+)>", said)))
    assert tags == REGISTRY.get("format_tags").params["tags"]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_in_the_form_asked_for_is_paid_by_every_verifier_named(name: str) -> None:
    completion, columns = ANSWERS[name]
    for verifier in PROMPT_TEMPLATES[name].verifiers:
        spec = REGISTRY.get(verifier)
        judged = spec.function(completion, **{name: columns[name] for name in spec.columns if name in columns})
        assert judged.score == 1.0, f"{verifier}: {judged.reason}"
