"""The forms in which golds are written, and the short answer in each. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grpo_studio.data.chat_forms import number_text
from grpo_studio.data.rows import Row, cell
from grpo_studio.shown import shown
from grpo_studio.verifiers.answer_text import last_box

_ROWS = 200
_NEARLY_ALL = 0.95
_MARK = "####"
_LONGEST = 200
"""Characters of a gold that is no text; one of text is given whole."""


def form_of_golds(rows: Sequence[Row], column: str | None) -> str:
    """The form of nearly all golds of the first rows: "gsm8k", "boxed", else "text"."""
    if column is None:
        return "text"
    values = (cell(row, column) for row in rows[:_ROWS])
    golds = [value for value in values if isinstance(value, str) and value.strip()]
    for form, read in (("gsm8k", _after_mark), ("boxed", _in_last_box)):
        if golds and sum(read(gold) is not None for gold in golds) >= _NEARLY_ALL * len(golds):
            return form
    return "text"


def gold_short(value: Any, form: str) -> str | None:
    """The answer alone, for showing: what stands after the last `####`, or in the last box.

    A gold of another form is given as it is; None for a missing one.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        return number_text(value) or shown(value, _LONGEST)
    short = _after_mark(value) if form == "gsm8k" else _in_last_box(value) if form == "boxed" else None
    return value.strip() if short is None else short


def _after_mark(gold: str) -> str | None:
    before, mark, after = gold.rpartition(_MARK)
    return after.strip() or None if mark and not before.endswith("#") else None


def _in_last_box(gold: str) -> str | None:
    found = last_box(gold)
    return (found[1] or "").strip() or None if found else None
