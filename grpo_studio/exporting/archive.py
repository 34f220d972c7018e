"""A run's folder as one file: what was recorded, its settings, log and verifiers; its checkpoints when asked for.

The run may go on meanwhile. The copy then says that it was made from a living run, as `stopped`: it is a run that
ended there, and nothing goes on in it. `archive_form` says what belongs in.
"""

from __future__ import annotations

import gzip
import io
import itertools
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from grpo_studio import __version__
from grpo_studio.catalog import sha256_of
from grpo_studio.checkpoints import whole_checkpoints
from grpo_studio.disk import sized
from grpo_studio.errors import StoreError
from grpo_studio.exporting.archive_copy import LONGEST_LOG, Copy
from grpo_studio.exporting.archive_form import FORMAT, LOGS, MANIFEST, ArchivedFile, ArchiveManifest, is_archive_name
from grpo_studio.exporting.aside import file_aside, require_free
from grpo_studio.exporting.redaction import Redaction
from grpo_studio.store.folder import RunFolder

FAST, SMALL = 1, 6
"""Levels of gzip: weights shrink little whatever the effort."""


def archive(
    folder: RunFolder, to: Path, with_checkpoints: bool, tell: Callable[[str], None], redaction: Redaction | None = None
) -> tuple[Path, ArchiveManifest]:
    """Write the archive to a file, or into a folder under the run's name; returns where it is and what it holds.

    Raises:
        StoreError: the run cannot be read, or the place is taken or cannot be written.
        DiskFullError: there is no room for it.
    """
    target = to if is_archive_name(to) else to / f"{folder.run_id}.tar.gz"
    require_free(target)
    paths = _checkpoint_files(folder) if with_checkpoints else {}
    weights = sum(path.stat().st_size for path in paths.values())
    with file_aside(target, 2 * _recorded_bytes(folder) + weights, f"the archive of {folder.run_id}") as aside:
        copy = Copy(folder, aside.parent / "copy", redaction or Redaction.of_environment())
        tell("copying what was recorded")
        state = copy.make()
        paths |= {name: copy.path / name for name in copy.files()}
        tell("adding up checksums")
        manifest = ArchiveManifest(
            format=FORMAT,
            version=__version__,
            run=folder.run_id,
            state=state.state,
            reason=state.reason,
            step=copy.step,
            archived_at=time.time(),
            files={name: _described(path) for name, path in sorted(paths.items())},
            notes=[*copy.notes, *_on_checkpoints(folder, with_checkpoints)],
        )
        _pack(aside, manifest, paths, FAST if with_checkpoints else SMALL, tell)
    return target, manifest


def _checkpoint_files(folder: RunFolder) -> dict[str, Path]:
    found = {}
    for checkpoint in whole_checkpoints(folder):
        for name in ("checkpoint.json", *checkpoint.manifest.files):
            found[f"checkpoints/{checkpoint.name}/{name}"] = checkpoint.path / name
    return found


def _on_checkpoints(folder: RunFolder, with_checkpoints: bool) -> list[str]:
    found = whole_checkpoints(folder)
    if with_checkpoints or not found:
        return []
    size = sized(sum(one.bytes for one in found))
    return [f"without its {len(found)} checkpoints ({size}): nothing can be resumed from it; --with-checkpoints"]


def _recorded_bytes(folder: RunFolder) -> int:
    """Bytes of all that is copied but checkpoints; logs only as far as they are kept."""
    places = (folder.path.iterdir(), folder.evaluations.glob("*"), folder.path.glob("verifiers/**/*"))
    files = [path for path in itertools.chain(*places) if path.is_file() and not path.is_symlink()]
    return sum(min(one.stat().st_size, LONGEST_LOG if one.name in LOGS else 1 << 60) for one in files) + (1 << 20)


def _described(path: Path) -> ArchivedFile:
    return ArchivedFile(bytes=path.stat().st_size, sha256=sha256_of(path))


def _pack(
    aside: Path, manifest: ArchiveManifest, paths: Mapping[str, Path], level: int, tell: Callable[[str], None]
) -> None:
    done, total = 0, max(1, manifest.total)
    with (
        aside.open("xb") as raw,
        gzip.GzipFile("", "wb", level, raw, mtime=0) as packed,  # the name and the time of this machine stay out
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        content = manifest.model_dump_json(indent=1).encode()
        tar.addfile(_entry(manifest, MANIFEST, len(content)), io.BytesIO(content))
        for name, file in manifest.files.items():
            tell(f"packing {name} {done / total:.0%}")
            try:
                with paths[name].open("rb") as source:
                    tar.addfile(_entry(manifest, name, file.bytes), source)
            except FileNotFoundError as error:
                where = name.rpartition("/")[0]
                raise StoreError(f"{where} was taken away while it was archived; try again") from error
            done += file.bytes


def _entry(manifest: ArchiveManifest, name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(f"{manifest.run}/{name}")
    entry.size, entry.mode, entry.mtime = size, 0o644, int(manifest.archived_at)
    return entry
