"""Which column holds the question and which the gold: as set, else guessed by name. Pure.

A guess is made only when one column fits best; where two fit alike a person is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from grpo_studio.config import ColumnSettings
from grpo_studio.data.beside import input_of, parts_beside
from grpo_studio.data.column_facts import ColumnFacts, find_columns
from grpo_studio.data.column_names import KNOWN_FIELDS, Role, standing
from grpo_studio.data.column_trouble import (
    ambiguous,
    half_a_question,
    no_prompt,
    no_text,
    not_there,
    of_mappings,
    same_column,
)
from grpo_studio.data.gold_forms import form_of_golds
from grpo_studio.data.reserved import renamed_columns
from grpo_studio.data.rows import Row, has_cell

NO_COLUMN = "-"
"""Written for `columns.answer` when no column holds a gold answer."""
ROWS_LOOKED_AT = 1000


@dataclass(frozen=True)
class ColumnMapping:
    """How the columns of a data set are used.

    Args:
        columns: all that were found, in their order; fields of mappings by dotted names (extra_info.answer).
        prompt: the column of the question, or None when it is not known.
        answer: the column of the gold answer, or None when there is none or it is not known.
        prompt_candidates, answer_candidates: columns whose name says that they could be it, the best first.
        gold_form: "gsm8k" when golds stand after `####`, "boxed" when in the last box of a solution, else "text".
        renamed: columns of a reserved name, and the name under which verifiers get them.
        beside: columns that by their name may hold a part of the question; they are not asked.
    """

    columns: tuple[str, ...]
    prompt: str | None
    answer: str | None
    prompt_candidates: tuple[str, ...] = ()
    answer_candidates: tuple[str, ...] = ()
    gold_form: str = "text"
    renamed: Mapping[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


def map_columns(rows: Sequence[Row], settings: ColumnSettings, source: str) -> ColumnMapping:
    """The mapping for these first rows of a source.

    Raises:
        ColumnError: a column that is set is not there or holds mappings; none or several could be the prompt; several
            could be the gold. Its `field` names the setting, its `mapping` what was found.
    """
    first = rows[:ROWS_LOOKED_AT]
    found = find_columns(first)
    prompts = _candidates(found, "prompt", settings.answer)
    prompt = settings.prompt or _only(prompts)
    golds = _candidates(found, "answer", prompt)
    answer = None if settings.answer == NO_COLUMN else settings.answer or _only(golds)
    beside = [] if prompt is None else parts_beside(found, prompt, answer)
    half = None if prompt is None or settings.prompt is not None else input_of(prompt, beside)
    asked = prompt is None or half is not None or (answer is None and settings.answer is None and bool(golds))
    names = [name for name, facts in found.items() if not facts.nested]
    mapping = ColumnMapping(
        columns=tuple(found),
        prompt=prompt,
        answer=answer,
        prompt_candidates=tuple(facts.name for _, facts in prompts),
        answer_candidates=tuple(facts.name for _, facts in golds),
        gold_form=form_of_golds(first, answer),
        renamed={} if asked else renamed_columns(names, prompt, answer),
        beside=tuple(facts.name for facts in beside),
    )
    _require(first, found, "prompt", prompt, source, mapping)
    if prompt is None:
        raise ambiguous("prompt", _best(prompts), source, mapping) if prompts else no_prompt(source, mapping)
    if half is not None:
        raise half_a_question(half, source, replace(mapping, prompt=None), prompt)
    _require(first, found, "answer", answer, source, mapping)
    if answer == prompt:
        raise same_column(prompt, source, mapping)
    if asked:
        raise ambiguous("answer", _best(golds), source, mapping)
    return mapping


def require_text(mapping: ColumnMapping, unreadable: Mapping[str, int], settings: ColumnSettings, source: str) -> None:
    """Refuse a mapping of columns whose values had to be left out, since they are no text (`RowStream.unreadable`).

    A gold that is not known counts as one of its name.

    Raises:
        ColumnError: for the first such column.
    """
    roles: tuple[tuple[Role, str | None], ...] = (("prompt", mapping.prompt), ("answer", mapping.answer))
    for role, column in roles:
        for field_name, row in unreadable.items():
            guessed = column is None and settings.answer is None and standing(field_name, role) is not None
            if guessed or (column is not None and f"{field_name}.".startswith(f"{column}.")):
                raise no_text(role, column or field_name, field_name, row, source, mapping)


Ranked = tuple[tuple[bool, int, int], ColumnFacts]


def _candidates(found: Mapping[str, ColumnFacts], role: Role, other: str | None) -> list[Ranked]:
    """Columns whose name speaks for a role, the best first; `other` has a role already.

    A mapping comes last, since only one of its fields can be meant; then names decide, then how deep a column lies. A
    column without a value is none as long as there is another.
    """
    ranked: list[Ranked] = []
    for name, facts in found.items():
        rank = standing(name.rpartition(".")[2] if facts.nested else name, role)
        if rank is None or name == other:
            continue
        depth = 0 if not facts.nested else 1 if name in KNOWN_FIELDS[role] else 2
        ranked.append(((_holds_fields(facts, role), rank, depth), facts))
    filled = [one for one in ranked if one[1].kinds]
    return sorted(filled or ranked, key=lambda one: one[0])


def _best(candidates: Sequence[Ranked]) -> list[ColumnFacts]:
    """Those of the best rank."""
    return [facts for rank, facts in candidates if rank == candidates[0][0]]


def _only(candidates: Sequence[Ranked]) -> str | None:
    best = _best(candidates) if candidates else []
    return best[0].name if len(best) == 1 else None


def _require(
    rows: Sequence[Row],
    found: Mapping[str, ColumnFacts],
    role: Role,
    column: str | None,
    source: str,
    mapping: ColumnMapping,
) -> None:
    """Refuse a column for a role that is not there, or that holds columns of its own."""
    if column is None:
        return
    if column not in found and not any(has_cell(row, column) for row in rows):
        raise not_there(role, column, source, mapping)
    facts = found.get(column)
    if facts is not None and _holds_fields(facts, role):
        raise of_mappings(role, column, source, mapping)


def _holds_fields(facts: ColumnFacts, role: Role) -> bool:
    """Whether a column holds mappings of which only a field can be meant: a gold may well be one of tests."""
    tests = role == "answer" and isinstance(facts.sample, Mapping) and not _TEST_FIELDS.isdisjoint(facts.sample)
    return facts.is_mapping and not tests


_TEST_FIELDS = frozenset({"inputs", "outputs", "input", "output", "fn_name"})
