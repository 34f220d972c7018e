"""What is told of a file: notes that count, names made safe to show, and every failure as one DataError."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_studio.errors import DataError
from grpo_studio.shown import shown, visible

LINES_NAMED = 5
LONGEST_PATH = 200


def shown_path(path: object) -> str:
    """A path in one line: blanks as they are, control, bidirectional and unpaired characters as escapes, and cut."""
    text = str(path)
    cut = text if len(text) <= LONGEST_PATH else f"{text[:LONGEST_PATH]}..."
    return visible(cut)


class CountedNote:
    """One note on something that many lines have: it enters the notes with the first and is kept up to date.

    Args:
        notes: where it is told.
        text: makes the note from the count and the lines ("line 3", "lines 3, 9 and more").
        unit: what is numbered.
    """

    def __init__(self, notes: list[str], text: Callable[[int, str], str], unit: str = "line") -> None:
        self._notes, self._text, self._unit = notes, text, unit
        self._place: int | None = None
        self._first: list[int] = []
        self._count = 0

    def at(self, number: int) -> None:
        """Count one more, on this line."""
        self._count += 1
        if len(self._first) < LINES_NAMED:
            self._first.append(number)
        plural = "s" if self._count > 1 else ""
        more = " and more" if self._count > len(self._first) else ""
        where = f"{self._unit}{plural} {', '.join(str(line) for line in self._first)}{more}"
        note = self._text(self._count, where)
        if self._place is None:
            self._place = len(self._notes)
            self._notes.append(note)
        else:
            self._notes[self._place] = note


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one DataError that names it."""
    name = shown_path(path)
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"there is no file {name}; give an existing file") from error
    except PermissionError as error:
        raise DataError(f"cannot read {name}: permission denied; let this user read it") from error
    except (EOFError, zlib.error) as error:
        raise DataError(f"cannot read {name}: its packed data is cut off or damaged; copy or pack it again") from error
    except RecursionError as error:
        raise DataError(f"cannot read {name}: it is nested too deeply; write the values flatter") from error
    except MemoryError as error:
        raise DataError(f"cannot read {name}: not enough memory; split it into smaller files") from error
    except (OSError, ValueError) as error:
        reason = shown(str(error), 300) or type(error).__name__
        raise DataError(f"cannot read {name}: {reason}; give a whole file of its kind") from error
