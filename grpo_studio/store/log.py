"""The end of a worker's log, whatever its size."""

from __future__ import annotations

from pathlib import Path

MOST_BYTES = 64 * 1024


def tail(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """The last bytes of a log from a whole line on; undecodable ones are replaced. Empty when there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most_bytes))
            data = file.read(most_bytes)
    except FileNotFoundError:
        return ""
    text = data.decode("utf-8", "replace")
    return text if size <= most_bytes else text.partition("\n")[2] or text
