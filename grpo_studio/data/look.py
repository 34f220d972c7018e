"""A quick look at a data set for a page: its columns, what they are taken for, and what must be asked.

Only the first rows are read, so it is quick whatever the size of the source.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from grpo_studio.config import DatasetSettings
from grpo_studio.data.beside import part_notes
from grpo_studio.data.column_facts import ColumnFacts, find_columns
from grpo_studio.data.gold_forms import gold_short
from grpo_studio.data.loading import first_rows
from grpo_studio.data.mapping import ColumnMapping, map_columns, require_text
from grpo_studio.data.no_prompts import none_usable
from grpo_studio.data.reserved import rename_notes
from grpo_studio.data.rows import Row, cell
from grpo_studio.errors import ColumnError
from grpo_studio.shown import shown

ROWS = 200
SAMPLE_LENGTH = 120
GOLDS = 3
MOST_COLUMNS = 200
"""Columns that are listed: more than a person looks through."""


def look(settings: DatasetSettings) -> dict[str, Any]:
    """What the first rows say: {"mapping", "ask", "notes"}, all of it fit for JSON.

    `ask` is the question that a person must answer before a run, {"field", "message"}, or None. Each column of the
    mapping is {"name", "title" (the name cut and made safe), "kind", "sample", "nested"}; "gold_samples" are the short
    golds of the first rows.

    Raises:
        DataError: the source cannot be read or holds no rows.
    """
    rows, stream = first_rows(settings, ROWS)
    mapping, ask = _mapped(rows, settings, stream.unreadable)
    notes = [*stream.notes, *part_notes(mapping.prompt, mapping.beside), *rename_notes(mapping.renamed)]
    if ask is None and (why := none_usable(rows, settings, mapping)):
        notes.append(f"none of the first {len(rows)} rows has a usable prompt: {why}")
    columns = _listed(find_columns(rows), notes)
    found = _mapping(mapping, columns, settings) | {"gold_samples": _golds(rows, mapping)}
    return {"mapping": found, "ask": ask, "notes": notes}


def _mapped(
    rows: Sequence[Row], settings: DatasetSettings, unreadable: Mapping[str, int]
) -> tuple[ColumnMapping, dict[str, str] | None]:
    """The mapping as far as it is known, and what must be asked."""
    try:
        mapping = map_columns(rows, settings.columns, settings.source)
        require_text(mapping, unreadable, settings.columns, settings.source)
        return mapping, None
    except ColumnError as error:
        if not isinstance(error.mapping, ColumnMapping):
            raise
        return error.mapping, {"field": error.field, "message": str(error)}


def _mapping(mapping: ColumnMapping, columns: list[dict[str, Any]], settings: DatasetSettings) -> dict[str, Any]:
    return {
        "columns": columns,
        "prompt": mapping.prompt,
        "answer": mapping.answer,
        "prompt_candidates": list(mapping.prompt_candidates),
        "answer_candidates": list(mapping.answer_candidates),
        "gold_form": mapping.gold_form,
        "guessed": {
            "prompt": settings.columns.prompt is None and mapping.prompt is not None,
            "answer": settings.columns.answer is None and mapping.answer is not None,
        },
        "renamed": dict(mapping.renamed),
    }


def _golds(rows: Sequence[Row], mapping: ColumnMapping) -> list[str]:
    if mapping.answer is None:
        return []
    golds = (gold_short(cell(row, mapping.answer), mapping.gold_form) for row in rows)
    return [shown(gold, SAMPLE_LENGTH) for gold in itertools.islice((gold for gold in golds if gold), GOLDS)]


def _listed(found: Mapping[str, ColumnFacts], notes: list[str]) -> list[dict[str, Any]]:
    """The columns that a person can choose; adds to `notes` when some are left out."""
    fit = [facts for facts in found.values() if facts.name]
    if "" in found:
        notes.append("a column without a name cannot be chosen")
    if len(fit) > MOST_COLUMNS:
        notes.append(f"the first {MOST_COLUMNS} of {len(fit)} columns are listed; any other can be set by its name")
    return [_column(facts) for facts in fit[:MOST_COLUMNS]]


def _column(facts: ColumnFacts) -> dict[str, Any]:
    sample = "" if facts.sample is None else shown(facts.sample, SAMPLE_LENGTH)
    return {
        "name": facts.name,
        "title": shown(facts.name, 60),
        "kind": facts.kind,
        "sample": sample,
        "nested": facts.nested,
    }
