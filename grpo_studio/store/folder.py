"""A run's folder: names, making it whole or not at all, finding it again. No process handles, only files."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from grpo_studio.config import RunConfig
from grpo_studio.config_files import dump_config, read_config_file
from grpo_studio.disk import is_disk_full
from grpo_studio.errors import ConfigError, RunNotFoundError, StoreError
from grpo_studio.naming import nearest_names
from grpo_studio.store.reserve import give_up
from grpo_studio.store.writer import RunWriter

RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


@dataclass(frozen=True)
class ProcessRecord:
    """The worker of an attempt, as written in process.json. `started` tells a reused pid from the worker's own."""

    pid: int
    started: str
    session: int
    host: str
    attempt: int
    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run; reading them never creates anything."""

    path: Path

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def config_path(self) -> Path:
        return self.path / "config.yaml"

    @property
    def database(self) -> Path:
        return self.path / "run.db"

    @property
    def log(self) -> Path:
        return self.path / "worker.log"

    @property
    def process_path(self) -> Path:
        return self.path / "process.json"

    @property
    def stop_request(self) -> Path:
        """Present when somebody asked the run to stop, so that a dispatcher that restarts knows it too."""
        return self.path / "stop-requested"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def verifiers(self, attempt: int) -> Path:
        """Where the verifier files that an attempt judges with are kept; a later attempt may have mended ones."""
        return self.path / "verifiers" / (f"attempt-{attempt}" if attempt > 1 else "")

    @property
    def exports(self) -> Path:
        return self.path / "exports"

    @property
    def evaluations(self) -> Path:
        """One database for each evaluation that was asked for after the fact, in the tables of run.db."""
        return self.path / "evaluations"

    @property
    def lock(self) -> Path:
        """Held by the worker while it lives, so that no two work on one run whoever started them."""
        return self.path / "run.lock"

    def config_path_of(self, attempt: int) -> Path:
        """Where the settings of an attempt are kept when they differ from those that the run was started with."""
        return self.config_path if attempt == 1 else self.path / f"config-attempt-{attempt}.yaml"

    def newest_config_path(self) -> Path:
        """The settings of the newest attempt; those before it are kept as they were."""
        kept = [
            int(found[1])
            for entry in os.scandir(self.path)
            if (found := re.fullmatch(r"config-attempt-([0-9]{1,6})\.yaml", entry.name))
        ]
        return self.config_path_of(max(kept, default=1))

    def config(self) -> RunConfig:
        """The configuration of the newest attempt.

        Raises:
            ConfigError: its file is missing or damaged, or holds a setting that this program cannot read.
        """
        try:
            path = self.newest_config_path()
        except OSError:  # told below, as a file that is missing
            path = self.config_path
        raw = read_config_file(path)
        try:
            return RunConfig.model_validate(raw)
        except ValidationError as error:
            first, *others = error.errors(include_url=False)
            where = ".".join(str(part) for part in first["loc"]) or "settings"
            more = f" (and {len(others)} more)" if others else ""
            reason = " ".join(str(first["msg"]).split())
            raise ConfigError(f"{where} cannot be read: {reason}{more}, in {path}") from error

    def process(self) -> ProcessRecord | None:
        """The latest worker, or None when none was ever started."""
        try:
            return ProcessRecord(**json.loads(self.process_path.read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise StoreError(f"cannot read {self.process_path}: {error}") from error

    def write_process(self, record: ProcessRecord) -> None:
        text = json.dumps(asdict(record))
        try:
            write_whole(self.process_path, text)
        except OSError as error:
            if not is_disk_full(error):
                raise
            give_up(self.path)
            write_whole(self.process_path, text)

    def record_exit(self, returncode: int) -> None:
        """Note how the worker ended; a negative return code is the signal that killed it."""
        record = self.process()
        if record is not None:
            ended = replace(record, exit_code=returncode, signal=-returncode if returncode < 0 else None)
            try:
                self.write_process(ended)
            except OSError as error:
                if not is_disk_full(error):
                    raise
                _overwrite(self.process_path, json.dumps(asdict(ended)))

    def size_on_disk(self) -> int:
        """Bytes of all files below the folder."""
        total = 0
        for folder, _, files in os.walk(self.path):
            for name in files:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_size
                except FileNotFoundError:
                    continue
        return total


def create_run(runs_dir: Path, config: RunConfig, name: str | None = None, now: float | None = None) -> RunFolder:
    """Make the folder of a new run, with its config and an empty database, in one rename.

    Raises:
        StoreError: the runs folder cannot be written; nothing is left behind.
    """
    moment = time.localtime(time.time() if now is None else now)
    run_id = f"{time.strftime('%Y%m%d-%H%M%S', moment)}-{slug(name or 'run')}-{secrets.token_hex(2)}"
    staging = runs_dir / f".new-{run_id}"
    try:
        staging.mkdir(parents=True)
        (staging / "config.yaml").write_text(dump_config(config), encoding="utf-8")
        writer = RunWriter(staging / "run.db", attempt=1)
        writer.event("run_created", f"created with {config.algorithm.steps} steps")
        writer.close()
        staging.rename(runs_dir / run_id)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise StoreError(
            f"cannot make the run folder {runs_dir / run_id}: {error}; set --runs-dir to a folder that you can write to"
        ) from error
    return RunFolder(runs_dir / run_id)


def run_folders(runs_dir: Path) -> Iterator[RunFolder]:
    """All runs, newest first. Names begin with the time of their making, so no file is opened."""
    if not runs_dir.is_dir():
        return
    names = sorted((entry.name for entry in os.scandir(runs_dir) if is_run(Path(entry.path))), reverse=True)
    for name in names:
        yield RunFolder(runs_dir / name)


def is_run(path: Path) -> bool:
    """A run's folder, and not a stray or half-made one."""
    return RUN_ID.fullmatch(path.name) is not None and (path / "config.yaml").is_file()


def find_run(runs_dir: Path, run: str) -> RunFolder:
    """The run by its id, by any unambiguous part of it, or `latest`.

    Raises:
        RunNotFoundError: none, or more than one, goes by that.
    """
    known = [folder.run_id for folder in run_folders(runs_dir)]
    if not known:
        raise RunNotFoundError(f"no run {run!r}: there are no runs in {runs_dir}; start one with train")
    if run == "latest":
        return RunFolder(runs_dir / known[0])
    matches = [run_id for run_id in known if run_id == run] or [run_id for run_id in known if run and run in run_id]
    if len(matches) > 1:
        some = ", ".join(matches[:3]) + "..." * (len(matches) > 3)
        raise RunNotFoundError(f"{run!r} could be {len(matches)} runs: {some}; give more of the id")
    if not matches:
        raise RunNotFoundError(f"no run {run!r} in {runs_dir}; {nearest_names(run, known[:8])}")
    return RunFolder(runs_dir / matches[0])


def slug(text: str) -> str:
    """A safe piece of a file name from any text: lower-case letters, digits and single hyphens, at most 40."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "run"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old or the new content, never half of it; on an error nothing is left."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(2)}")
    try:
        aside.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def _overwrite(path: Path, text: str) -> None:
    """Put a short text in place of what a file holds, in one write into the room that it has: the disk is full."""
    with path.open("r+b", buffering=0) as file:
        file.write(text.encode().ljust(os.fstat(file.fileno()).st_size))
