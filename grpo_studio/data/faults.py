"""What can be wrong with a row. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

FatalKind = Literal[
    "missing_prompt",
    "empty_prompt",
    "prompt_not_text",
    "only_template",
    "broken_chat",
    "odd_role",
    "no_user_turn",
    "assistant_last",
    "late_system_message",
    "tool_calls",
    "half_character",
]
DoubtfulKind = Literal[
    "number_prompt",
    "unfilled_prompt",
    "two_system_messages",
    "same_role_twice",
    "empty_turn",
    "chat_as_text",
    "chat_marks",
    "tool_marks",
    "control_characters",
    "broken_encoding",
]
FaultKind = FatalKind | DoubtfulKind
FATAL: Final[frozenset[str]] = frozenset(get_args(FatalKind))
"""Kinds that leave a row without a usable prompt; of all others it is told, and the row is used."""

TITLES: Final[Mapping[str, str]] = {
    "missing_prompt": "no prompt",
    "empty_prompt": "an empty prompt",
    "prompt_not_text": "a prompt that is no text",
    "only_template": "a prompt that is only the template's text",
    "broken_chat": "messages that are no chat",
    "odd_role": "messages of an unknown role",
    "no_user_turn": "no message of the user",
    "assistant_last": "the assistant as the last to speak",
    "late_system_message": "a system message in the middle of the chat",
    "tool_calls": "tool calls left in the prompt",
    "half_character": "half a character in the prompt",
    "number_prompt": "a number as the prompt, read as text",
    "unfilled_prompt": "a prompt in which the question was never filled in",
    "two_system_messages": "several system messages, made one",
    "same_role_twice": "two messages of one role in a row",
    "empty_turn": "an empty message before the question",
    "chat_as_text": "a chat written as text that is not JSON",
    "chat_marks": "marks of a chat template in the prompt",
    "tool_marks": "marks of a tool call in the prompt",
    "control_characters": "control characters in the prompt",
    "broken_encoding": "signs of a wrong encoding in the prompt",
}
"""What a row of each kind has."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a row; `fatal`: it has no usable prompt, so it cannot be trained on."""

    kind: FaultKind
    message: str
    fatal: bool


class Faults:
    """The faults of one row as they are found: the first of each kind."""

    def __init__(self) -> None:
        self._found: dict[FaultKind, Fault] = {}

    def add(self, kind: FaultKind, message: str) -> None:
        self._found.setdefault(kind, Fault(kind, message, kind in FATAL))

    @property
    def fatal(self) -> bool:
        return any(fault.fatal for fault in self._found.values())

    def all(self) -> tuple[Fault, ...]:
        return tuple(self._found.values())
