"""What is said when the columns of a data set cannot be mapped: what was found, and what to set. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from grpo_studio.data.column_facts import ColumnFacts
from grpo_studio.data.column_names import Role, plain
from grpo_studio.errors import ColumnError
from grpo_studio.shown import shown, shown_name

if TYPE_CHECKING:
    from grpo_studio.data.mapping import ColumnMapping

_NAMES_SHOWN = 20
_LONGEST_NAME = 60
_NUMBER = re.compile(r"[+-]?[\d.,]+")
_CANDIDATES_SHOWN = 5
_WORDS: dict[Role, str] = {"prompt": "the prompt", "answer": "the gold answer"}


def not_there(role: Role, column: str, source: str, mapping: ColumnMapping) -> ColumnError:
    """A column that is set does not exist; the nearest name is proposed."""
    near = _nearest(column, mapping.columns)
    hint = f"did you mean {shown_name(near)}? " if near else ""
    message = (
        f"{shown(source, 200)} has no column '{shown(column)}' for the {role} {_listed(mapping.columns)}; "
        f"{hint}set {_field(role)} to one of them"
    )
    return ColumnError(message, _field(role), mapping)


def no_prompt(source: str, mapping: ColumnMapping) -> ColumnError:
    """No column is known to be the prompt by its name; in a table without a header the first row has them."""
    first = "add a first line that names the columns, or " if _looks_like_a_row(source, mapping.columns) else ""
    message = (
        f"{shown(source, 200)} has no column for the prompt that is known by its name {_listed(mapping.columns)}; "
        f"{first}set {_field('prompt')} to one of them"
    )
    return ColumnError(message, _field("prompt"), mapping)


def ambiguous(role: Role, candidates: Sequence[ColumnFacts], source: str, mapping: ColumnMapping) -> ColumnError:
    """Several columns could be meant: each with what it holds."""
    named = [f"{shown_name(one.name)} (such as {_sample(one)})" for one in candidates[:_CANDIDATES_SHOWN]]
    more = f" and {len(candidates) - _CANDIDATES_SHOWN} more" if len(candidates) > _CANDIDATES_SHOWN else ""
    none = ", or to - when none is" if role == "answer" else ""
    message = (
        f"{shown(source, 200)} has {len(candidates)} columns that could be {_WORDS[role]}: {', '.join(named)}{more}; "
        f"set {_field(role)} to the one that is{none}"
    )
    return ColumnError(message, _field(role), mapping)


def of_mappings(role: Role, column: str, source: str, mapping: ColumnMapping) -> ColumnError:
    """A column holds mappings, of which one field is meant."""
    fields = [name for name in mapping.columns if name.startswith(f"{column}.")]
    what = "no text and no chat" if role == "prompt" else "no answer"
    fix = (
        f"set {_field(role)} to a field of it: {_names(fields)}" if fields else f"set {_field(role)} to another column"
    )
    message = (
        f"{shown(source, 200)}: the column {shown_name(column)}, taken for {_WORDS[role]}, holds mappings, which are "
        f"{what}; {fix}"
    )
    return ColumnError(message, _field(role), mapping)


def half_a_question(part: ColumnFacts, source: str, mapping: ColumnMapping, prompt: str) -> ColumnError:
    """An instruction has its input in another column, and one column is asked."""
    message = (
        f"{shown(source, 200)} has instructions in {shown_name(prompt)} and what they are about in "
        f"{shown_name(part.name)} (such as {_sample(part)}), but the prompt is one column; "
        f"write both into one column, or set {_field('prompt')} to {shown_name(prompt)} to ask without the other"
    )
    return ColumnError(message, _field("prompt"), mapping)


def no_text(role: Role, column: str, field: str, row: int, source: str, mapping: ColumnMapping) -> ColumnError:
    """A column for a role holds values that are no text and no value of any other kind."""
    where = shown_name(column) if field == column else f"{shown_name(column)} (in {shown_name(field)})"
    none = ", or to - when there is none" if role == "answer" else ""
    message = (
        f"{shown(source, 200)}: the column {where} for {_WORDS[role]} holds binary data that is no text, first in row "
        f"{row:,}; set {_field(role)} to a column of text{none}"
    )
    return ColumnError(message, _field(role), mapping)


def same_column(column: str, source: str, mapping: ColumnMapping) -> ColumnError:
    """One column has both roles, which would give the answer away."""
    message = (
        f"{shown(source, 200)}: the column {shown_name(column)} is set both for the prompt and for the gold answer; "
        f"set {_field('answer')} to another one, or to - when there is none"
    )
    return ColumnError(message, _field("answer"), mapping)


def _looks_like_a_row(source: str, columns: Sequence[str]) -> bool:
    """Whether the names of a table's columns read like the cells of a row: a question, a sentence, a number."""
    table = source.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    return table and any(
        name.rstrip().endswith(("?", "？", ".")) or len(name) > _LONGEST_NAME or _NUMBER.fullmatch(name)  # noqa: RUF001
        for name in columns
    )


def _field(role: Role) -> str:
    return f"dataset.columns.{role}"


def _listed(names: Sequence[str]) -> str:
    return f"(columns found: {_names(names)})"


def _names(names: Sequence[str]) -> str:
    more = [f"and {len(names) - _NAMES_SHOWN} more"] if len(names) > _NAMES_SHOWN else []
    return ", ".join([*map(shown_name, names[:_NAMES_SHOWN]), *more]) or "none"


def _sample(facts: ColumnFacts) -> str:
    if facts.sample is None:
        return "nothing"
    return f"'{shown(facts.sample, 40)}'" if isinstance(facts.sample, str) else shown(facts.sample, 40)


def _nearest(name: str, columns: Iterable[str]) -> str | None:
    """The column of the same letters, else the most alike one; of mappings, also by the field's name alone."""
    bounded = [column for column in columns if len(column) <= 200][:500]
    same = [column for column in bounded if plain(column) and plain(column) == plain(name)]
    inside = [column for column in bounded if column.rpartition(".")[2] == name]
    close = difflib.get_close_matches(name[:200], bounded, n=1, cutoff=0.5)
    return next(iter([*same, *inside, *close]), None)
