"""What is said of a data set in which no row has a prompt that can be asked. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from grpo_studio.config import DatasetSettings
from grpo_studio.data.faults import Fault, FaultKind
from grpo_studio.data.mapping import ColumnMapping
from grpo_studio.data.row_faults import row_faults
from grpo_studio.data.rows import Row
from grpo_studio.data.splitting import Numbered
from grpo_studio.errors import ColumnError
from grpo_studio.shown import shown, shown_name

_FIELD = "dataset.columns.prompt"
_OTHERWISE = f"set {_FIELD} to the column of the question"
_FIXES: dict[FaultKind, str] = {
    "assistant_last": f"end each chat with the user's question (the answer after it can be a gold in a column of its "
    f"own), or set {_FIELD} to a column with the question alone",
    "tool_calls": f"leave messages of tools out of the chats, or set {_FIELD} to a column with the question alone",
    "odd_role": "name the roles system, user and assistant",
    "only_template": "take the template's text out of the rows, or set dataset.prompt_template to null",
    "late_system_message": "put the system message first in each chat",
}


def no_usable_prompt(first: Numbered, count: int, settings: DatasetSettings, mapping: ColumnMapping) -> ColumnError:
    """The error for `count` rows without a usable prompt, with the fault of the first one and what to do about it."""
    number, row = first
    fault = _fatal(row, settings, mapping)
    fix = _OTHERWISE if fault is None else _FIXES.get(fault.kind, _OTHERWISE)
    column = "" if mapping.prompt is None else f"column {shown_name(mapping.prompt)}, "
    where = f"in row {number} of {shown(settings.source, 200)} ({column}{count:,} row{'s' * (count > 1)} in all)"
    return ColumnError(f"no row has a usable prompt: {where} {_told(fault)}; {fix}", _FIELD, mapping)


def none_usable(rows: Sequence[Row], settings: DatasetSettings, mapping: ColumnMapping) -> str | None:
    """What is wrong with the first row when none of these can be asked; None when one can."""
    first: Fault | None = None
    for row in rows:
        fault = _fatal(row, settings, mapping)
        if fault is None:
            return None
        first = first or fault
    return None if first is None else f"in row 1 {_told(first)}"


def _fatal(row: Row, settings: DatasetSettings, mapping: ColumnMapping) -> Fault | None:
    return next((fault for fault in row_faults(row, settings, mapping) if fault.fatal), None)


def _told(fault: Fault | None) -> str:
    return "the prompt cannot be used" if fault is None else fault.message
