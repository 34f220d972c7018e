"""The model of a run beside its script: hard links where the disk allows them, else copies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".h5", ".msgpack", ".gguf", ".onnx", ".ot")
"""Formats that transformers passes by when there are safetensors."""
TEMPLATES = "additional_chat_templates"


def model_files(folder: Path) -> list[Path]:
    """The files of a model folder that loading it takes."""
    files = sorted(path for path in _files_in(folder))
    whole = any(path.suffix == ".safetensors" for path in files)
    return [path for path in files if not (whole and path.suffix in OTHER_WEIGHTS)]


def size_of(files: list[Path]) -> int:
    """Bytes of all files together."""
    return sum(path.stat().st_size for path in files)


def room_for(files: list[Path], target: Path) -> int:
    """Bytes that placing them takes: none for those on the disk of `target`, which are linked."""
    place = next(folder for folder in target.absolute().parents if folder.exists())
    disk = place.stat().st_dev
    return size_of([path for path in files if path.stat().st_dev != disk])


def place_model(folder: Path, files: list[Path], target: Path) -> bool:
    """Put the files into `target`; whether all of them are links that take no room.

    Raises:
        OSError: one can neither be linked nor copied.
    """
    linked = True
    for path in files:
        place = target / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        source = path.resolve()  # a cache of the Hub holds links
        try:
            os.link(source, place)
        except OSError:
            shutil.copyfile(source, place)
            linked = False
    return linked


def _files_in(folder: Path) -> Iterator[Path]:
    for place in (folder, folder / TEMPLATES):
        if place.is_dir():
            yield from (path for path in place.iterdir() if path.is_file() and not path.name.startswith("."))
