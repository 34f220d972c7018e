"""What is known of the rows that could not be read of a damaged run.db: how many they are, where attempts began."""

from __future__ import annotations

import sqlite3
import time

from grpo_studio.run_state import RECORDS_LOST
from grpo_studio.store.pages import Pages

COUNTED = {
    "metric": "metric values",
    "prompt_group": "groups",
    "completion": "completions",
    "event": "events",
    "memory_sample": "memory samples",
    "phase_time": "phase times",
}
"""Tables whose ids are given one after the other from 1, so that a gap is a row that is lost."""


def complete_attempts(connection: sqlite3.Connection, newest: int) -> None:
    """Where attempts began whose row is lost: the rows of an attempt say it, or the checkpoints before it."""
    seen = {newest} | {
        row[0] for row in connection.execute("SELECT attempt FROM event UNION SELECT attempt FROM metric")
    }
    told = {row[0] for row in connection.execute("SELECT attempt FROM attempt")}
    for attempt in sorted(seen - told - {1}):
        [(first,)] = connection.execute(
            "SELECT min(step) FROM metric WHERE attempt = ? AND name = 'optim/loss'", (attempt,)
        )
        [(saved,)] = connection.execute(
            "SELECT max(json_extract(data, '$.step')) FROM event "
            "WHERE kind = 'checkpoint_saved' AND attempt < ? AND json_valid(data)",
            (attempt,),
        )
        after = int(saved or 0) if first is None else int(first) - 1
        connection.execute(
            "INSERT INTO attempt(attempt, from_step, checkpoint, ts) VALUES (?, ?, ?, ?)",
            (attempt, after, f"checkpoint-{after}" if after else None, time.time()),
        )


def lost_rows(connection: sqlite3.Connection, pages: Pages, damage: str) -> str:
    """Say in one line what is lost, record it as the last event, and return it.

    Args:
        damage: what SQLite says is wrong with the file; empty when it was merely kept from reading it. Then nothing is
            said of a file that is whole.
    """
    missing = max(pages.expected - pages.count, 0)
    unread = len(pages.wrong) + missing
    if not (damage or unread or pages.broken_cells):
        return ""
    found = f"run.db was damaged ({' '.join(damage.split()) or 'pages cannot be read'}): "
    if unread:
        found += f"{unread:,} of {max(pages.expected, pages.count):,} pages cannot be read"
        found += f", {missing:,} of them at its end, " if missing else ", "
    of_rows = unread - (1 in pages.wrong)  # the first holds the schema
    message = found + _rows(connection, of_rows, max(pages.count - len(pages.wrong), 1), pages.broken_cells)
    [(newest,)] = connection.execute("SELECT max(1, coalesce(max(attempt), 1)) FROM attempt")
    connection.execute(
        "INSERT INTO event(attempt, ts, level, kind, message) VALUES (?, ?, 'error', ?, ?)",
        (newest, time.time(), RECORDS_LOST, message),
    )
    return message


def _rows(connection: sqlite3.Connection, unread: int, read: int, broken: int) -> str:
    """The rows that are lost: as many as gaps in the ids tell, and as the pages that are lost held at a guess."""
    counts = {words: _count(connection, table) for table, words in COUNTED.items()}
    gaps = {words: highest - count for words, (count, highest) in counts.items() if highest > count}
    if scores := _missing_scores(connection):
        gaps["scores"] = scores
    [(held,)] = connection.execute("SELECT count(*) FROM score")
    guess = round((held + sum(count for count, _ in counts.values())) * unread / read)
    lost = max(sum(gaps.values()), guess, broken)
    if not lost and not unread:
        return "all rows that it held could be read"
    known = [f"{gap:,} {words}" for words, gap in gaps.items()]
    known += [f"all {words}" for words, (count, _) in counts.items() if not count] if unread and held else []
    if not known:
        return f"up to {lost:,} rows or so may be lost"
    return f"about {lost:,} rows are lost, among them {', '.join(known)}"


def _count(connection: sqlite3.Connection, table: str) -> tuple[int, int]:
    """How many rows of a table there are, and the highest id."""
    [(count, highest)] = connection.execute(f"SELECT count(*), coalesce(max(id), 0) FROM {table}")
    return int(count), int(highest)


def _missing_scores(connection: sqlite3.Connection) -> int:
    """Each completion has as many scores as the run has verifiers; those of lost completions are not counted."""
    [(missing,)] = connection.execute(
        "SELECT (SELECT count(*) FROM completion) * coalesce(max(n), 0) - coalesce(sum(n), 0) "
        "FROM (SELECT count(*) AS n FROM score WHERE completion_id IN (SELECT id FROM completion) "
        "GROUP BY completion_id)"
    )
    return max(int(missing), 0)
