"""The checkpoints of a run as they lie on the disk: which are whole, what each holds, which may go. No torch.

A checkpoint is a folder `checkpoints/<name>` that holds `checkpoint.json`, its manifest. It is written under a name
that begins with a dot, the manifest last, and renamed when all of it is on the disk: a folder with another name is
whole, unless something was changed afterwards, which the sizes in the manifest tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from grpo_studio.checkpoint_manifest import MANIFEST, Manifest, read_manifest
from grpo_studio.config import CheckpointSettings
from grpo_studio.errors import CheckpointError
from grpo_studio.shown import shown, shown_name
from grpo_studio.store.folder import RunFolder, write_whole

__all__ = [
    "FINAL", "MANIFEST", "NAME", "Checkpoint", "Manifest", "best_of", "file_sizes", "find_checkpoint",
    "newest_resumable", "read_checkpoint", "those_that_may_go", "whole_checkpoints", "write_manifest",
]  # fmt: skip

FINAL = "final"
"""Name of the weights of a finished run: there is no optimizer with them, so nothing resumes from there."""
BASE = "base"
"""What the model before training goes by where a checkpoint can be named."""
NAME = re.compile(r"checkpoint-([0-9]{1,9})")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is whole."""

    path: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def step(self) -> int:
        return self.manifest.step

    @property
    def bytes(self) -> int:
        return sum(self.manifest.files.values())


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a folder.

    Raises:
        CheckpointError: it is missing, half-written or damaged; the message says which.
    """
    if not path.is_dir():
        raise CheckpointError(f"there is no checkpoint {shown(path.name)} in {path.parent}")
    try:
        manifest = read_manifest(path / MANIFEST)
        sizes = file_sizes(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"the checkpoint {path.name} is half-written: it has no {MANIFEST}") from error
    except (OSError, ValueError, RecursionError) as error:
        reason = shown(str(error), 200)
        raise CheckpointError(f"the checkpoint {path.name} is damaged: {MANIFEST} cannot be read: {reason}") from error
    named = NAME.fullmatch(path.name)
    if named and int(named[1]) != manifest.step:
        raise CheckpointError(f"the checkpoint {path.name} is damaged: its {MANIFEST} is of step {manifest.step}")
    for name, size in manifest.files.items():
        if sizes.get(name) != size:
            found = "is missing" if name not in sizes else f"has {sizes[name]:,} bytes instead of {size:,}"
            raise CheckpointError(f"the checkpoint {path.name} is damaged: {shown_name(name)} {found}")
    return Checkpoint(path, manifest)


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write the manifest of the files that lie in a folder; the last thing before it is renamed."""
    content = asdict(manifest) | {"files": file_sizes(path)}
    write_whole(path / MANIFEST, json.dumps(content, indent=1, allow_nan=False))


def file_sizes(path: Path) -> dict[str, int]:
    """Bytes of each file below a folder but the manifest, by its name there."""
    return {
        file.relative_to(path).as_posix(): file.lstat().st_size
        for file in sorted(path.rglob("*"))
        if file.is_file() and not file.is_symlink() and file.name != MANIFEST
    }


def whole_checkpoints(folder: RunFolder) -> list[Checkpoint]:
    """All whole checkpoints of a run, oldest step first, its final weights last."""
    if not folder.checkpoints.is_dir():
        return []
    found = []
    for entry in folder.checkpoints.iterdir():
        if entry.name == FINAL or NAME.fullmatch(entry.name):
            try:
                found.append(read_checkpoint(entry))
            except CheckpointError:
                continue
    return sorted(found, key=lambda checkpoint: (checkpoint.step, checkpoint.name == FINAL))


def newest_resumable(folder: RunFolder) -> Checkpoint | None:
    """The newest whole checkpoint that training can go on from."""
    return next((found for found in reversed(whole_checkpoints(folder)) if found.manifest.resumable), None)


def find_checkpoint(folder: RunFolder, asked: str) -> Checkpoint:
    """The checkpoint by its step ("40"), its name ("checkpoint-40", "final"), or "newest" or "best".

    Raises:
        CheckpointError: there is none such, or it is not whole; the message names those that there are.
    """
    found = whole_checkpoints(folder)
    if asked == "newest" and found:
        return found[-1]
    if asked == "best" and (best := best_of(found)) is not None:
        return best
    name = f"checkpoint-{int(asked)}" if re.fullmatch(r"[0-9]{1,9}", asked) else asked
    if name != FINAL and not NAME.fullmatch(name):
        raise CheckpointError(f"no checkpoint goes by {shown_name(asked)}; {_there_are(found)}")
    try:
        return read_checkpoint(folder.checkpoints / name)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; {_there_are(found)}") from error


def checkpoint_or_base(folder: RunFolder, asked: str) -> Checkpoint | None:
    """`find_checkpoint`, or None for "base", the model before training.

    Raises:
        CheckpointError: there is no such checkpoint, or it is not whole.
    """
    return None if asked == BASE else find_checkpoint(folder, asked)


def best_of(found: Iterable[Checkpoint]) -> Checkpoint | None:
    """The one with the best held-out score, the newest of equals; None when none was scored."""
    scored = [(one.manifest.score, one.step, one) for one in found if one.manifest.score is not None]
    return max(scored, key=lambda item: item[:2])[2] if scored else None


def those_that_may_go(found: Sequence[Checkpoint], settings: CheckpointSettings) -> list[Checkpoint]:
    """Checkpoints that no rule of the settings keeps, oldest first. Final weights always stay."""
    steps = [one for one in found if one.name != FINAL]
    kept = {one.name for one in steps[-settings.keep :]}
    if settings.keep_best and (best := best_of(steps)) is not None:
        kept.add(best.name)
    if settings.keep_every:
        kept |= {one.name for one in steps if one.step % settings.keep_every == 0}
    return [one for one in steps if one.name not in kept]


def _there_are(found: Sequence[Checkpoint]) -> str:
    if not found:
        return "this run has no whole checkpoint; set checkpoint.every, or stop a run rather than kill it"
    return f"there are {', '.join(one.name for one in found[-8:])}"
