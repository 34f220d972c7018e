"""Put the run of an archive among the runs of this installation: whole, or not at all."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from grpo_studio.config import RunConfig
from grpo_studio.config_files import read_config_file
from grpo_studio.disk import told_when_full
from grpo_studio.errors import ConfigError, StoreError
from grpo_studio.exporting.archive_copy import NO_PROCESS
from grpo_studio.exporting.archive_form import IMPORTED, ArchiveManifest
from grpo_studio.exporting.foreign_database import require_ours
from grpo_studio.exporting.unpacking import as_object, first_problem, opened
from grpo_studio.pair_records import PAIR_FILE
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.store.folder import ProcessRecord, RunFolder, slug, write_whole

STAGING = ".importing-"


def import_archive(
    path: Path, settings: Settings, name: str | None, tell: Callable[[str], None]
) -> tuple[RunFolder, ArchiveManifest]:
    """Unpack, check, then rename into the runs folder; the verifier files in it stay data of that run.

    Args:
        name: part of a new id for the run; None keeps its own.

    Raises:
        StoreError: the archive cannot be used, or a run of its id is there.
        DiskFullError: there is no room for it.
    """
    settings.require_writable()
    with opened(path) as archive:
        manifest = archive.manifest
        target = settings.runs_dir / (manifest.run if name is None else _new_id(manifest.run, name))
        if target.exists() or target.is_symlink():
            raise StoreError(f"the run {target.name} is here already; --as NAME imports it under a new id")
        staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=settings.runs_dir))
        try:
            with told_when_full(settings.runs_dir, f"the run {manifest.run}", manifest.total):
                archive.extract(staging, tell)
                tell("checking what was recorded")
                _settle(RunFolder(staging), manifest, path)
                staging.chmod(0o755)
                staging.rename(target)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"cannot import into {settings.runs_dir}: {error.strerror or error}; see its rights"
            ) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return RunFolder(target), manifest


def _new_id(run: str, name: str) -> str:
    """The time of the run stays in front, since runs are listed by it."""
    found = re.match(r"[0-9]{8}-[0-9]{6}-", run)
    began = found[0] if found else time.strftime("%Y%m%d-%H%M%S-")
    return f"{began}{slug(name)}-{secrets.token_hex(2)}"


def _settle(folder: RunFolder, manifest: ArchiveManifest, path: Path) -> None:
    """Check the parts that pages read, and take out what would mean something here: a process above all."""
    for number in sorted(_attempts(folder)):
        _require_config(folder, number)
    require_ours(folder.database, "run.db in the archive")
    for database in sorted(folder.evaluations.glob("*.db")):
        require_ours(database, f"evaluations/{database.name} in the archive")
    if folder.process_path.exists():
        folder.write_process(_process(folder))
    for name in ("branch.json", PAIR_FILE):
        if (folder.path / name).exists():
            as_object(folder.path / name)
    told = {"archive": path.name, "imported_at": time.time()}
    told |= manifest.model_dump(include={"run", "version", "state", "archived_at", "notes"})
    write_whole(folder.path / IMPORTED, json.dumps(told, indent=1))


def _attempts(folder: RunFolder) -> list[int]:
    names = [re.fullmatch(r"config-attempt-([0-9]{1,6})\.yaml", entry.name) for entry in folder.path.iterdir()]
    return [1, *(int(found[1]) for found in names if found)]


def _require_config(folder: RunFolder, attempt: int) -> None:
    path = folder.config_path_of(attempt)
    try:
        RunConfig.model_validate(read_config_file(path))
    except (ConfigError, ValidationError) as error:
        told = first_problem(error) if isinstance(error, ValidationError) else str(error).replace(f"{path.parent}/", "")
        raise StoreError(
            f"{path.name} in the archive cannot be used: {shown(told, 200)}; update the program"
        ) from error


def _process(folder: RunFolder) -> ProcessRecord:
    """How the worker ended, of a process that no host knows."""
    raw = as_object(folder.process_path)
    numbers = {name: raw.get(name) for name in ("pid", "session", "attempt", "exit_code", "signal")}
    needed = ("pid", "session", "attempt")
    for name, value in numbers.items():
        if not (type(value) is int and abs(value) < 1 << 31) and (value is not None or name in needed):
            raise StoreError(f"process.json in the archive has {name} {shown(value)}, which is no number; take another")
    return ProcessRecord(started=NO_PROCESS, host=NO_PROCESS, **numbers)  # type: ignore[arg-type]
