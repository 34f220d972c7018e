"""How a checkpoint's folder comes to lie in its place whole, and goes away again: by renames alone. No torch.

What is being written lies in `.saving-<name>`, what is being deleted in `.going-<name>`: neither is a checkpoint for
anybody, and what a killed process left of them is cleared away by the next one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

SAVING = ".saving-"
GOING = ".going-"


def staging_of(checkpoints: Path, name: str) -> Path:
    """Where the checkpoint of that name is written; the folder to be renamed lies in it, under its own name."""
    return checkpoints / f"{SAVING}{name}" / name


def put_in_place(staged: Path, place: Path) -> None:
    """Let what was written appear under its name once all of it is on the disk; what lay there before goes."""
    sync_tree(staged)
    if os.path.lexists(place):  # damaged, or of a course that the run has left: nobody went on from there
        discard(place)
    staged.rename(place)
    sync(place.parent)
    shutil.rmtree(staged.parent, ignore_errors=True)


def discard(checkpoint: Path) -> None:
    """Delete a checkpoint so that at no moment half of one lies under its name."""
    aside = checkpoint.with_name(f"{GOING}{checkpoint.name}")
    shutil.rmtree(aside, ignore_errors=True)
    checkpoint.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def clear_leftovers(checkpoints: Path) -> None:
    """Remove what an earlier process was writing or deleting when it ended."""
    if not checkpoints.is_dir():
        return
    for entry in list(checkpoints.iterdir()):
        if entry.name.startswith((SAVING, GOING)):
            shutil.rmtree(entry, ignore_errors=True)


def sync_tree(folder: Path) -> None:
    """Wait until all files below a folder, and their names, are on the disk."""
    for root, _, names in os.walk(folder):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
