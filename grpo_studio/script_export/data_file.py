"""data.jsonl: the rows of a run as its trainer and its verifiers got them, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from grpo_studio.errors import DataError
from grpo_studio.script_export.facts import ScriptRow
from grpo_studio.shown import shown_name
from grpo_studio.verifiers import VerifierSpec
from grpo_studio.verifiers.plain_data import plain


def data_lines(rows: Sequence[ScriptRow], specs: Sequence[VerifierSpec]) -> Iterator[bytes]:
    """A line for each row: the prompt, the question, and those columns that a verifier takes.

    Raises:
        DataError: a column holds what JSON cannot, so that no verifier could be given it either.
    """
    taken = [
        name
        for name in dict.fromkeys(name for row in rows for name in row.columns)
        if any(spec.takes(name) for spec in specs)
    ]
    for number, row in enumerate(rows, start=1):
        columns = {name: row.columns[name] for name in taken if name in row.columns}
        for name, value in columns.items():
            _require_plain(name, value, number)
        yield _line({"prompt": row.prompt, "question": row.question, "columns": columns})


def _require_plain(name: str, value: object, number: int) -> None:
    try:
        json.dumps(value, default=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"training row {number}: the column {shown_name(name)} is no plain data: {error}; the script's data file "
            "can hold text, numbers, lists and mappings"
        ) from error


def _line(document: dict[str, object]) -> bytes:
    try:
        return json.dumps(document, default=plain, ensure_ascii=False).encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
        return json.dumps(document, default=plain).encode("ascii") + b"\n"
