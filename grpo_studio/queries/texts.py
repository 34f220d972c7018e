"""Events, and whole texts on demand."""

from __future__ import annotations

from grpo_studio.store.reader import Event, RunReader

EVENTS = 300
SHORT_TEXT, LONG_TEXT = 4_000, 1_000_000


def full_text(reader: RunReader, kind: str, row_id: int) -> str | None:
    """The whole text of a completion or, for kind "prompt", of a group's prompt, up to `LONG_TEXT`."""
    statement = {
        "completion": "SELECT substr(text, 1, ?) FROM completion WHERE id = ?",
        "prompt": "SELECT substr(prompt, 1, ?) FROM prompt_group WHERE id = ?",
    }.get(kind)
    rows = reader.rows(statement, (LONG_TEXT, row_id)) if statement else []
    return str(rows[0][0]) if rows else None


def recent_events(reader: RunReader, after: int = 0) -> list[Event]:
    """The newest events after a row, at most `EVENTS`, oldest first."""
    rows = reader.rows("SELECT id FROM event WHERE id > ? ORDER BY id DESC LIMIT 1 OFFSET ?", (after, EVENTS))
    return reader.events(after=int(rows[0][0]) if rows else after, limit=EVENTS)


def count_events(reader: RunReader) -> int:
    """How many events there are in all."""
    return int(reader.rows("SELECT count(*) FROM event")[0][0])


def held_out_prompts(reader: RunReader, most: int) -> list[str]:
    """The first held-out questions of the run as they were asked, each once."""
    rows = reader.rows(
        "SELECT DISTINCT substr(prompt, 1, ?) FROM (SELECT prompt FROM prompt_group WHERE split = 'eval' "
        "ORDER BY attempt, step, id LIMIT ?)",
        (LONG_TEXT, most),
    )
    return [str(row[0]) for row in rows]
