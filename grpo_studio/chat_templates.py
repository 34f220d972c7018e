"""How chat messages become text: ready chat templates, and a judgement of any other. No torch here.

A template is a program that came with a model or from a person: it is tried on a few conversations in a child process
with little time and memory before anything else renders it.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio.errors import ConfigError
from grpo_studio.naming import nearest_names
from grpo_studio.prompt_parts import escaped

PLAIN = "plain"
"""Chosen to render messages as plain text although the model has a template."""
CHILD = Path(__file__).with_name("chat_template_child.py")
WALL_SECONDS = 30.0
"""A child is bound to two seconds of the processor; this ends one that gets none."""
LONGEST_TEMPLATE = 500_000


@dataclass(frozen=True)
class ChatTemplate:
    """A ready template. Each answer ends in its own end token, or in the model's (`eos_token`)."""

    name: str
    title: str
    text: str


READY = {
    template.name: template
    for template in (
        ChatTemplate(
            "chatml",
            "ChatML: <|im_start|>role ... <|im_end|> (Qwen and many others)",
            "{% for message in messages %}"
            "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
            "{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
        ),
        ChatTemplate(
            "user_assistant",
            "User and Assistant in plain words, for base models (the form of R1-Zero and TinyZero)",
            "{% if messages[0]['role'] != 'system' %}"
            "{{ 'A conversation between User and Assistant. User asks, and Assistant answers.\\n' }}"
            "{% endif %}"
            "{% for message in messages %}"
            "{% if message['role'] == 'user' %}{{ 'User: ' + message['content'] + '\\n' }}"
            "{% elif message['role'] == 'assistant' %}{{ 'Assistant: ' + message['content'] + eos_token + '\\n' }}"
            "{% else %}{{ message['content'] + '\\n' }}{% endif %}"
            "{% endfor %}"
            "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}",
        ),
        ChatTemplate(
            "question_answer",
            "Question and Answer in plain words, for base models",
            "{% for message in messages %}"
            "{% if message['role'] == 'user' %}{{ 'Question: ' + message['content'] + '\\n' }}"
            "{% elif message['role'] == 'assistant' %}{{ 'Answer: ' + message['content'] + eos_token + '\\n\\n' }}"
            "{% else %}{{ message['content'] + '\\n\\n' }}{% endif %}"
            "{% endfor %}"
            "{% if add_generation_prompt %}{{ 'Answer:' }}{% endif %}",
        ),
        ChatTemplate(
            "llama3",
            "Llama 3: <|start_header_id|>role<|end_header_id|> ... <|eot_id|>",
            "{% for message in messages %}"
            "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}"
            "{{ message['content'] | trim + '<|eot_id|>' }}"
            "{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
        ),
    )
}
ASK_FOR = f"use {PLAIN}, one of {', '.join(READY)}, or the text of a Jinja template"


@dataclass(frozen=True)
class Verdict:
    """What a template does with the conversations it was tried on.

    Args:
        fault: why it cannot be used, in one line with what would work; None when it can.
        harmful: whether the fault is one that could hang what renders it, rather than a refusal or a mistake.
        takes_system: whether a system message's text stands in what it writes.
        after_answer: what it writes after an answer's text: the end of the turn, and on.
    """

    fault: str | None
    harmful: bool = False
    takes_system: bool = True
    after_answer: str = ""

    def end_of_turn(self, special: Iterable[str]) -> str | None:
        """The token in which an answer ends, when it is one of a model's special ones: the longest that fits."""
        tail = self.after_answer.lstrip()
        return max((token for token in special if token.strip() and tail.startswith(token)), key=len, default=None)


def kind_of(choice: str | None) -> str:
    """What a setting of `model.chat_template` stands for: own, plain, the name of a ready one, or custom."""
    if choice is None:
        return "own"
    return choice if choice == PLAIN or choice in READY else "custom"


def template_text(choice: str) -> str:
    """The Jinja text behind a choice other than plain.

    Raises:
        ConfigError: it is no ready name and no template, or the template cannot be used.
    """
    if choice in READY:
        return READY[choice].text
    if "{{" not in choice and "{%" not in choice:
        shown = " ".join(choice.split())[:60]
        hint = nearest_names(choice[:100], [PLAIN, *READY]) if len(choice) < 40 else ASK_FOR
        raise ConfigError(f"{shown!r} is no ready chat template and no Jinja text; {hint}")
    if fault := verdict_on(choice).fault:
        raise ConfigError(fault)
    return choice


def listed() -> list[dict[str, str]]:
    """The ready ones as a page shows them."""
    return [{"name": template.name, "title": template.title} for template in READY.values()]


def one_of(stored: Any) -> str | None:
    """The template for chats in what a tokenizer's files hold: a text, or several by their names."""
    if isinstance(stored, list):
        stored = {entry.get("name"): entry.get("template") for entry in stored if isinstance(entry, Mapping)}
    if isinstance(stored, Mapping):
        stored = stored.get("default")
    return stored if isinstance(stored, str) and stored.strip() else None


@functools.lru_cache(maxsize=256)
def verdict_on(text: str, eos_token: str = "<eos>", bos_token: str = "") -> Verdict:
    """Try a template in a child process; the same text is tried once."""
    if len(text) > LONGEST_TEMPLATE:
        size = f"{len(text):,} characters; at most {LONGEST_TEMPLATE:,} are read"
        return Verdict(f"the chat template has {size}", harmful=True)
    request = json.dumps({"template": text, "eos_token": eos_token, "bos_token": bos_token})
    try:
        # -I: nothing of this environment reaches the child, neither variables nor folders to import from.
        child = subprocess.run(
            [sys.executable, "-I", str(CHILD)],
            input=request,
            capture_output=True,
            text=True,
            timeout=WALL_SECONDS,
            env={},
        )
        answer = json.loads(child.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return Verdict(
            "the chat template takes more than 2 seconds or 512 MB for one short conversation; use one that ends",
            harmful=True,
        )
    fault = answer["fault"]
    return Verdict(
        None if fault is None else escaped(" ".join(fault.split()))[:400],
        bool(answer["harmful"]),
        bool(answer["takes_system"]),
        str(answer["after_answer"]),
    )
