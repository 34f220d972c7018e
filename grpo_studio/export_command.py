"""`python -m grpo_studio export`: a run's weights, the whole run as an archive, or the run as a script."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpo_studio.command_output import tell
from grpo_studio.disk import sized
from grpo_studio.errors import UsageError
from grpo_studio.exporting.archive import archive
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, find_run

Found = tuple[dict[str, Any], list[str], int]


def add_export_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `export` besides those of all commands."""
    command.add_argument("run", help="id of the run, an unambiguous part of it, or latest")
    command.add_argument(
        "--to", required=True, help="folder to write, not there yet; with --archive also a .tar.gz file"
    )
    add_choice(command)
    what = command.add_mutually_exclusive_group()
    what.add_argument("--archive", action="store_true", help="the whole run as one file, for another installation")
    what.add_argument("--script", action="store_true", help="the run as a plain TRL script that needs no GRPO Studio")
    command.add_argument("--with-checkpoints", action="store_true", help="with --archive: its checkpoints, too")


def add_choice(command: argparse.ArgumentParser) -> None:
    """Which weights: shared with `push`."""
    command.add_argument(
        "--checkpoint", metavar="K", help="step, name, best, newest or final (default: final, else the newest)"
    )
    command.add_argument("--merge", action="store_true", help="merge the adapter into its base model")


def export(options: argparse.Namespace, settings: Settings) -> Found:
    """The JSON document, the lines for people, and the exit code.

    Raises:
        StudioError: the run cannot be carried away so; nothing is left half-made.
    """
    _require_fitting(options)
    folder, target = find_run(settings.runs_dir, options.run), Path(options.to).expanduser().absolute()
    with tidied_up():
        if options.archive:
            return _archive(folder, target, options.with_checkpoints)
        if options.script:
            return _script(folder, settings, target)
        return _weights(folder, settings, target, options)


@contextmanager
def tidied_up() -> Iterator[None]:
    """Within, a request to end (SIGTERM) is an exception, so that what is half-made is taken away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _require_fitting(options: argparse.Namespace) -> None:
    whole = "--archive" if options.archive else "--script" if options.script else None
    if whole and (options.merge or options.checkpoint is not None):
        given = "--merge" if options.merge else "--checkpoint"
        raise UsageError(f"{given} is about weights, and {whole} writes none; leave it out")
    if options.with_checkpoints and not options.archive:
        raise UsageError("--with-checkpoints goes with --archive alone; add that, or leave it out")


def _weights(folder: RunFolder, settings: Settings, target: Path, options: argparse.Namespace) -> Found:
    from grpo_studio.exporting.weights import export_weights  # it brings pandas

    done = export_weights(folder, settings, target, options.checkpoint, options.merge, tell)
    document = {
        "run": folder.run_id,
        "kind": done.kind,
        "to": str(done.to),
        "checkpoint": done.checkpoint.name,
        "step": done.checkpoint.step,
        "files": list(done.files),
        "bytes": done.bytes,
        "notes": list(done.notes),
    }
    what = {"adapter": "the adapter", "merged": "the merged model", "whole": "the model"}[done.kind]
    line = f"{what} of {folder.run_id} ({done.which}) is in {done.to}: {sized(done.bytes)}"
    return document, [line, *done.notes], 0


def _archive(folder: RunFolder, target: Path, with_checkpoints: bool) -> Found:
    path, manifest = archive(folder, target, with_checkpoints, tell)
    size = path.stat().st_size
    document = {
        "run": folder.run_id,
        "kind": "archive",
        "to": str(path),
        "state": manifest.state,
        "step": manifest.step,
        "files": list(manifest.files),
        "bytes": size,
        "notes": manifest.notes,
    }
    return document, [f"{folder.run_id} ({manifest.state}) is in {path}: {sized(size)}", *manifest.notes], 0


def _script(folder: RunFolder, settings: Settings, target: Path) -> Found:
    from grpo_studio import script_export

    lines = script_export.write(folder, settings, target, tell)
    return {"run": folder.run_id, "kind": "script", "to": str(target), "notes": lines}, lines, 0
