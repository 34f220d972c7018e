"""A text file, packed or not, as numbered lines or as pieces: UTF-8, or UTF-16 and UTF-32 by their mark."""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from grpo_studio.data.file_notes import shown_path
from grpo_studio.errors import DataError

PIECE = 1 << 18
LONGEST = 64 << 20
"""No line of a data set is longer; one that is, is another kind of file and would fill the memory."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
NotUtf8 = Callable[[int, bytes, UnicodeDecodeError], str]
"""Gives the text of a line that is not UTF-8, from its number, its bytes and what was wrong; or raises."""


class TextFile:
    """A text file that is opened anew for each reading.

    Raises:
        DataError: it is UTF-16 without the mark that says so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = shown_path(path)
        self._size = path.stat().st_size
        self._open: IO[bytes] | None = None
        self._reached = 0
        with self.opened() as file:
            self.start = file.read(4096)
        self._reached = 0
        self.encoding = next((name for mark, name in MARKS if self.start.startswith(mark)), None) or self._unmarked()

    def _unmarked(self) -> str:
        start = self.start.rstrip(b"\0")  # a file that was cut off by a crash may be zeros from some line on
        if max(start[0::2].count(0), start[1::2].count(0)) > len(start) * 0.2:
            raise DataError(
                f"{self.name} looks like UTF-16 or UTF-32 without a byte order mark, or is binary; save it as UTF-8"
            )
        return "utf-8"

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The bytes of the file, unpacked."""
        with self.path.open("rb") as raw:
            self._open = raw
            try:
                if self.path.name.lower().endswith(".gz"):
                    with gzip.GzipFile(fileobj=raw) as unpacked:
                        yield cast(IO[bytes], unpacked)
                else:
                    yield raw
            finally:
                self._reached, self._open = raw.tell(), None

    def share(self) -> float:
        """How much of the file the latest reading has passed, 0 to 1."""
        reached = self._reached if self._open is None else self._open.tell()
        return min(1.0, reached / self._size) if self._size else 1.0

    def lines(self, not_utf8: NotUtf8) -> Generator[tuple[int, str], None, None]:
        """Each line with its number from 1 and its end; a line ends in LF, CR or both. Closing it closes the file.

        Raises:
            DataError: a line is too long, or the file is not of the encoding that its mark says.
        """
        number = 0
        with self.opened() as file:
            if self.encoding != "utf-8":
                yield from self._wide_lines(file)
                return
            file.seek(len(codecs.BOM_UTF8) if self.start.startswith(codecs.BOM_UTF8) else 0)
            for raw in _byte_lines(file):
                number += 1
                if len(raw) > LONGEST:
                    raise self._too_long(number)
                try:
                    text = raw.decode()
                except UnicodeDecodeError as error:
                    text = not_utf8(number, raw, error)
                yield number, text

    def _wide_lines(self, file: IO[bytes]) -> Iterator[tuple[int, str]]:
        wide = io.TextIOWrapper(file, encoding=self.encoding, newline="")  # type: ignore[arg-type, unused-ignore]
        number = 0
        try:
            while line := wide.readline(LONGEST + 1):
                number += 1
                if len(line) > LONGEST:
                    raise self._too_long(number)
                yield number, line
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.name} near line {number + 1} is not {self.encoding}, as its first bytes say; save it as UTF-8"
            ) from error
        finally:
            wide.detach()

    def pieces(self) -> Generator[str, None, None]:
        """The text in pieces of about 256 KB. Closing it closes the file.

        Raises:
            DataError: it is not of its encoding, with the line.
        """
        decoder = codecs.getincrementaldecoder("utf-8-sig" if self.encoding == "utf-8" else self.encoding)()
        line = 1
        with self.opened() as file:
            while True:
                raw = file.read(PIECE)
                try:
                    piece = decoder.decode(raw, final=not raw)
                except UnicodeDecodeError as error:
                    line += error.object[: error.start].count(b"\n")
                    raise DataError(
                        f"{self.name} line {line} is not {self.encoding.upper()}: {error.reason}; save it as UTF-8"
                    ) from error
                line += piece.count("\n")
                if piece:
                    yield piece
                if not raw:
                    return

    def _too_long(self, number: int) -> DataError:
        return DataError(
            f"{self.name} line {number} is longer than {LONGEST >> 20} MiB; write one row a line, and check that it is "
            "a file of rows"
        )


def _byte_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Lines with their ends; one that grows past the longest allowed is given as far as it was read."""
    parts: list[bytes] = []
    held = 0
    while piece := file.read(PIECE):
        while piece.endswith(b"\r") and (after := file.read(1)):  # so that CR LF is never cut in two
            piece += after
        for line in piece.splitlines(keepends=True):
            parts.append(line)
            held += len(line)
            if line.endswith((b"\n", b"\r")) or held > LONGEST:
                yield line if len(parts) == 1 else b"".join(parts)
                parts, held = [], 0
    if parts:
        yield b"".join(parts)
