"""Columns beside the prompt that may hold a part of the question, such as choices or the text it is about. Pure.

A prompt is one column. Who trains on the instruction without its input trains on questions that nobody can answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from grpo_studio.data.column_facts import ColumnFacts
from grpo_studio.data.column_names import plain
from grpo_studio.shown import shown_name

_NAMED: Final = 5
_SYSTEM: Final = frozenset(map(plain, ("system", "system prompt", "system message", "history")))
_TEXT: Final = frozenset(
    map(
        plain,
        (
            "input", "context", "passage", "article", "body", "paragraph", "document", "story", "premise", "choices",
            "options", "Eingabe", "Kontext", "contexte", "contexto", "entrée", "entrada", "контекст", "输入", "选项",
        ),
    )
)  # fmt: skip
_INSTRUCTIONS: Final = frozenset(map(plain, ("instruction", "Anweisung", "consigne", "instrucción", "istruzione")))
_INPUTS: Final = frozenset(map(plain, ("input", "Eingabe", "entrée", "entrada", "context", "Kontext")))


def parts_beside(found: Mapping[str, ColumnFacts], prompt: str, answer: str | None) -> list[ColumnFacts]:
    """Columns with values that by their name may belong to the question; beside a chat only what is said before it."""
    parent = prompt.rpartition(".")[0]
    is_chat = prompt in found and found[prompt].kinds["chat"] > 0
    names = _SYSTEM if is_chat else _SYSTEM | _TEXT
    return [
        facts
        for name, facts in found.items()
        if name not in (prompt, answer)
        and name.rpartition(".")[0] == parent
        and plain(name.rpartition(".")[2]) in names
        and _says_something(facts)
    ]


def input_of(prompt: str, parts: Sequence[ColumnFacts]) -> ColumnFacts | None:
    """The input that an instruction is given with (Alpaca's form), for it makes no sense without."""
    if plain(prompt.rpartition(".")[2]) not in _INSTRUCTIONS:
        return None
    return next((facts for facts in parts if plain(facts.name.rpartition(".")[2]) in _INPUTS), None)


def part_notes(prompt: str | None, beside: Sequence[str]) -> list[str]:
    """What a person is told of columns that may belong to the question and are not asked: one line or none."""
    if not beside or prompt is None:
        return []
    named = ", ".join(shown_name(name) for name in beside[:_NAMED])
    return [
        f"the question is the column {shown_name(prompt)} alone, the model does not see {named}: "
        "what belongs to the question must stand in one column with it"
    ]


def _says_something(facts: ColumnFacts) -> bool:
    value = facts.sample
    return bool(value.strip()) if isinstance(value, str) else bool(value)
