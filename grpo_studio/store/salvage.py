"""What is whole of a damaged run.db, put aside in a file of the same tables; the damaged one is never changed.

Nothing is looked for while all is well: a reader that meets damage calls `salvaged`, which makes run.recovered.db, once
for each content of the damaged file. Rows are told apart by their shape, so that neither the header nor the schema is
needed. What is lost stands in the last event of the recovered file.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import threading
import time
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

from grpo_studio.errors import StoreError
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.lost_rows import complete_attempts, lost_rows
from grpo_studio.store.pages import Pages, open_pages
from grpo_studio.store.schema import migrate
from grpo_studio.store.shapes import shapes

READABLE_FOR = 30.0
"""Seconds in which a recovered file stands for a damaged one that grows: its worker still writes."""
_NOT_THE_FILE = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_MISMATCH,
}  # fmt: skip
"""What SQLite says of who asks, or of the moment, and not of the file."""
_ALONE = threading.Lock()
_NEWEST: dict[Path, tuple[str, bytes]] = {}
"""The content of the database that was recovered last in memory, with the signature of what it was made from."""


def is_unreadable(error: BaseException | None) -> bool:
    """Whether SQLite cannot read a file whose rows may be there all the same; not when it is just locked."""
    if not isinstance(error, sqlite3.Error):
        return isinstance(error, UnicodeDecodeError)  # of SQLite's message, which quotes the file
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Python's own: it cannot make a text of a value
        return isinstance(error, sqlite3.OperationalError)
    if code == sqlite3.SQLITE_READONLY or code & 0xFF in _NOT_THE_FILE:
        return False
    if code != sqlite3.SQLITE_ERROR:
        return True
    if "unsupported file format" in str(error):
        return True
    gone = re.fullmatch(r"no such (?:table|column): (?:\w+\.)?(\w+)", str(error))
    return gone is not None and any(gone[1] in (shape.table, *shape.columns) for shape in shapes())


def _damage(error: BaseException) -> str:
    """What is wrong with the file itself; empty when SQLite was just kept from it, for want of room or rights."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    kept_from_it = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
    if isinstance(error, UnicodeDecodeError):
        return "its schema is no text"
    return "" if code in kept_from_it else str(error)


def recovered_path(path: Path) -> Path:
    """Where the recovered rows of a database lie."""
    return path.with_name("run.recovered.db" if path.name == "run.db" else f"{path.name}.recovered")


def known_recovered(path: Path) -> Path | None:
    """The recovered file of a database that is known to be damaged as it is now; None when it is not."""
    recovered = recovered_path(path)
    if not recovered.is_file():
        return None
    if not path.exists():  # just being replaced
        return recovered
    try:
        with closing(_open(recovered)) as connection:
            [(made_from,)] = connection.execute("SELECT made_from FROM recovered").fetchall()
    except (sqlite3.Error, ValueError):
        return None
    age = time.time() - recovered.stat().st_mtime
    return recovered if made_from == _signature(path) or 0 <= age < READABLE_FOR else None


def salvaged(path: Path, error: BaseException) -> sqlite3.Connection:
    """A connection to what can be read of a database that gave an error; in memory when no file can be made.

    Raises:
        StoreError: not even the bytes of the file can be read.
    """
    with _ALONE:
        known = known_recovered(path)
        try:
            known = known or _make_file(path, _damage(error))
        except (OSError, sqlite3.Error):
            known = None
        if known is not None:
            return _open(known)
        try:
            return _in_memory(path, _damage(error))
        except (OSError, sqlite3.Error) as other:
            raise StoreError(f"cannot read {path}: {error}, nor what is left of it: {other}") from error


def replace(folder: RunFolder) -> str:
    """Put what can be read in the place of a damaged run.db, before a run goes on; nothing may be writing to it.

    The damaged file stays beside it as run.db.damaged. A whole file is left as it is. Called again after it was
    interrupted it brings to its end what it began.

    Returns:
        What was lost, empty when the file is whole.

    Raises:
        StoreError: the recovered file cannot be made or put in place.
    """
    path, recovered = folder.database, recovered_path(folder.database)
    try:
        if path.exists():
            trouble = _trouble(path)
            if not trouble:
                return ""
            with _ALONE:
                _make_file(path, trouble)
        with closing(_open(recovered)) as connection:
            [(lost,)] = connection.execute("SELECT lost FROM recovered").fetchall()
        # In this order: at no moment does a log lie beside a file that it does not belong to.
        for name in ("run.db", "run.db-wal"):
            if (folder.path / name).exists():
                (folder.path / name).replace(folder.path / name.replace("run.db", "run.db.damaged"))
        (folder.path / "run.db-shm").unlink(missing_ok=True)
        recovered.replace(path)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{path} is damaged and what is whole of it cannot be put in its place: {error}") from error
    return str(lost)


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def _in_memory(path: Path, damage: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    signature = _signature(path)
    if _NEWEST.get(path, ("", b""))[0] != signature:
        _fill(connection, path, damage)
        _NEWEST.clear()  # one is enough: this is the way of last resort
        _NEWEST[path] = (signature, connection.serialize())
    else:
        connection.deserialize(_NEWEST[path][1])
    return connection


def _trouble(path: Path) -> str:
    """What SQLite finds wrong with all of a file, empty when nothing is."""
    try:
        with closing(_open(path)) as connection:
            found = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
            missing = {shape.table for shape in shapes()} - {
                row[0] for row in connection.execute("SELECT name FROM sqlite_master")
            }
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if is_unreadable(error):
            return _damage(error) or str(error)
        raise
    if "event" in missing:
        return "its tables are gone"
    return "" if found == ["ok"] else str(found[0])


def _make_file(path: Path, damage: str) -> Path:
    recovered = recovered_path(path)
    aside = path.with_name(f".{recovered.name}.{secrets.token_hex(4)}")
    try:
        with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute("PRAGMA synchronous=OFF")
            _fill(connection, path, damage)
        aside.replace(recovered)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    return recovered


def _fill(connection: sqlite3.Connection, path: Path, damage: str) -> None:
    """Make the tables and put in what can be read, then what is known of the rest."""
    made_from = _signature(path)
    migrate(connection, path)
    connection.execute("BEGIN")
    with open_pages(path) as pages:
        _insert(connection, pages)
        complete_attempts(connection, _attempt_of_the_worker(path))
        lost = lost_rows(connection, pages, damage)
    connection.execute("CREATE TABLE recovered(made_from TEXT NOT NULL, lost TEXT NOT NULL)")
    connection.execute("INSERT INTO recovered VALUES (?, ?)", (made_from, lost))
    connection.execute("COMMIT")


def _insert(connection: sqlite3.Connection, pages: Pages) -> None:
    known = shapes()
    for records in pages.rows():
        first = next(records, None)
        shape = None if first is None else next((shape for shape in known if shape.fits(first)), None)
        if first is None or shape is None:  # an index
            continue
        columns, places = ", ".join(shape.columns), ", ".join("?" * len(shape.columns))
        connection.executemany(
            f"INSERT OR IGNORE INTO {shape.table}({columns}) VALUES ({places})",
            (shape.row(one) for one in chain([first], records) if shape.fits(one)),
        )


def _attempt_of_the_worker(path: Path) -> int:
    try:
        process = RunFolder(path.parent).process()
    except StoreError:
        process = None
    return 1 if process is None else process.attempt


def _signature(path: Path) -> str:
    """Changes when the file or its log is written."""
    parts = []
    for one in (path, path.with_name(f"{path.name}-wal")):
        try:
            found = os.stat(one)
            parts.append(f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}")
        except FileNotFoundError:
            parts.append("none")
    return " ".join(parts)
