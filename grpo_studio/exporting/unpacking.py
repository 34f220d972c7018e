"""Read the files of an archive into a folder. Whoever made it may mean harm: nothing in it is believed.

Only files that belong to a run are taken, under their own names, each of the size and checksum that the manifest
gives, and nothing is written before the sum of them is known to fit.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from grpo_studio.disk import require_space, sized
from grpo_studio.errors import StoreError
from grpo_studio.exporting.archive_form import FORMAT, LARGEST_MANIFEST, MANIFEST, ArchiveManifest, belongs
from grpo_studio.shown import shown

MOST_FILES = 20_000
MOST_BYTES = 1 << 40
MOST_TIMES = 200
"""An archive holds at most this many times its own size, past the first `SMALL_BYTES`: text shrinks to a tenth."""
SMALL_BYTES = 256 << 20
LARGEST_READ = 32 << 20
"""Bytes that the tar library may ask for at once: a header that claims to be longer is no honest one."""
BLOCK = 1 << 20


class _Bounded(io.RawIOBase):
    """What comes out of gzip, up to a bound."""

    def __init__(self, packed: gzip.GzipFile, path: Path) -> None:
        self._packed, self._path, self.bound = packed, path, LARGEST_MANIFEST + BLOCK

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LARGEST_READ or self._packed.tell() + size > self.bound + BLOCK:
            raise StoreError(f"{shown(str(self._path), 200)} unpacks to more than it says; it is damaged or a trap")
        return self._packed.read(size)


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """An archive with its manifest read.

    Raises:
        StoreError: it is none, is damaged, was made by a newer program, or says that it holds what none may.
    """
    name = shown(str(path), 200)
    try:
        with path.open("rb") as raw:
            if raw.read(2) != b"\x1f\x8b":
                raise StoreError(f"{name} is no archive of a run: it is not gzipped; give a file that export made")
            raw.seek(0)
            with gzip.GzipFile(fileobj=raw, mode="rb") as packed:
                stream = _Bounded(packed, path)
                with tarfile.open(fileobj=_as_file(stream), mode="r|") as tar:
                    yield Archive(path, tar, stream)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise StoreError(
            f"{name} is damaged or no archive of a run: {shown(str(error), 100)}; copy it again"
        ) from error
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"cannot read {name}: {error.strerror or error}; give a file that export made") from error


def _as_file(stream: _Bounded) -> BinaryIO:
    return stream  # type: ignore[return-value]


class Archive:
    """An open archive: `manifest` first, then `extract` once."""

    def __init__(self, path: Path, tar: tarfile.TarFile, stream: _Bounded) -> None:
        self._name, self._tar, self._stream = shown(str(path), 200), tar, stream
        self.manifest = self._read_manifest()
        self._judge(path.stat().st_size)

    def _read_manifest(self) -> ArchiveManifest:
        first = self._tar.next()
        if first is None or first.name.rpartition("/")[2] != MANIFEST or not _is_plain(first):
            raise StoreError(f"{self._name} is no archive of a run: {MANIFEST} is not its first file; give another")
        if first.size > LARGEST_MANIFEST:
            raise StoreError(f"{self._name} has a manifest of {sized(first.size)}; {sized(LARGEST_MANIFEST)} at most")
        source = self._tar.extractfile(first)
        try:
            raw = json.loads(b"" if source is None else source.read())
            newest = raw["format"] if isinstance(raw, dict) else None
            if isinstance(newest, int) and newest > FORMAT:
                raise StoreError(
                    f"{self._name} was made by a newer GRPO Studio (format {newest}, this one knows {FORMAT}); "
                    "update the program"
                )
            return ArchiveManifest.model_validate(raw)
        except (KeyError, RecursionError, ValueError) as error:
            why = first_problem(error) if isinstance(error, ValidationError) else shown(str(error), 100)
            raise StoreError(
                f"{self._name} is no archive of a run: {MANIFEST} cannot be read: {why}; give another"
            ) from error

    def _judge(self, own_size: int) -> None:
        manifest, name = self.manifest, self._name
        for file in manifest.files:
            _require_name(file, name)
        folded = {file.casefold() for file in manifest.files}
        if len(folded) < len(manifest.files):
            raise StoreError(f"{name} names a file twice; it was changed after it was made, take another")
        if len(manifest.files) > MOST_FILES:
            raise StoreError(f"{name} holds {len(manifest.files):,} files; a run has at most {MOST_FILES:,}")
        most = min(MOST_BYTES, max(SMALL_BYTES, own_size * MOST_TIMES))
        if manifest.total > most:
            raise StoreError(
                f"{name} would unpack from {sized(own_size)} to {sized(manifest.total)}, more than any run does "
                f"({sized(most)}); it is damaged or a trap"
            )
        for needed in ("config.yaml", "run.db"):
            if needed not in manifest.files:
                raise StoreError(f"{name} holds no {needed}, so it is no whole run; archive it again")

    def extract(self, folder: Path, tell: Callable[[str], None]) -> None:
        """Write all files below a folder that is new and the caller's own.

        Raises:
            StoreError: an entry is no plain file, is not in the manifest, or is not what the manifest says.
            DiskFullError: they do not fit.
        """
        manifest, done = self.manifest, 0
        require_space(folder, manifest.total, f"the run {manifest.run}")
        self._stream.bound = manifest.total + LARGEST_MANIFEST + 4096 * (len(manifest.files) + 8)
        missing = dict.fromkeys(manifest.files)
        while (entry := self._tar.next()) is not None:
            name = self._own_name(entry)
            if name not in missing:
                twice = "comes twice in" if name in manifest.files else "is not in the manifest of"
                raise StoreError(f"{shown(name)} {twice} {self._name}; it was changed after it was made, take another")
            del missing[name]
            tell(f"unpacking {name} {done / max(1, manifest.total):.0%}")
            self._write(entry, folder / name, name)
            done += entry.size
        if missing:
            raise StoreError(f"{self._name} lacks {shown(next(iter(missing)))}; it is not whole, copy it again")

    def _own_name(self, entry: tarfile.TarInfo) -> str:
        """The name in the run's folder of an entry that may be taken."""
        if not _is_plain(entry):
            raise StoreError(f"{self._name} holds {_kind(entry)} ({shown(entry.name)}); a run has plain files alone")
        run, _, name = entry.name.partition("/")
        _require_name(name if run == self.manifest.run else entry.name, self._name)
        return name

    def _write(self, entry: tarfile.TarInfo, path: Path, name: str) -> None:
        wanted, source, digest = self.manifest.files[name], self._tar.extractfile(entry), hashlib.sha256()
        if entry.size != wanted.bytes or source is None:
            raise StoreError(
                f"{name} in {self._name} has {entry.size:,} bytes instead of {wanted.bytes:,}; copy it again"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as target:
            while block := source.read(BLOCK):
                digest.update(block)
                target.write(block)
        if digest.hexdigest() != wanted.sha256:
            raise StoreError(f"{name} in {self._name} is not what was archived (its checksum differs); copy it again")


def _is_plain(entry: tarfile.TarInfo) -> bool:
    return entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and getattr(entry, "sparse", None) is None


def _kind(entry: tarfile.TarInfo) -> str:
    if entry.issym() or entry.islnk():
        return "a link"
    if entry.isdev():
        return "a device or pipe"
    return "a folder" if entry.isdir() else "an entry of another kind"


def _require_name(name: str, archive: str) -> None:
    """Refuse a name that leads out of the run's folder or is none of a run's files."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or (len(parts[0]) == 2 and parts[0].endswith(":")):
        raise StoreError(f"{archive} holds the absolute name {shown(name)}; it is damaged or a trap")
    if ".." in parts:
        raise StoreError(f"{archive} holds {shown(name)}, which leads out of the run's folder; it is damaged or a trap")
    if not belongs(name):
        raise StoreError(f"{archive} holds {shown(name)}, which is no file of a run; take another")


def first_problem(error: ValidationError) -> str:
    """Where a value is wrong, and how, in a few words."""
    found = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, found["loc"]))
    return shown(f"{where}: {found['msg']}", 150)


def as_object(path: Path) -> dict[str, Any]:
    """The JSON object in a small file of the archive.

    Raises:
        StoreError: it is none.
    """
    try:
        if path.stat().st_size > BLOCK:
            raise ValueError("it is too large")
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, dict):
            raise ValueError("it is no JSON object")
    except (OSError, RecursionError, ValueError) as error:
        raise StoreError(
            f"{path.name} in the archive cannot be read: {shown(str(error), 100)}; take another"
        ) from error
    return value
